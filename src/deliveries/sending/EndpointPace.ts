import type { EndpointId, OrganizationId } from "../../kit/Ids.ts"

/**
 * What a worker knows about how quickly endpoints answer, from its own attempts. It decides how many attempts to an
 * endpoint are made at once, and out of which share of the places (see `Shares.ts`).
 *
 * An endpoint that is not known begins with a few at once and gets one more with every quick answer, up to `usualMost`.
 * With answers that are prompt it gets more than that, up to its cap, and one less with each that is only quick: many at
 * once to an endpoint that answers promptly hold their places for no longer than a few to one that does not. One
 * attempt that is not answered quickly makes it slow; the next quick answer, with nothing overdue at the same time,
 * ends that, and it begins again with one at once. So it pays for an endpoint to be quick, and one that is quick and
 * slow by turns never holds much.
 */

/** An attempt that takes longer makes its endpoint a slow one, in milliseconds. */
export const slowAfterMillis = 250

/** An answer within this time is prompt, in milliseconds. */
const promptWithinMillis = 100

/** The most attempts at once to an endpoint whose answers are quick, but not prompt, if its cap allows as many. */
export const usualMost = 16

/** An endpoint whose last attempt timed out, or took longer than this, hangs; up to this, it is only slow. In milliseconds. */
const hangsAfterMillis = 2000

/** How long an endpoint without further answers stays slow, in milliseconds. */
const slowFor = 10 * 60 * 1000

/** The most endpoints whose allowed number of attempts is remembered, and the most that are remembered as slow. */
const maxKnown = 10_000
const maxSlow = 5_000

export interface SlowEndpoint {
  readonly organizationId: OrganizationId
  /** Whether its last attempt took very long, or none has ended yet since it is slow: others go before it. */
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
  /** Those asked for longest ago come first. */
  readonly #slow = new Map<EndpointId, Slow>()

  /** `cap`: the most attempts at once to an endpoint; `first`: to one about which nothing is known. */
  constructor({ cap, first }: { readonly cap: number; readonly first: number }) {
    this.#cap = cap
    this.#first = Math.min(first, cap)
  }

  /** The slow endpoints; those asked for longest ago come first. */
  get slow(): ReadonlyMap<EndpointId, SlowEndpoint> {
    return this.#slow
  }

  isSlow(endpointId: EndpointId): boolean {
    return this.#slow.has(endpointId)
  }

  /** How many attempts at once are made to an endpoint that is not slow. */
  allowed(endpointId: EndpointId): number {
    return this.#allowed.get(endpointId) ?? this.#first
  }

  /**
   * Notes a quick end of an attempt, whatever its result, with none overdue. `tookMillis`: how long it took. Returns
   * whether the endpoint was slow.
   */
  noteQuick(endpointId: EndpointId, tookMillis: number): boolean {
    const wasSlow = this.#slow.delete(endpointId)
    const allowed = wasSlow ? 0 : this.allowed(endpointId)
    const most = tookMillis <= promptWithinMillis ? this.#cap : Math.min(usualMost, this.#cap)
    if (allowed !== most) this.#allow(endpointId, allowed < most ? allowed + 1 : allowed - 1)
    return wasSlow
  }

  /**
   * Notes that an attempt is overdue. `now`: milliseconds of a clock that never goes back. Until one has ended, the
   * endpoint is taken to hang: if it is only late, that is soon known.
   */
  noteSlow(endpointId: EndpointId, organizationId: OrganizationId, now: number): void {
    const hangs = this.#slow.get(endpointId)?.hangs ?? true
    this.#slow.set(endpointId, { organizationId, hangs, since: now })
    forgetFirst(this.#slow, maxSlow)
  }

  /** Notes that an attempt that was overdue has ended after this time. `timedOut`: without an answer. */
  noteEnded(endpointId: EndpointId, tookMillis: number, timedOut: boolean): void {
    const slow = this.#slow.get(endpointId)
    const hangs = timedOut || tookMillis >= hangsAfterMillis
    if (slow !== undefined) this.#slow.set(endpointId, { ...slow, hangs })
  }

  /** Notes that these have been asked for: the others come first now. */
  noteAsked(endpointIds: Iterable<EndpointId>): void {
    for (const endpointId of endpointIds) {
      const slow = this.#slow.get(endpointId)
      if (slow === undefined) continue
      this.#slow.delete(endpointId)
      this.#slow.set(endpointId, slow)
    }
  }

  /** Forgets slow endpoints without news for a long time. They begin again with one attempt at once. */
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
