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

/**
 * Something that must end in time. It holds its own place in the list of those that share a time-out: a `Map` of all
 * would be copied again and again as they come and go, and V8 keeps what an old copy held until the whole heap is
 * collected.
 */
export abstract class Expiring {
  /** The deadlines that it is in, those before and after it there, and when it expires, by `performance.now()`. */
  deadlines: Deadlines | null = null
  sooner: Expiring | null = null
  later: Expiring | null = null
  endsAt = 0

  /** Called once, when the time-out has passed since it was added; must not throw. */
  abstract expire(): void
}

/** The things in progress that share a time-out. Each is in one such list at a time. */
export class Deadlines {
  readonly #timeoutMillis: number
  #first: Expiring | null = null
  #last: Expiring | null = null
  #size = 0
  #timer: NodeJS.Timeout | null = null

  /** `timeoutMillis`: how long each may take, in milliseconds, greater than 0. */
  constructor(timeoutMillis: number) {
    this.#timeoutMillis = timeoutMillis
  }

  /** How many are in progress. */
  get size(): number {
    return this.#size
  }

  /** The one that expires next. */
  get first(): Expiring | null {
    return this.#first
  }

  /** Starts the time-out of one. */
  add(expiring: Expiring): void {
    expiring.deadlines = this
    expiring.endsAt = performance.now() + this.#timeoutMillis
    expiring.sooner = this.#last
    if (this.#last === null) this.#first = expiring
    else this.#last.later = expiring
    this.#last = expiring
    this.#size += 1
    if (this.#timer === null) this.#arm(this.#timeoutMillis)
  }

  /** Notes that one has ended by itself; no effect if it has already expired. */
  delete(expiring: Expiring): void {
    if (expiring.deadlines !== this) return
    const { later, sooner } = expiring
    if (sooner === null) this.#first = later
    else sooner.later = later
    if (later === null) this.#last = sooner
    else later.sooner = sooner
    this.#size -= 1
    expiring.deadlines = null
    expiring.sooner = null
    expiring.later = null
  }

  #arm(millis: number): void {
    // Timers run before what has arrived is read: after a pause of this process, answers that came in time would be late
    this.#timer = setTimeout(() => setImmediate(() => this.#sweep()), Math.ceil(millis))
    this.#timer.unref()
  }

  #sweep(): void {
    const now = performance.now()
    let expired = 0
    for (let expiring = this.#first; expiring !== null; expiring = this.#first) {
      if (expiring.endsAt > now) {
        this.#arm(expiring.endsAt - now)
        return
      }
      if (expired === expireAtOnce) {
        setImmediate(() => this.#sweep())
        return
      }
      expired += 1
      this.delete(expiring)
      // This may add another at once, which then comes last
      expiring.expire()
    }
    this.#timer = null
  }
}
