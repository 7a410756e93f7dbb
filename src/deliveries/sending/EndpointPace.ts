import type { EndpointId, OrganizationId } from "../../kit/Ids.ts"

/**
 * Tracks how quickly endpoints answer this worker's attempts. This determines how many attempts to an endpoint are made
 * at once, and from which share of the places (see `Shares.ts`).
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

/** See the module. */
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
