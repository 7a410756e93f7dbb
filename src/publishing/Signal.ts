import { Effect } from "effect"
import { suspend } from "../fibers/Suspend.ts"

/**
 * Tells one waiting fiber that there is something to do. If none is waiting, the signal is remembered, but only once. It is
 * forgotten by the fiber that goes on because of it: one that was interrupted instead leaves it to the next.
 */
export class Signal {
  #raised = false
  #resume: (() => void) | null = null
  #timer: NodeJS.Timeout | undefined

  /** Can be called from anywhere; returns at once. */
  raise(): void {
    this.#raised = true
    const resume = this.#resume
    if (resume === null) return
    this.#resume = null
    clearTimeout(this.#timer)
    resume()
  }

  /** Forgets that it was raised. */
  reset(): void {
    this.#raised = false
  }

  /** Waits until the signal has been raised since the last wait, or this many milliseconds have passed. */
  wait(millis?: number): Effect.Effect<void> {
    return Effect.suspend(() => (this.#raised ? this.#noted : Effect.zipRight(this.#suspended(millis), this.#noted)))
  }

  readonly #noted = Effect.sync(() => {
    this.#raised = false
  })

  #suspended(millis: number | undefined): Effect.Effect<void> {
    return suspend<void>((resume) => {
      this.#resume = () => resume(Effect.void)
      // Whoever waited before was interrupted
      clearTimeout(this.#timer)
      this.#timer = millis === undefined ? undefined : setTimeout(this.#onTime, millis).unref()
    })
  }

  readonly #onTime = (): void => this.raise()
}
