import { Duration } from "effect"
import type { EndpointId, OrganizationId } from "../../platform/kit/Ids.ts"
import { type AskedFor, type ClaimedDelivery, type ClaimOptions, type QueuePlace, queueStart } from "../queue/Claim.ts"
import { Expiring } from "../transport/Connections.ts"
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
  readonly concurrencyPerEndpoint: number
  /** How often to look for due deliveries when nothing wakes the worker. */
  readonly pollInterval: Duration.Duration
  readonly drainTimeout: Duration.Duration
  readonly userAgent: string
}

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

/** The most deliveries that one claim takes. */
export const maxClaim = 256

/**
 * How long, in milliseconds, work gathers so that more of it shares the fixed cost of a statement: outcomes until they are
 * recorded, and, while more is due than was claimed, free places until the next claim. That one goes as soon as half of the
 * places are free, or half of what waits here for endpoints at their caps has been sent.
 */
export const gatherMillis = 15

/**
 * A moment, in milliseconds: an attempt that takes longer makes its endpoint slow, an endpoint that has been at its cap
 * for so long is set apart, and slow endpoints are asked for that often.
 */
export const momentMillis = 250

/** An answer within this time, in milliseconds, is prompt. */
const promptWithinMillis = 100

/**
 * The most attempts at once to an endpoint whose answers are quick but not prompt, if its cap allows as many; and the most
 * that begin in a turn of the event loop, so that it gets to what is new to others.
 */
export const usualMost = 16

/** The most attempts at once to an unknown endpoint; the fewer places there are, the fewer attempts. */
const firstMost = 4

/**
 * An endpoint that keeps up may hold ahead this multiple of what it was delivered since the previous claim: more than
 * 1, so that claims become larger and fewer while there is enough to claim.
 */
const aheadFactor = 2

/** Attempts in flight beyond the `concurrency`: each costs a socket, and the memory of its exchange. */
export const placesAside = 2048

/** The fraction of the free places aside that the slow endpoints of one organization may hold. */
const organizationShare = 1 / 4

/**
 * The fraction of the free places that endpoints that hang get at a time. Attempts that begin together time out
 * together, and ending a thousand at once would hold up all other attempts; this spreads their beginnings and ends over
 * the timeout.
 */
const hangingShare = 1 / 20

/** The most endpoints that one claim asks for, and half as many may be apart for being busy: each costs a search. */
const maxAsked = maxClaim / 2

/** How long an endpoint stays slow without further answers, in milliseconds. */
const slowFor = 10 * 60 * 1000

/** The most endpoints remembered, and the most of them that are slow. */
const maxKnown = 20_000
const maxSlow = 5_000

export class Endpoint {
  readonly id: EndpointId
  readonly organizationId: OrganizationId
  /** Attempts in flight plus those waiting for a place. */
  held = 0
  /** Places reserved for deliveries that are being stored. */
  promised = 0
  inFlight = 0
  /** Attempts in flight for longer than `momentMillis`. */
  overdue = 0
  /** Attempts answered 2xx since the last claim. */
  delivered = 0
  /** Deliveries held back by the cap; while there are any, some attempts are in flight or about to be. */
  readonly waiting: Array<AttemptInFlight> = []
  /** How many attempts are made at once while it is not slow. */
  allowed: number
  /**
   * Whether it is slow, and how: it `hangs` if its last attempt timed out, or none has ended since it became slow; others
   * go before it.
   */
  slow: "late" | "hangs" | null = null
  /** When it was last found slow. */
  slowAt = 0
  /** Since when it has been at its cap at every claim; null if it is not. */
  atCapSince: number | null = null
  /** Where its due deliveries begin, if it is set apart; otherwise null. */
  from: QueuePlace | null = null

  constructor(id: EndpointId, organizationId: OrganizationId, allowed: number) {
    this.id = id
    this.organizationId = organizationId
    this.allowed = allowed
  }

  get isIdle(): boolean {
    return this.held === 0 && this.promised === 0
  }

  /** How many may be held beyond the cap. One that keeps up is thus not held up by the database. */
  get ahead(): number {
    return aheadFactor * this.delivered
  }
}

/** An attempt, waiting for its place or in flight. */
export class AttemptInFlight extends Expiring {
  readonly delivery: ClaimedDelivery
  readonly endpoint: Endpoint
  /** The time after which it is no longer sent, by `performance.now()`. */
  readonly startBefore: number
  /** Whether it takes a place aside. */
  aside: boolean
  /** When it began, by `performance.now()`; 0 while it waits. */
  begunAt = 0
  /** Whether it has waited for its answer for longer than `momentMillis`. */
  overdue = false
  /** Whether it has ended, and freed its place. */
  ended = false
  readonly #onOverdue: (attempt: AttemptInFlight) => void

