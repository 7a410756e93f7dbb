import { performance } from "node:perf_hooks"

/**
 * How long a step of a loop may take that is bounded by itself, in milliseconds: two statements, each with its wait for a
 * connection. Longer than their own time limits together, so that a slow database is never taken for a stuck loop.
 */
export const patience = 60_000

/** What a loop of the worker does, and by when it must have gone on: whether it turns can be asked from outside. */
export class LoopHealth {
  #doing: string
  #goesOnBy = performance.now() + patience

  constructor(doing: string) {
    this.#doing = doing
  }

  /** What the loop does now, to complete "the worker …". */
  get doing(): string {
    return this.#doing
  }

  /** The loop begins something that is bounded, or a wait of so many milliseconds. */
  begin(doing: string, millis = 0): void {
    this.#doing = doing
    this.#goesOnBy = performance.now() + millis + patience
  }

  /** The loop waits for as long as there is nothing to do. */
  rest(doing: string): void {
    this.#doing = doing
    this.#goesOnBy = Number.POSITIVE_INFINITY
  }

  get isResting(): boolean {
    return this.#goesOnBy === Number.POSITIVE_INFINITY
  }

  /** Whether the loop should have gone on before this time, by `performance.now()`. */
  isStuck(now: number): boolean {
    return now > this.#goesOnBy
  }
}
