/**
 * One timer for all attempts in flight. They all have the same timeout, so they expire in the order in which they
 * started, and only the oldest needs a timer. A timer (or an abort signal) for each would cost half of the sending
 * rate.
 */
import { performance } from "node:perf_hooks"

/**
 * How many expire before the event loop gets to other work. A thousand hanging attempts that began together expire
 * together, and ending each of them costs half a millisecond.
 */
const expireAtOnce = 4

/** The longest pause between two such batches, in milliseconds, if simultaneous deadlines may be spread over time. */
const longestPause = 10

/**
 * Something with a deadline: a node in the linked list of those that share a timeout. A `Map` of all would be copied
 * again and again as they come and go, and V8 keeps an old copy's contents until a full garbage collection.
 */
export abstract class Expiring {
  /** Its list, its neighbours there, and when it expires, by `performance.now()`. */
  deadlines: Deadlines | null = null
  sooner: Expiring | null = null
  later: Expiring | null = null
  endsAt = 0

  /** Called once, when the timeout has passed since it was added; must not throw. */
  abstract expire(): void
}

/** Things in progress that share a timeout. Each is in at most one such list. */
export class Deadlines {
  readonly #timeoutMillis: number
  readonly #spreadMillis: number
  #first: Expiring | null = null
  #last: Expiring | null = null
  #size = 0
  #timer: NodeJS.Timeout | null = null

  /**
   * `timeoutMillis`: how long each may take, in milliseconds, greater than 0. `spreadMillis`: how much later some may
   * expire if many would expire at once, so that ending them leaves time for other work.
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

  /** Starts the timeout of one. */
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

  /** Removes one that has ended before its deadline; no effect if it has already expired. */
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

  /** Removes all. */
  clear(): void {
    while (this.#first !== null) this.delete(this.#first)
  }

  #arm(millis: number): void {
    // Timers run before arrived data is read: after a pause of this process, answers that came in time would count as
    // late
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
      // This may add another, which then comes last
      expiring.expire()
    }
    this.#timer = null
  }

  /** How long to wait before the next batch, so that all that are due by now have expired when the spread ends. */
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
