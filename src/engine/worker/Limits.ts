import { Duration } from "effect"
import type { EndpointId, OrganizationId } from "../../platform/kit/Ids.ts"
import { type AskedFor, type Claim, type ClaimOptions, type QueuePlace, queueStart } from "../queue/Claim.ts"
import type { DestinationSettings } from "../transport/DestinationUrl.ts"

export interface WorkerOptions extends DestinationSettings {
  /** The transport's timeout for one exchange, plus the time to record its outcome. */
  readonly lease: Duration.Duration
  /** How long after its claim an attempt may still begin, so that it ends within its lease. */
  readonly startWithin: Duration.Duration
  /**
   * Attempts in flight in this process, except those that have waited more than a moment for their answer: see
   * `Attempts`.
   */
  readonly concurrency: number
  /** Attempts in flight per endpoint in this process. */
  readonly concurrencyPerEndpoint: number
  /** How often to look for due deliveries when nothing wakes the worker. */
  readonly pollInterval: Duration.Duration
  /** How long a shutdown waits for attempts in flight. */
  readonly drainTimeout: Duration.Duration
  readonly userAgent: string
}

/** The most deliveries that one claim takes. */
export const maxClaim = 256

/**
 * Derives the times of a claimed delivery so that its attempt, however late it begins and however late its timeout ends
 * it, ends within its lease: another process may claim the delivery afterwards.
 *
 * @param timeout of one exchange
 * @param margin how much longer than that the lease lasts
 */
export const leaseTimes = (timeout: Duration.Duration, margin: Duration.Duration) => {
  const timeoutSpread = Duration.min(Duration.times(timeout, 0.1), Duration.times(margin, 0.5))
  return {
    lease: Duration.sum(timeout, margin),
    startWithin: Duration.subtract(margin, timeoutSpread),
    timeoutSpread
  }
}

/**
 * Tracks how quickly endpoints answer this worker's attempts. This determines how many attempts to an endpoint are made
 * at once, and from which share of the places.
 *
 * An unknown endpoint begins with a few attempts at once and gets one more with every quick answer, up to `usualMost`.
 * With prompt answers it gets more than that, up to its cap, and loses one with each answer that is only quick: many at
 * once to a prompt endpoint hold their places for no longer than a few to another. One attempt that is not answered
 * quickly makes an endpoint slow. The next quick answer, with nothing overdue at the same time, ends that, and it
 * begins again with one at once. So it pays for an endpoint to be quick, and one that alternates between quick and slow
 * never holds much.
 */

/** An attempt that takes longer than this, in milliseconds, makes its endpoint slow. */
export const slowAfterMillis = 250

/** An answer within this time, in milliseconds, is prompt. */
const promptWithinMillis = 100

/** The most attempts at once to an endpoint whose answers are quick but not prompt, if its cap allows as many. */
export const usualMost = 16

/**
 * An endpoint hangs if its last attempt timed out or took longer than this, in milliseconds; otherwise it is only slow.
 */
const hangsAfterMillis = 2000

/** How long an endpoint stays slow without further answers, in milliseconds. */
const slowFor = 10 * 60 * 1000

/** The most endpoints remembered with their allowed number of attempts, and the most remembered as slow. */
const maxKnown = 10_000
const maxSlow = 5_000

export interface SlowEndpoint {
  readonly organizationId: OrganizationId
  /** Whether its last attempt took very long, or none has ended since it became slow: others go before it. */
  readonly hangs: boolean
}

interface Slow extends SlowEndpoint {
  readonly since: number
}

/** See above. */
export class EndpointPace {
  readonly #cap: number
  readonly #first: number
  readonly #allowed = new Map<EndpointId, number>()
  /** Ordered by when they were last asked for, the longest ago first. */
  readonly #slow = new Map<EndpointId, Slow>()

  /** `cap`: the most attempts at once to an endpoint; `first`: how many to an unknown one. */
  constructor({ cap, first }: { readonly cap: number; readonly first: number }) {
    this.#cap = cap
    this.#first = Math.min(first, cap)
  }

  /** The slow endpoints, ordered by when they were last asked for, the longest ago first. */
  get slow(): ReadonlyMap<EndpointId, SlowEndpoint> {
    return this.#slow
  }

