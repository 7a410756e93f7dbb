import { Effect } from "effect"

/**
 * Continues in the event loop's next turn, after pending I/O. `Effect.yieldNow` only lets fibers run that are already
 * runnable.
 */
export const turnOfEventLoop: Effect.Effect<void> = Effect.async((resume) => {
  setImmediate(() => resume(Effect.void))
})
