import { Effect } from "effect"

/**
 * Tells one waiting fiber that there is something to do. If none is waiting, the signal is remembered, but only once.
 */
export class Signal {
  #raised = false
  #resume: (() => void) | null = null

  /** Whether a fiber is waiting. */
  get isAwaited(): boolean {
    return this.#resume !== null
  }

  /** Can be called from anywhere; returns at once. */
  raise(): void {
    const resume = this.#resume
    if (resume === null) {
      this.#raised = true
    } else {
      this.#resume = null
      resume()
    }
  }

  /** Forgets that it was raised. */
  reset(): void {
    this.#raised = false
  }

  /** Waits until the signal has been raised since the last wait, or this many milliseconds have passed. */
  wait(millis?: number): Effect.Effect<void> {
    return Effect.async((resume) => {
      if (this.#raised) {
        this.#raised = false
        return resume(Effect.void)
      }
      const timer = millis === undefined ? undefined : setTimeout(() => this.raise(), millis)
      this.#resume = () => {
        clearTimeout(timer)
        resume(Effect.void)
      }
      return Effect.sync(() => {
        clearTimeout(timer)
        this.#resume = null
      })
    })
  }
}