  isSlow(endpointId: EndpointId): boolean {
    return this.#slow.has(endpointId)
  }

  /** The allowed number of concurrent attempts to an endpoint that is not slow. */
  allowed(endpointId: EndpointId): number {
    return this.#allowed.get(endpointId) ?? this.#first
  }

  /**
   * Records an attempt that ended quickly, whatever its result, with none overdue, after `tookMillis`. Returns whether
   * the endpoint was slow.
   */
  noteQuick(endpointId: EndpointId, tookMillis: number): boolean {
    const wasSlow = this.#slow.delete(endpointId)
    const allowed = wasSlow ? 0 : this.allowed(endpointId)
    const most = tookMillis <= promptWithinMillis ? this.#cap : Math.min(usualMost, this.#cap)
    if (allowed !== most) this.#allow(endpointId, allowed < most ? allowed + 1 : allowed - 1)
    return wasSlow
  }

  /**
   * Records an overdue attempt. `now` is in milliseconds of a monotonic clock. Until an attempt ends, the endpoint is
   * assumed to hang; if it is only late, that is soon known.
   */
  noteSlow(endpointId: EndpointId, organizationId: OrganizationId, now: number): void {
    const hangs = this.#slow.get(endpointId)?.hangs ?? true
    this.#slow.set(endpointId, { organizationId, hangs, since: now })
    forgetFirst(this.#slow, maxSlow)
  }

  /** Records that an overdue attempt ended after `tookMillis`. `timedOut`: without an answer. */
  noteEnded(endpointId: EndpointId, tookMillis: number, timedOut: boolean): void {
    const slow = this.#slow.get(endpointId)
    const hangs = timedOut || tookMillis >= hangsAfterMillis
    if (slow !== undefined) this.#slow.set(endpointId, { ...slow, hangs })
  }

  /** Records that these were asked for: the others come first now. */
  noteAsked(endpointIds: Iterable<EndpointId>): void {
    for (const endpointId of endpointIds) {
      const slow = this.#slow.get(endpointId)
      if (slow === undefined) continue
      this.#slow.delete(endpointId)
      this.#slow.set(endpointId, slow)
    }
  }

  /**
   * Forgets endpoints that have been slow for long without a further answer. They begin again with one attempt at once.
   */
  forgetOld(now: number, isBusy: (endpointId: EndpointId) => boolean): void {
    for (const [endpointId, { since }] of this.#slow) {
      if (now - since < slowFor || isBusy(endpointId)) continue
      this.#slow.delete(endpointId)
      this.#allow(endpointId, 1)
    }
  }

  #allow(endpointId: EndpointId, allowed: number): void {
    this.#allowed.delete(endpointId)
    this.#allowed.set(endpointId, allowed)
    forgetFirst(this.#allowed, maxKnown)
  }
}

const forgetFirst = (map: Map<EndpointId, unknown>, limit: number): void => {
  const [first] = map.keys()
  if (first !== undefined && map.size > limit) map.delete(first)
}

/**
 * How a worker's places are shared. The `concurrency` is for young attempts; there are further places for those that
 * wait for a slow answer. A slow endpoint, or an organization with many of them, gets a fraction of the free ones: the
 * more there are, the less each gets, and some places always stay free.
 */

/** Attempts in flight beyond the `concurrency`: each costs a socket, and the memory of its exchange. */
export const placesAside = 2048

/**
 * Attempts that turn out slow move aside while fewer than this are there: the last eighth is for newly due deliveries.
 */
export const mostMovedAside = (placesAside * 7) / 8

/** Slow endpoints get more attempts while fewer than this many, for all together, are in flight. */
const placesOfSlow = placesAside / 2

/** The fractions of the free places that one slow endpoint, and all of one organization's together, may hold. */
const shareOf = { endpoint: 1 / 8, organization: 1 / 4 }

/**
 * The fraction of the free places that hanging endpoints get at a time, and the fewest for each that gets any. Attempts
 * that begin together time out together, and ending a thousand at once would hold up all other attempts; this spreads
 * their beginnings and ends over the timeout.
 */
const hangingAtOnce = { share: 1 / 20, fewest: 2 }

/** The most slow endpoints that one claim asks for. */
const maxAsked = 128

/** How many newly due deliveries are taken at a time, and how many of one endpoint may then be in flight. */
const maxNewest = 256
export const newestPerEndpoint = 2

type Caps = Pick<WorkerOptions, "concurrency" | "concurrencyPerEndpoint">

/** The first concurrency cap of an unknown endpoint: the fewer places, the fewer attempts. */
export const firstAttempts = ({ concurrency, concurrencyPerEndpoint }: Caps): number =>
  Math.min(concurrencyPerEndpoint, Math.max(1, Math.min(4, Math.floor(concurrency / 16))))

/** The most attempts at once to an endpoint that is not known to answer promptly. */
export const usualCap = ({ concurrencyPerEndpoint }: Pick<Caps, "concurrencyPerEndpoint">): number =>
  Math.min(usualMost, concurrencyPerEndpoint)

/** The most attempts at once to a slow endpoint. */
export const mostToSlow = (caps: Caps): number => Math.min(caps.concurrency, usualCap(caps))

/** How many newly due deliveries may be taken, given this many attempts aside. */
export const newestRoom = (aside: number): number =>
  Math.min(maxNewest, Math.max(0, Math.ceil((placesAside - aside) / 8)))

/** The number of an endpoint's deliveries held. */
interface Held {
  readonly held: number
  readonly organizationId: OrganizationId
}

/**
 * What to claim for slow endpoints, in their order, as far as there is room. Hanging ones come last, a few attempts at
 * a time; one that does not hang, and has nothing in flight, always gets an attempt from the places for newly due
 * deliveries.
 *
 * @param slow the slow endpoints; those whose turn it is come first
 * @param lanes how many deliveries of each endpoint are held
 * @param aside how many attempts are aside
 */
export const slowRooms = (
  slow: ReadonlyMap<EndpointId, SlowEndpoint>,
  lanes: Iterable<readonly [EndpointId, Held]>,
  aside: number,
  caps: Caps
): ReadonlyArray<AskedFor> => {
  const held = new Map<EndpointId, number>()
  const heldOf = new Map<OrganizationId, number>()
  let free = placesOfSlow
  for (const [endpointId, lane] of lanes) {
    if (!slow.has(endpointId)) continue
    free -= lane.held
    held.set(endpointId, lane.held)
    heldOf.set(lane.organizationId, (heldOf.get(lane.organizationId) ?? 0) + lane.held)
  }
  const ofEndpoint = Math.min(mostToSlow(caps), Math.max(1, Math.floor(free * shareOf.endpoint)))
  const ofOrganization = Math.max(1, Math.floor(free * shareOf.organization))
  const hanging = hangingLimits(slow, free)
  let kept = newestRoom(aside)
  const asked: Array<AskedFor> = []
  const askFor = (endpointId: EndpointId, { hangs, organizationId }: SlowEndpoint) => {
    const has = held.get(endpointId) ?? 0
    const inOrganization = heldOf.get(organizationId) ?? 0
    const most = hangs ? Math.min(hanging.ofEndpoint, hanging.left) : free
    const share = Math.min(ofEndpoint - has, ofOrganization - inOrganization, free, most)
    const room = share <= 0 && !hangs && has === 0 && kept > 0 ? 1 : share
    if (room <= 0 || asked.length >= maxAsked) return
    if (share <= 0) kept -= 1
    asked.push({ endpointId, from: queueStart, room })
    heldOf.set(organizationId, inOrganization + room)
    free -= room
    if (hangs) hanging.left -= room
  }
  for (const hangs of [false, true]) {
    for (const [endpointId, known] of slow) if (known.hangs === hangs) askFor(endpointId, known)
  }
  return asked
}

/** How many attempts hanging endpoints may get at a time: all together, and each of them. */
const hangingLimits = (slow: ReadonlyMap<EndpointId, SlowEndpoint>, free: number) => {
  let count = 0
  for (const { hangs } of slow.values()) if (hangs) count += 1
  const left = Math.max(1, Math.floor(free * hangingAtOnce.share))
  return { left, ofEndpoint: Math.max(hangingAtOnce.fewest, Math.floor(left / count)) }
}

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
type Turn = Required<Pick<ClaimOptions, "from" | "leftOut" | "askedFor">>

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