  constructor(
    delivery: ClaimedDelivery,
    endpoint: Endpoint,
    startBefore: number,
    onOverdue: (attempt: AttemptInFlight) => void
  ) {
    super()
    this.delivery = delivery
    this.endpoint = endpoint
    this.startBefore = startBefore
    this.aside = endpoint.slow !== null
    this.#onOverdue = onOverdue
  }

  expire(): void {
    // If this process was busy, the answer may already have arrived: let it be read first
    setImmediate(this.#onOverdue, this)
  }
}

/** The facts about endpoints that a claim needs. */
export type Counts = Required<Pick<ClaimOptions, "inFlight" | "caps" | "leftOut" | "perEndpoint" | "perNewcomer">>

/**
 * The endpoints that a worker sends to: how quickly they answer, and so how many attempts to each are made at once, from
 * which places, and by which claims. This is what keeps an endpoint that is down, slow or busy, however long its
 * backlog, from costing the others places or time.
 *
 * **How many.** An unknown endpoint begins with a few attempts at once and gets one more with every quick answer, up to
 * `usualMost`. With prompt answers it gets more than that, up to its cap, and loses one with each answer that is only
 * quick: many at once to a prompt endpoint hold their places for no longer than a few to another. One attempt that is
 * not answered quickly makes an endpoint slow. The next quick answer, with nothing overdue at the same time, ends that,
 * and it begins again with one at once. So it pays for an endpoint to be quick, and one that alternates between quick
 * and slow never holds much.
 *
 * **Which claims.** Claims in the order of time would step over all rows of an endpoint at its cap each time. So an
 * endpoint that is slow, or stays at its cap, is set *apart*: those claims leave it out, and others ask for it by name.
 * A slow one is apart until it answers quickly again, a busy one until nothing of it is due.
 */
export class Endpoints {
  readonly #concurrency: number
  readonly #cap: number
  readonly #first: number
  readonly #known = new Map<EndpointId, Endpoint>()
  /** Those with attempts here, or that had some since the last claim. */
  readonly #active = new Set<Endpoint>()
  /** Those that are set apart; the one asked for the longest ago comes first. */
  readonly #apart = new Set<Endpoint>()
  #slowCount = 0
  /** Whether an endpoint is no longer slow, so that something of it may be due before the place where claims start. */
  leftOut = false
  /** Attempts answered 2xx since the last claim in the order of time, and between the two before. */
  #delivered = 0
  #deliveredBefore = 0

  constructor({ concurrency, concurrencyPerEndpoint }: Pick<WorkerOptions, "concurrency" | "concurrencyPerEndpoint">) {
    this.#concurrency = concurrency
    this.#cap = concurrencyPerEndpoint
    this.#first = Math.min(this.#cap, Math.max(1, Math.min(firstMost, Math.floor(concurrency / 16))))
  }

