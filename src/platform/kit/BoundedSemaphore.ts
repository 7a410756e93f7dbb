import { performance } from "node:perf_hooks"
import { Effect } from "effect"
import { ServiceUnavailable } from "../errors/Errors.ts"

/** The maximum time of a request that has to wait, from entering the queue to the end of its turn, in milliseconds. */
export const permitTimeoutMillis = 10_000

/** The maximum number of waiting requests. */
export const maxPermitWaiters = 1000

/** The error of a request that timed out, or found the queue full. */
export const permitRefused = (): ServiceUnavailable =>
  new ServiceUnavailable({ cause: "The request waited too long for its turn, or too many were waiting" })

interface Place {
  state: "waiting" | "running" | "left"
  timer?: NodeJS.Timeout
  readonly resume: (result: Effect.Effect<void, ServiceUnavailable>) => void
}

/**
 * A semaphore with a bounded first-in, first-out queue. While the running effects hang, as with a database that does
 * not answer, the queue neither grows without bound nor holds a request for long: one that finds it full, or has been
 * in it too long, is refused. A request that need not wait is bounded by its effect alone.
 */
export class BoundedSemaphore {
  #running = 0
  readonly #waiting = new Set<Place>()
  readonly #atOnce: number
  readonly #patience: number

  constructor(atOnce: number, patience = permitTimeoutMillis) {
    this.#atOnce = atOnce
    this.#patience = patience
  }

  /** Runs an effect when its turn comes. */
  readonly turn = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E | ServiceUnavailable, R> =>
    Effect.suspend(() => {
      let place: Place | undefined
      const enteredAt = performance.now()
      const begun = Effect.async<void, ServiceUnavailable>((resume) => {
        place = { state: "waiting", resume }
        this.#enter(place)
      })
      // Disconnected: an effect that hangs may also be slow to interrupt
      const ownTurn = Effect.suspend(() =>
        place?.timer === undefined
          ? effect
          : Effect.timeoutFail(Effect.disconnect(effect), {
              duration: Math.max(1, enteredAt + this.#patience - performance.now()),
              onTimeout: permitRefused
            })
      )
      return Effect.ensuring(
        Effect.zipRight(begun, ownTurn),
        // Wherever an interruption occurs
        Effect.sync(() => {
          if (place !== undefined) this.#leave(place)
        })
      )
    })

  #enter(place: Place): void {
    if (this.#running < this.#atOnce) {
      this.#begin(place)
    } else if (this.#waiting.size >= maxPermitWaiters) {
      this.#refuse(place)
    } else {
      this.#waiting.add(place)
      place.timer = setTimeout(() => this.#refuse(place), this.#patience)
    }
  }

  #begin(place: Place): void {
    place.state = "running"
    this.#running += 1
    place.resume(Effect.void)
  }

  #refuse(place: Place): void {
    this.#leave(place)
    place.resume(permitRefused())
  }

  #leave(place: Place): void {
    const wasRunning = place.state === "running"
    place.state = "left"
    clearTimeout(place.timer)
    this.#waiting.delete(place)
    if (!wasRunning) return
    this.#running -= 1
    const [next] = this.#waiting
    if (next === undefined) return
    clearTimeout(next.timer)
    this.#waiting.delete(next)
    this.#begin(next)
  }
}
