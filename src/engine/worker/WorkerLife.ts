import { performance } from "node:perf_hooks"
import { Context, Effect, Layer, type Scope } from "effect"

/** The state that a worker reports. */
export interface WorkerState {
  /** What it is doing, to complete "the worker …": it claims, or why it does not. */
  readonly doing: string
  /** Whether it no longer makes progress, so that the process must be restarted. */
  readonly isStuck: boolean
  /** Whether it is stopping, and claims nothing more. */
  readonly isStopping: boolean
}

/**
 * Whether this process's worker is making progress, for health checks. Retrying an unreachable database counts as
 * progress. A worker is stuck if its claims, records or attempts have not advanced for longer than all their time
 * limits together.
 */
export class WorkerLife extends Context.Tag("connected-payments/engine/WorkerLife")<
  WorkerLife,
  {
    /** The state of the worker; undefined before it has started, or if there is none. */
    readonly state: () => WorkerState | undefined
    /** Registers the worker until the scope ends. */
    readonly register: (look: (now: number) => WorkerState) => Effect.Effect<void, never, Scope.Scope>
  }
>() {
  static readonly layer: Layer.Layer<WorkerLife> = Layer.sync(WorkerLife, () => {
    let registered: ((now: number) => WorkerState) | undefined
    return {
      state: () => registered?.(performance.now()),
      register: (look) =>
        Effect.acquireRelease(
          Effect.sync(() => {
            registered = look
          }),
          () =>
            Effect.sync(() => {
              registered = undefined
            })
        )
    }
  })
}
