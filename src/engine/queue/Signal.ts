import { Effect, type Fiber } from "effect"

/**
 * Tells one waiting fiber that there is something to do. If none is waiting, the signal is remembered, but only once.
 * The fiber that resumes clears it: one that was interrupted instead leaves it to the next.
 */
export class Signal {
  #raised = false
  #resume: (() => void) | null = null
  #waiter: Fiber.RuntimeFiber<unknown, unknown> | null = null
  #timer: NodeJS.Timeout | undefined

  /** Whether a fiber is waiting. */
  get isAwaited(): boolean {
    return this.#resume !== null && this.#waiter?.unsafePoll() === null
  }

  /** Raises the signal. Can be called from anywhere; returns at once. */
  raise(): void {
    this.#raised = true
    const resume = this.#resume
    if (resume === null) return
    this.#resume = null
    clearTimeout(this.#timer)
    resume()
  }

  /** Clears the signal. */
  reset(): void {
    this.#raised = false
  }

  /** Waits until the signal has been raised since the last wait, or until `millis` have passed. */
  wait(millis?: number): Effect.Effect<void> {
    return Effect.withFiberRuntime<void>((fiber) => {
      if (this.#raised) return this.#noted
      return Effect.zipRight(this.#suspended(fiber, millis), this.#noted)
    })
  }

  readonly #noted = Effect.sync(() => {
    this.#raised = false
  })

  #suspended(fiber: Fiber.RuntimeFiber<unknown, unknown>, millis: number | undefined): Effect.Effect<void> {
    return Effect.async<void>((resume) => {
      this.#waiter = fiber
      this.#resume = () => resume(Effect.void)
      // A previous waiter was interrupted
      clearTimeout(this.#timer)
      this.#timer = millis === undefined ? undefined : setTimeout(this.#onTime, millis).unref()
    })
  }

  readonly #onTime = (): void => this.raise()
}
