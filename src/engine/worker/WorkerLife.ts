import { performance } from "node:perf_hooks"
import { Effect } from "effect"
import { service } from "../../platform/kit/Service.ts"

/**
 * How long a bounded step of a loop may take, in milliseconds: two statements, each with its wait for a connection.
 * Longer than their own time limits together, so that a slow database is never taken for a stuck loop.
 */
export const stuckAfterMillis = 60_000

/** The health of a worker's loop: what it is doing, and by when it must make progress. */
export class LoopHealth {
  #doing: string
  #nextStepBy = performance.now() + stuckAfterMillis

  constructor(doing: string) {
    this.#doing = doing
  }

  /** What the loop is doing, to complete "the worker …". */
  get doing(): string {
    return this.#doing
  }

  /** Begins a bounded step, or a wait of `millis`. */
  begin(doing: string, millis = 0): void {
    this.#doing = doing
    this.#nextStepBy = performance.now() + millis + stuckAfterMillis
  }

  /** Begins a wait of any length, for something to do. */
  rest(doing: string): void {
    this.#doing = doing
    this.#nextStepBy = Number.POSITIVE_INFINITY
  }

  get isResting(): boolean {
    return this.#nextStepBy === Number.POSITIVE_INFINITY
  }

  /** Whether the loop should have made progress before `now`, by `performance.now()`. */
  isStuck(now: number): boolean {
    return now > this.#nextStepBy
  }
}

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
export class WorkerLife extends service<WorkerLife>()(
  "connected-payments/engine/WorkerLife",
  Effect.sync(() => {
    const registered: Array<(now: number) => WorkerState> = []
    return {
      state: () => registered.at(-1)?.(performance.now()),
      register: (look: (now: number) => WorkerState) =>
        Effect.acquireRelease(
          Effect.sync(() => void registered.push(look)),
          () => Effect.sync(() => void registered.splice(registered.indexOf(look), 1))
        )
    }
  })
) {}
