import { performance } from "node:perf_hooks"
import { Context, Effect, Layer, type Scope } from "effect"

/** What a worker says of itself. */
export interface WorkerState {
  /** What it does now, to complete "the worker …": it claims, or why it does not. */
  readonly doing: string
  /** Whether it does not go on by itself any more, so that the process has to be started again. */
  readonly isStuck: boolean
  /** Whether it has begun to stop, and claims nothing more. */
  readonly isStopping: boolean
}

/**
 * Whether the worker of this process goes on, for health checks. A worker whose database is away goes on: it asks again and
 * again. One is stuck if its claims, its records or its attempts have not moved on for longer than all their time limits
 * together.
 */
export class WorkerLife extends Context.Tag("connected-payments/deliveries/WorkerLife")<
  WorkerLife,
  {
    /** The state of the worker; undefined before it has begun, and without one. */
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
