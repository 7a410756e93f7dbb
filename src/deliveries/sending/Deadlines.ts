/**
 * One timer for all attempts in flight. They all have the same time-out, so they run out in the order in which they
 * started, and only the oldest needs a timer. A timer (or an abort signal) for each would cost half of the sending
 * rate.
 */
import { performance } from "node:perf_hooks"

/**
 * How many expire before the event loop goes on to other work. A thousand attempts that hang have begun together and
 * expire together, and ending each of them costs half a millisecond.
 */
const expireAtOnce = 4

/** Something that must end in time. */
export interface Expiring {
  /** Called once, when the time-out has passed since it was added; must not throw. */
  readonly expire: () => void
}

/** The things in progress that share a time-out. */
export class Deadlines {
  readonly #timeoutMillis: number
  readonly #pending = new Map<Expiring, number>()
  #timer: NodeJS.Timeout | null = null

  /** `timeoutMillis`: how long each may take, in milliseconds, greater than 0. */
  constructor(timeoutMillis: number) {
    this.#timeoutMillis = timeoutMillis
  }

  /** How many are in progress. */
  get size(): number {
    return this.#pending.size
  }

  /** Starts the time-out of one. */
  add(expiring: Expiring): void {
    this.#pending.set(expiring, performance.now() + this.#timeoutMillis)
    if (this.#timer === null) this.#arm(this.#timeoutMillis)
  }

  /** Notes that one has ended by itself; no effect if it has already expired. */
  delete(expiring: Expiring): void {
    this.#pending.delete(expiring)
  }

  #arm(millis: number): void {
    // Timers run before what has arrived is read: after a pause of this process, answers that came in time would be late
    this.#timer = setTimeout(() => setImmediate(() => this.#sweep()), Math.ceil(millis))
    this.#timer.unref()
  }

  #sweep(): void {
    const now = performance.now()
    let expired = 0
    for (const [expiring, endsAt] of this.#pending) {
      if (endsAt > now) {
        this.#arm(endsAt - now)
        return
      }
      if (expired === expireAtOnce) {
        setImmediate(() => this.#sweep())
        return
      }
      expired += 1
      this.#pending.delete(expiring)
      // This may add another at once, which then comes last
      expiring.expire()
    }
    this.#timer = null
  }
}
