/**
 * Whose turn it is: what a worker remembers from claim to claim, so that an endpoint that is dead or slow, however much
 * of its own is due, costs the others neither places nor time.
 *
 * A claim takes what is due in order of time and leaves out endpoints at their cap. That rule by itself would step over
 * all rows of a busy endpoint in every claim. So an endpoint that stays at its cap is set apart: the others are looked
 * for from where theirs begin, and each of those set apart from where its own begin. Slow ones are left out as well.
 */
import type { EndpointId } from "../../kit/Ids.ts"
import { type AskedFor, type Claim, type ClaimOptions, type QueuePlace, queueStart } from "./Claim.ts"

/** How long an endpoint is at its cap before it is set apart, in milliseconds. */
const patience = 250

/** The most endpoints that are set apart: each costs a claim a search of its own. */
const maxApart = 64

/**
 * How often a claim starts again from the beginning of the queue, in milliseconds: while some endpoints are set apart,
 * and otherwise. That finds what was stored by a transaction that took longer than the time a claim looks back, and
 * what a worker that died had claimed. In between, a claim need not step over rows that are done but not yet cleared
 * away by PostgreSQL.
 */
const startAfreshAfter = { whileApart: 30_000, else: 1000 }

/**
 * The time to the next such start is this many times as long as the last two took longer than other claims, but at most
 * as long as while some are set apart. At the beginning may be slow endpoints' rows, and all that was done since the
 * beginning of the oldest transaction: while `pg_dump` runs, PostgreSQL can't clear that away.
 */
const startAfreshFactor = 200

/** The share of the latest claim in how long claims take on average. */
const latestShare = 0.1

/** What is known about endpoints at a claim. */
export interface Known {
  /** Those that are slow: claims for the others leave them out, and they are claimed separately. */
  readonly slow: Iterable<EndpointId>
  readonly isSlow: (endpointId: EndpointId) => boolean
  /** How many attempts at once an endpoint in flight is allowed. */
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
  /** Whether it is to start afresh soon. */
  #afresh = false
  /** How much longer the last two claims that did so took than others do: one may have been held up by chance. */
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

  /** Rows that were left out so far no longer are: where they begin is not known. */
  startAfresh(): void {
    this.#afresh = true
  }

  /** What the next claim asks for. `now`: milliseconds of a clock that never goes back. */
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

  /** Notes what the claim of that turn found, and how long it took, in milliseconds. */
  learn(turn: Turn, claim: Pick<Claim, "askedFor" | "place">, tookMillis = 0): void {
    if (turn.from === queueStart)
      this.#extraMillis = [Math.max(0, tookMillis - this.#usualMillis), this.#extraMillis[0]]
    else this.#usualMillis += latestShare * (tookMillis - this.#usualMillis)
    this.#learnApart(turn, claim)
    // Rows of endpoints that are at their cap, but not set apart, were stepped over too: they would be lost from view
    const allApart = [...this.#atCapSince.keys()].every((endpointId) => this.#apart.has(endpointId))
    if (allApart) this.#from = claim.place
  }

  #learnApart(turn: Turn, claim: Pick<Claim, "askedFor">): void {
    for (const { endpointId } of turn.askedFor) {
      const place = claim.askedFor.get(endpointId)
      // Nothing of its is due any more: what comes due later stands behind the place where the others are looked for
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

  /** Those that are set apart take at most half of the places together: the others keep the rest. */
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
