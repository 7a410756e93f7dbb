import { Duration } from "effect"
import type { EndpointId, OrganizationId } from "../../platform/kit/Ids.ts"
import { type AskedFor, queueStart } from "../queue/Claim.ts"
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
