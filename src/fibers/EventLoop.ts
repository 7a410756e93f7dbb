import { Effect } from "effect"

/**
 * Goes on in the event loop's next turn, after what has arrived meanwhile. `Effect.yieldNow` only lets those fibers go on
 * that already can.
 */
export const turnOfEventLoop: Effect.Effect<void> = Effect.async((resume) => {
  setImmediate(() => resume(Effect.void))
})
