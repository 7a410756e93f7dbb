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

/** The longest pause between two such turns, in milliseconds, if what expires together may be spread over a time. */
const longestPause = 10

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
  readonly #spreadMillis: number
  #first: Expiring | null = null
  #last: Expiring | null = null
  #size = 0
  #timer: NodeJS.Timeout | null = null

  /**
   * `timeoutMillis`: how long each may take, in milliseconds, greater than 0. `spreadMillis`: how much later some may expire if
   * many would at once, so that ending them leaves time for other work.
   */
  constructor(timeoutMillis: number, spreadMillis = 0) {
    this.#timeoutMillis = timeoutMillis
    this.#spreadMillis = spreadMillis
  }

  /** How many are in progress. */
  get size(): number {
    return this.#size
  }

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
        this.#sweepAfter(this.#pauseAt(now, expiring))
        return
      }
      expired += 1
      this.delete(expiring)
      // This may add another at once, which then comes last
      expiring.expire()
    }
    this.#timer = null
  }

  /** How long to wait before the next turn, so that all that is due by now has expired once the spread is over. */
  #pauseAt(now: number, first: Expiring): number {
    const left = first.endsAt + this.#spreadMillis - now
    if (left <= 0) return 0
    let due = 0
    for (let one: Expiring | null = first; one !== null && one.endsAt <= now; one = one.later) due += 1
    return Math.min(longestPause, (left * expireAtOnce) / due)
  }

  #sweepAfter(millis: number): void {
    if (millis < 1) setImmediate(() => this.#sweep())
    else setTimeout(() => this.#sweep(), millis).unref()
  }
}