  /** The endpoint, which is remembered from now on. */
  of({ endpointId, organizationId }: { readonly endpointId: EndpointId; readonly organizationId: OrganizationId }) {
    let endpoint = this.#known.get(endpointId)
    if (endpoint === undefined) {
      if (this.#known.size >= maxKnown) this.#forgetIdle()
      endpoint = new Endpoint(endpointId, organizationId, this.#first)
      this.#known.set(endpointId, endpoint)
    }
    return endpoint
  }

  /** Those with attempts here, in flight or waiting. */
  get active(): Iterable<Endpoint> {
    return this.#active
  }

  get hasApart(): boolean {
    return this.#apart.size > 0
  }

  /** Whether endpoints are set apart that are not slow: their turn comes as soon as they have room. */
  get hasBusyApart(): boolean {
    return this.#apart.size > this.#slowCount
  }

  /** How many deliveries may be held beyond the places: as many as were delivered between the last claims. */
  get ahead(): number {
    return Math.min(Math.max(this.#delivered, this.#deliveredBefore), this.#concurrency)
  }

  /** The most attempts at once to an endpoint. Claims limit a slow one further, to its share. */
  capOf({ allowed, slow }: Endpoint): number {
    return slow === null ? allowed : Math.min(this.#concurrency, this.#usualCap)
  }

  get #usualCap(): number {
    return Math.min(usualMost, this.#cap)
  }

  /** Records that an attempt to it begins, or waits for its place. */
  noteHeld(endpoint: Endpoint): void {
    endpoint.held += 1
    this.#active.add(endpoint)
  }

  noteDelivered(endpoint: Endpoint): void {
    endpoint.delivered += 1
    this.#delivered += 1
  }

  /**
   * Records that an attempt in flight is overdue. `now` is in milliseconds of a monotonic clock. Until an attempt ends,
   * the endpoint is assumed to hang; if it is only late, that is soon known.
   */
  noteOverdue(endpoint: Endpoint, now: number): void {
    endpoint.overdue += 1
    endpoint.slowAt = now
    if (endpoint.slow !== null) return
    endpoint.slow = "hangs"
    this.#slowCount += 1
    if (endpoint.from === null) this.#setApart(endpoint, queueStart)
    if (this.#slowCount <= maxSlow) return
    for (const first of this.#apart) {
      if (first.slow === null) continue
      this.#endSlow(first)
      return
    }
  }

  /** Records that an attempt, overdue or not, ended after `tookMillis`. `timedOut`: without an answer. */
  noteEnded(endpoint: Endpoint, isOverdue: boolean, tookMillis: number, timedOut: boolean): void {
    if (isOverdue) {
      endpoint.overdue -= 1
      if (endpoint.slow !== null) endpoint.slow = timedOut ? "hangs" : "late"
    } else if (endpoint.overdue > 0) return
    else if (endpoint.slow !== null) this.#endSlow(endpoint)
    else {
      const most = tookMillis <= promptWithinMillis ? this.#cap : this.#usualCap
      if (endpoint.allowed !== most) endpoint.allowed += endpoint.allowed < most ? 1 : -1
    }
  }

  /**
   * Begins a claim in the order of time: what it leaves out, and how much it may take of which endpoint. `from` is where
   * it starts. `hides`: whether it steps over rows of endpoints at their cap that are not set apart, so that the next
   * one may not start any later.
   */
  beginClaim(now: number, from: QueuePlace): { readonly counts: Counts; readonly hides: boolean } {
    const inFlight = new Map<EndpointId, number>()
    const caps = new Map<EndpointId, number>()
    let hides = false
    this.#deliveredBefore = this.#delivered
    this.#delivered = 0
    for (const endpoint of this.#active) {
      const { ahead, held, id } = endpoint
      if (endpoint.isIdle) this.#active.delete(endpoint)
      if (endpoint.from !== null) continue
      const cap = this.capOf(endpoint) + ahead
      endpoint.delivered = 0
      if (held < cap) endpoint.atCapSince = null
      else {
        endpoint.atCapSince ??= now
        if (now - endpoint.atCapSince >= momentMillis && this.#apart.size - this.#slowCount < maxAsked / 2) {
          this.#setApart(endpoint, from)
          continue
        }
        hides = true
      }
      if (held > 0 || ahead > 0) {
        inFlight.set(id, held)
        caps.set(id, cap)
      }
    }
    return {
      counts: { inFlight, caps, leftOut: this.#leftOut, perEndpoint: this.#cap, perNewcomer: this.#first },
      hides
    }
  }

  /** The same for a claim beside the order of time: each endpoint that is not asked for gets as few as an unknown one. */
  countsBeside(askedFor: ReadonlyArray<AskedFor>): Counts {
    const inFlight = new Map<EndpointId, number>()
    const caps = new Map<EndpointId, number>()
    for (const { from, held, id } of this.#active) if (from === null && held > 0) inFlight.set(id, held)
    for (const { endpointId, room } of askedFor) {
      inFlight.set(endpointId, 0)
      caps.set(endpointId, room)
    }
    return { inFlight, caps, leftOut: this.#leftOut, perEndpoint: this.#first, perNewcomer: this.#first }
  }

  get #leftOut(): ReadonlyArray<EndpointId> {
    return Array.from(this.#apart, ({ id }) => id)
  }

  /** The endpoints that may have deliveries left after a claim that took these: those at their cap. */
  cappedBy({ caps, inFlight, perNewcomer }: Counts, taken: ReadonlyArray<ClaimedDelivery>): ReadonlyArray<Endpoint> {
    const counts = new Map(inFlight)
    for (const { endpointId } of taken) counts.set(endpointId, (counts.get(endpointId) ?? 0) + 1)
    return Array.from(counts).flatMap(([id, count]) => {
      const endpoint = this.#known.get(id)
      return endpoint?.from === null && count >= (caps.get(id) ?? perNewcomer) ? [endpoint] : []
    })
  }

  /** Searches all that are set apart from the start again: a worker that died may have left some there. */
  lookFromStart(): void {
    this.leftOut = false
    for (const endpoint of this.#apart) endpoint.from = queueStart
  }

  /**
   * What to claim of endpoints that are set apart: of those that are not slow as much as they have room for, half of the
   * places for all of them; and `withSlow`, of slow ones their shares. `now` is in milliseconds of a monotonic clock.
   */
  askFor(now: number, withSlow: boolean): ReadonlyArray<AskedFor> {
    const asked: Array<AskedFor> = []
    const share = Math.max(1, Math.floor(this.#concurrency / 2 / Math.max(1, this.#apart.size - this.#slowCount)))
    for (const endpoint of this.#apart) {
      if (endpoint.slow !== null) continue
      const room = Math.min(share, this.capOf(endpoint)) + endpoint.ahead - endpoint.held
      endpoint.delivered = 0
      if (room > 0 && asked.length < maxAsked) asked.push(askedFor(endpoint, room))
    }
    if (withSlow && this.#slowCount > 0) {
      this.#forgetOld(now)
      this.#askForSlow(asked)
    }
    return asked
  }

  /**
   * Asks for slow endpoints, in their order, as far as there is room. Those of an organization get a fraction of the free
   * places: some always stay free. Those that hang come last, a few attempts at a time; one that does not hang, and has
   * nothing in flight, always gets one.
   */
  #askForSlow(asked: Array<AskedFor>): void {
    const heldOf = new Map<OrganizationId, number>()
    let hangingCount = 0
    let free = placesAside / 2
    for (const { held, organizationId, slow } of this.#apart) {
      if (slow === null) continue
      if (slow === "hangs") hangingCount += 1
      free -= held
      heldOf.set(organizationId, (heldOf.get(organizationId) ?? 0) + held)
    }
    const ofOrganization = Math.max(1, Math.floor(free * organizationShare))
    let leftToHanging = Math.max(1, Math.floor(free * hangingShare))
    const ofHanging = Math.max(2, Math.floor(leftToHanging / hangingCount))
    for (const pass of ["late", "hangs"] as const) {
      for (const endpoint of this.#apart) {
        if (asked.length >= maxAsked) return
        const { held, organizationId, slow } = endpoint
        if (slow !== pass) continue
        const inOrganization = heldOf.get(organizationId) ?? 0
        const most = slow === "hangs" ? Math.min(ofHanging, leftToHanging) : free
        const share = Math.min(this.capOf(endpoint) - held, ofOrganization - inOrganization, free, most)
        const room = slow === "late" && held === 0 ? Math.max(1, share) : share
        if (room <= 0) continue
        asked.push(askedFor(endpoint, room))
        heldOf.set(organizationId, inOrganization + room)
        free -= room
        if (slow === "hangs") leftToHanging -= room
      }
    }
  }

  /** Records where due deliveries of the endpoints asked for begin; an endpoint without any is no longer apart. */
  noteAsked(asked: ReadonlyArray<AskedFor>, places: ReadonlyMap<EndpointId, QueuePlace>): void {
    for (const { endpointId } of asked) {
      const endpoint = this.#known.get(endpointId)
      if (endpoint === undefined || !this.#apart.delete(endpoint)) continue
      // Deliveries that come due later are behind the start of claims in the order of time
      endpoint.from = endpoint.slow === null ? (places.get(endpointId) ?? null) : queueStart
      if (endpoint.from !== null) this.#apart.add(endpoint)
    }
  }

  #setApart(endpoint: Endpoint, from: QueuePlace): void {
    endpoint.from = from
    endpoint.atCapSince = null
    this.#apart.add(endpoint)
  }

  /** It begins again with one attempt at once. Claims in the order of time have to find what they left out so far. */
  #endSlow(endpoint: Endpoint): void {
    endpoint.slow = null
    endpoint.from = null
    this.#apart.delete(endpoint)
    this.leftOut = true
    endpoint.allowed = 1
    endpoint.delivered = 0
    this.#slowCount -= 1
  }

  /** Ends the slowness of endpoints that have been slow for long without a further answer. */
  #forgetOld(now: number): void {
    for (const endpoint of this.#apart) {
      if (endpoint.slow !== null && now - endpoint.slowAt >= slowFor && endpoint.isIdle) this.#endSlow(endpoint)
    }
  }

  #forgetIdle(): void {
    for (const [id, endpoint] of this.#known) {
      if (endpoint.isIdle && endpoint.from === null && !this.#active.has(endpoint)) this.#known.delete(id)
    }
  }
}

const askedFor = ({ from, id }: Endpoint, room: number): AskedFor => ({
  endpointId: id,
  from: from ?? queueStart,
  room
})
