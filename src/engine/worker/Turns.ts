/**
 * Fairness between endpoints across claims: the state that keeps an endpoint that is down or slow, however long its
 * backlog, from costing the others places or time.
 *
 * A claim takes due deliveries in order of time and leaves out endpoints at their cap. That rule alone would step over
 * all rows of a busy endpoint in every claim. So an endpoint that stays at its cap is set apart: the search for the
 * others starts where theirs begin, and each endpoint set apart is searched from where its own begin. Slow ones are
 * left out as well.
 */
import type { EndpointId } from "../../platform/kit/Ids.ts"
import { type AskedFor, type Claim, type ClaimOptions, type QueuePlace, queueStart } from "../queue/Claim.ts"

/** How long an endpoint stays at its cap before it is set apart, in milliseconds. */
const patience = 250

/** The most endpoints that are set apart: each costs every claim a separate search. */
const maxApart = 64

/**
 * How often a claim restarts from the beginning of the queue, in milliseconds: while some endpoints are set apart, and
 * otherwise. A restart finds rows stored by a transaction that took longer than the time a claim looks back, and rows
 * that a dead worker had claimed. In between, claims need not step over finished rows that PostgreSQL has not vacuumed
 * yet.
 */
const startAfreshAfter = { whileApart: 30_000, else: 1000 }

/**
 * The wait before the next restart, as a multiple of the extra time that the last two took compared with other claims;
 * at most as long as while some are set apart. Rows of slow endpoints may be at the beginning, and all rows finished
 * since the oldest transaction began: while `pg_dump` runs, PostgreSQL can't vacuum those.
 */
const startAfreshFactor = 200

/** The weight of the latest claim in the moving average of claim times. */
const latestShare = 0.1

/** The state of endpoints at a claim. */
export interface Known {
  /** Slow endpoints: claims for the others leave them out, and they are claimed separately. */
  readonly slow: Iterable<EndpointId>
  readonly isSlow: (endpointId: EndpointId) => boolean
  /** The concurrency cap of an endpoint in flight. */
  readonly capOf: (endpointId: EndpointId) => number
}

/** The part of a claim's options that the turns decide. */
export type Turn = Required<Pick<ClaimOptions, "from" | "leftOut" | "askedFor">>

/** See the module. */
export class Turns {
  readonly #concurrency: number
  /** Since when an endpoint has been at its cap at every claim. */
  #atCapSince = new Map<EndpointId, number>()
  readonly #apart = new Map<EndpointId, QueuePlace>()
  #from: QueuePlace = queueStart
  #startedAfreshAt = Number.NEGATIVE_INFINITY
  /** Whether to restart soon. */
  #afresh = false
  /** The extra time of the last two restarts compared with other claims: one may have been delayed by chance. */
  #extraMillis: readonly [last: number, before: number] = [0, 0]
  #usualMillis = 0

  /** `concurrency`: attempts in flight. */
  constructor(concurrency: number) {
    this.#concurrency = concurrency
  }

  /** The endpoints that are set apart, each with where its due deliveries begin. */
  get apart(): ReadonlyMap<EndpointId, QueuePlace> {
    return this.#apart
  }

  /** Requests a restart soon: rows left out so far no longer are, and their place is not known. */
  startAfresh(): void {
    this.#afresh = true
  }

  /** Options for the next claim. `now` is in milliseconds of a monotonic clock. */
  next(inFlight: ReadonlyMap<EndpointId, number>, now: number, known: Known): Turn {
    for (const endpointId of this.#apart.keys()) if (known.isSlow(endpointId)) this.#apart.delete(endpointId)
    this.#noteCaps(inFlight, now, known)
    if (now - this.#startedAfreshAt >= this.#restsFor()) {
      this.#afresh = false
      this.#from = queueStart
      for (const endpointId of this.#apart.keys()) this.#apart.set(endpointId, queueStart)
      this.#startedAfreshAt = now
    }
    const share = this.#shareOfApart()
    const askedFor: Array<AskedFor> = []
    for (const [endpointId, from] of this.#apart) {
      const room = Math.min(share, known.capOf(endpointId)) - (inFlight.get(endpointId) ?? 0)
      if (room > 0) askedFor.push({ endpointId, from, room })
    }
    return { from: this.#from, leftOut: [...this.#apart.keys(), ...known.slow], askedFor }
  }

  /** Records the result of that turn's claim, and its duration in milliseconds. */
  learn(turn: Turn, claim: Pick<Claim, "askedFor" | "place">, tookMillis = 0): void {
    if (turn.from === queueStart)
      this.#extraMillis = [Math.max(0, tookMillis - this.#usualMillis), this.#extraMillis[0]]
    else this.#usualMillis += latestShare * (tookMillis - this.#usualMillis)
    this.#learnApart(turn, claim)
    // Otherwise the claim also stepped over rows of endpoints at their cap but not set apart: advancing would lose
    // those
    const allApart = [...this.#atCapSince.keys()].every((endpointId) => this.#apart.has(endpointId))
    if (allApart) this.#from = claim.place
  }

  #learnApart(turn: Turn, claim: Pick<Claim, "askedFor">): void {
    for (const { endpointId } of turn.askedFor) {
      const place = claim.askedFor.get(endpointId)
      // It has nothing due any more; deliveries that come due later are behind the place where the search for the
      // others starts
      if (place === undefined) this.#apart.delete(endpointId)
      else this.#apart.set(endpointId, place)
    }
  }

  #restsFor(): number {
    if (this.#afresh) return patience
    if (this.#apart.size > 0) return startAfreshAfter.whileApart
    const forCost = Math.min(startAfreshAfter.whileApart, startAfreshFactor * Math.min(...this.#extraMillis))
    return Math.max(startAfreshAfter.else, forCost)
  }

  /** The share of each endpoint set apart: together they take at most half of the places. */
  #shareOfApart(): number {
    return Math.max(1, Math.floor(this.#concurrency / 2 / Math.max(1, this.#apart.size)))
  }

  #noteCaps(inFlight: ReadonlyMap<EndpointId, number>, now: number, { capOf, isSlow }: Known): void {
    const before = this.#atCapSince
    this.#atCapSince = new Map()
    for (const [endpointId, count] of inFlight) {
      if (isSlow(endpointId) || count < capOf(endpointId)) continue
      const since = before.get(endpointId) ?? now
      this.#atCapSince.set(endpointId, since)
      if (now - since >= patience && this.#apart.size < maxApart && !this.#apart.has(endpointId)) {
        this.#apart.set(endpointId, this.#from)
      }
    }
  }
}
