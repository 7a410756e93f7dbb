import { performance } from "node:perf_hooks"
import type { SqlError } from "@effect/sql"
import { type Context, Duration, Effect } from "effect"
import type { EndpointId } from "../../platform/kit/Ids.ts"
import type { Attempts } from "../attempts/Attempts.ts"
import { type ClaimedDelivery, type ClaimOptions, DeliveryUnderLease } from "../queue/Claim.ts"
import type { Recipient } from "../queue/Enqueue.ts"
import type { Queue } from "../queue/Queue.ts"
import { Signal, type WakeUp } from "../queue/WakeUp.ts"
import type { Begin, Held, LoopHealth, Recording } from "./Held.ts"
import {
  firstAttempts,
  type Known,
  maxClaim,
  newestPerEndpoint,
  newestRoom,
  slowRooms,
  Turns,
  usualCap,
  type WorkerOptions
} from "./Limits.ts"

/**
 * While more is due than there is room for, a claim waits until it is worthwhile, for at most this many milliseconds.
 */
const gatherRoomFor = 15

/** A claim for endpoints at their caps is worthwhile once this share of their deliveries waiting here has been sent. */
const worthwhileShare = 0.5

/** How long to pause, in milliseconds, after a claim that found all the rows it looked at held by other workers. */
const passedOver = 5

/** The longest sleep of a worker that repeatedly finds nothing, as a multiple of the poll interval. */
const maxIdleFactor = 4

/** How often to check again for room, in milliseconds, although each change is signalled. */
const roomAgain = 5000

/**
 * The shortest interval, in milliseconds, between notifying other processes that this one has no room for due
 * deliveries.
 */
const passOnEvery = 100

interface Claimed {
  readonly found: number
  /** Whether it filled the room. */
  readonly full: boolean
  readonly more: boolean
  readonly nextDueInMillis: number | null
  readonly failed: boolean
}

const nothing: Claimed = {
  found: 0,
  full: false,
  more: false,
  nextDueInMillis: null,
  failed: false
}
const nothingAsFailed: Claimed = { ...nothing, failed: true }

/** The result if there is no room to claim: more may be due. */
const noRoom: Claimed = { ...nothing, full: true }

interface ClaimingParts {
  readonly options: WorkerOptions
  readonly queue: Context.Tag.Service<Queue>
  readonly recording: Pick<Recording, "caughtUp">
  readonly wakeUp: Context.Tag.Service<WakeUp>
  readonly attempts: Attempts
  readonly held: Held
  readonly begin: Begin
  readonly health: LoopHealth
  /** Called if slow endpoints may have something due, or if more is due than claims have reached. */
  readonly onNewsAside: () => void
}

const unanswered = "can't claim: the database does not answer"

/** Treats a failed claim as one that found `nothing`, after a pause. */
const orRest =
  <A>(nothing: A) =>
  (claim: Effect.Effect<A, SqlError.SqlError>): Effect.Effect<A> =>
    Effect.catchAll(claim, (error) =>
      Effect.logWarning("Deliveries can't be claimed", error).pipe(
        Effect.zipRight(Effect.sleep("1 second")),
        Effect.as(nothing)
      )
    )

/** Claims due deliveries while there is room, and begins their attempts. */
export class Claiming {
  readonly #parts: ClaimingParts
  readonly #turns: Turns
  /** Raised when something may be due, or when there may be room for it. */
  readonly #news = new Signal()
  /** Raised when a claim need not wait for more room: there is enough, or a reason other than room came up. */
  readonly #worthwhile = new Signal()
  readonly #known: Known
  readonly #perNewcomer: number
  /** Whether the last claim left due deliveries, for lack of room or because of an endpoint's cap. */
  #leftSome = false
  /** How many attempts must end before claiming the rest is worthwhile, if all of it was left because of caps. */
  #toEnd = 0
  #behind = false
  /** The room being waited for; null while waiting for something else. */
  #roomWanted: number | null = null
  #idleRounds = 0
  #passedOnAt = 0

  constructor(parts: ClaimingParts) {
    const { attempts, options } = parts
    this.#parts = parts
    this.#turns = new Turns(options.concurrency)
    this.#perNewcomer = firstAttempts(options)
    this.#known = {
      get slow() {
        return attempts.pace.slow.keys()
      },
      isSlow: (endpointId) => attempts.pace.isSlow(endpointId),
      capOf: (endpointId) => attempts.capOf(endpointId)
    }
  }

  /** Whether more may be due than claims have reached. */
  get isBehind(): boolean {
    return this.#behind
  }

  /** Signals that there may be more room. Can be called from anywhere; returns at once. */
  noteRoom(): void {
    if (this.#roomWanted === null ? this.#leftSome : this.room >= this.#roomWanted) this.#news.raise()
  }

  /** Signals that an attempt has ended. Can be called from anywhere; returns at once. */
  noteEnded(): void {
    this.#toEnd -= 1
    if (this.#toEnd === 0) this.#worthwhile.raise()
    this.noteRoom()
  }

  /** Signals a reason to claim other than room. */
  #raise(): void {
    this.#news.raise()
    this.#worthwhile.raise()
  }

  /** Signals that an endpoint is no longer slow: its deliveries, left out so far, are searched for again. */
  noteLeftOutBefore(): void {
    this.#turns.startAfresh()
    this.#raise()
  }

  /**
   * How many more deliveries may be held, given the places for attempts and for records: recording must not hold up
   * sending.
   */
  get room(): number {
    const { attempts, held, options } = this.#parts
    return Math.min(attempts.room, 5 * options.concurrency - (held.count - attempts.aside), maxClaim)
  }

  /** Claims once, then waits until there is a reason to claim again. */
  readonly round: Effect.Effect<void> = Effect.gen(this, function* () {
    yield* this.#parts.recording.caughtUp(this.#parts.health)
    const claimed = yield* this.#claim
    if (claimed.full || claimed.more) {
      if (this.room < 1) yield* this.#passOn
      yield* this.#waitForRoom
      // All rows that it looked at are held by other workers
      if (claimed.found === 0) yield* Effect.sleep(passedOver)
    } else {
      const idleMillis = this.#idleMillis(claimed)
      this.#parts.health.begin(claimed.failed ? unanswered : "waits for deliveries that come due", idleMillis)
      yield* this.#news.wait(idleMillis)
      if (this.room < 1) yield* this.#waitForRoom
      else if (this.#toEnd > 0) yield* this.#worthwhile.wait(gatherRoomFor)
    }
  })

  /**
   * Waits for announcements while there is room for the announced deliveries; without room, other processes take them.
   */
  readonly listening: Effect.Effect<void> = Effect.suspend(() =>
    this.room < 1
      ? Effect.sleep("10 millis")
      : Effect.zipRight(
          this.#parts.wakeUp.await,
          Effect.sync(() => this.#raise())
        )
  )

  // Uninterruptible: a claim whose attempts do not follow would stay leased until the lease expires
  readonly #claim: Effect.Effect<Claimed> = Effect.suspend(() => {
    const { attempts, begin, options, health, queue } = this.#parts
    const limit = this.room
    // Others may have taken the room while claiming paused
    if (limit < 1) return Effect.succeed(noRoom)
    health.begin("claims")
    const claimedAt = performance.now()
    const inFlight = attempts.takeCounts()
    const caps = attempts.caps(inFlight.keys())
    const turn = this.#turns.next(inFlight, claimedAt, this.#known)
    const { concurrencyPerEndpoint: perEndpoint, lease } = options
    const wanted = { limit, lease, perEndpoint, perNewcomer: this.#perNewcomer, inFlight, caps, ...turn }
    return queue.claim(wanted).pipe(
      Effect.tap((claimed) => {
        this.#turns.learn(turn, claimed, performance.now() - claimedAt)
        return begin(claimed.deliveries, claimedAt, "usual")
      }),
      Effect.map(({ deliveries, more, nextDueInMillis }) => {
        const full = deliveries.length >= limit
        this.#noteLeft(this.#atCap(inFlight, caps, deliveries), full, more)
        return { ...nothing, found: deliveries.length, full, more, nextDueInMillis }
      }),
      Effect.tapError(() => Effect.sync(() => health.begin(unanswered)))
    )
  }).pipe(Effect.uninterruptible, orRest(nothingAsFailed))

  /**
   * The endpoints that may have deliveries left after a claim: those at their cap, counting the claim and what was in
   * flight.
   */
  #atCap(
    before: ReadonlyMap<EndpointId, number>,
    caps: ReadonlyMap<EndpointId, number>,
    deliveries: ReadonlyArray<ClaimedDelivery>
  ): ReadonlyArray<EndpointId> {
    const counts = new Map(before)
    for (const { endpointId } of deliveries) counts.set(endpointId, (counts.get(endpointId) ?? 0) + 1)
    return [...counts]
      .filter(([id, count]) => count >= (caps.get(id) ?? this.#perNewcomer) && !this.#known.isSlow(id))
      .map(([endpointId]) => endpointId)
  }

  /** Records what a claim left. If there is room for it by now, the next claim starts without waiting. */
  #noteLeft(capped: ReadonlyArray<EndpointId>, full: boolean, more: boolean): void {
    const { attempts, onNewsAside } = this.#parts
    this.#leftSome = full || this.#turns.apart.size > 0 || capped.length > 0
    const hasRoom = (endpointId: EndpointId) =>
      attempts.held(endpointId) < attempts.capOf(endpointId) && !this.#turns.apart.has(endpointId)
    if (capped.some(hasRoom)) this.#news.raise()
    const waiting = capped.reduce((sum, id) => sum + Math.max(0, attempts.held(id) - attempts.capOf(id)), 0)
    this.#toEnd = Math.floor(waiting * worthwhileShare)
    this.#worthwhile.reset()
    this.#behind = full || more
    if (this.#behind || attempts.pace.slow.size > 0) onNewsAside()
  }

  /** Milliseconds to sleep if nothing more can be claimed now. */
  #idleMillis({ found, nextDueInMillis }: Claimed): number {
    const { held, options } = this.#parts
    const rests = found === 0 && held.count === 0
    this.#idleRounds = rests ? Math.min(this.#idleRounds + 1, maxIdleFactor - 1) : 0
    const poll = Duration.toMillis(options.pollInterval) * (1 + this.#idleRounds)
    return nextDueInMillis === null ? poll : Math.min(poll, Math.max(1, Math.ceil(nextDueInMillis)))
  }

  /** Notifies other processes when more is due than there is room for: their workers may have room. */
  readonly #passOn = Effect.suspend(() => {
    if (performance.now() - this.#passedOnAt < passOnEvery) return Effect.void
    this.#passedOnAt = performance.now()
    return this.#parts.wakeUp.announce
  })

  readonly #waitForRoom = Effect.gen(this, function* () {
    if (this.room < 1) {
      this.#behind = true
      this.#parts.onNewsAside()
    }
    const enough = Math.min(maxClaim, Math.ceil(this.#parts.options.concurrency * 0.75))
    const waitedSince = performance.now()
    while (this.room < 1 || (this.room < enough && performance.now() - waitedSince < gatherRoomFor)) {
      this.#roomWanted = this.room < 1 ? 1 : enough
      const millis = this.room < 1 ? roomAgain : gatherRoomFor
      this.#parts.health.begin("waits for room: as many attempts are under way as there may be", millis)
      yield* this.#news.wait(millis)
    }
    this.#roomWanted = null
  })
}

/**
 * The pause between two claims of a kind: in milliseconds, and as a multiple of the previous claim's duration. It
 * doubles, up to `most`, after claims that found nothing.
 */
const every = {
  slow: { millis: 200, most: 200, cost: 5 },
  // While the worker is behind, this is the only wait of a new delivery to an endpoint that keeps up
  newest: { millis: 15, most: 60, cost: 1 }
} as const

interface ClaimingAsideParts {
  readonly options: Pick<WorkerOptions, "lease" | "concurrency" | "concurrencyPerEndpoint">
  readonly queue: Pick<Context.Tag.Service<Queue>, "claim">
  readonly recording: Pick<Recording, "caughtUp">
  readonly attempts: Pick<Attempts, "aside" | "caps" | "held" | "lanes" | "pace">
  readonly begin: Begin
  readonly health: LoopHealth
  /** Whether more may be due than the worker's other claims have reached. */
  readonly isBehind: () => boolean
}

/**
 * Claims whose attempts take no place of the `concurrency`: due deliveries of slow endpoints, within their shares, at
 * most five times per second; and, while the worker is behind, newly due ones, at most some sixty times per second.
 */
export class ClaimingAside {
  readonly #parts: ClaimingAsideParts
  readonly #news = new Signal()
  /** The earliest time of the next claim of each kind, by `performance.now()`, and the pause before it. */
  readonly #notBefore = { slow: 0, newest: 0 }
  readonly #rest: Record<keyof typeof every, number> = { slow: every.slow.millis, newest: every.newest.millis }

  constructor(parts: ClaimingAsideParts) {
    this.#parts = parts
  }

  /** Signals that there may be something to claim. Can be called from anywhere; returns at once. */
  noteNews(): void {
    this.#news.raise()
  }

  /** Waits for a signal, claims, and pauses. */
  readonly round: Effect.Effect<void> = Effect.gen(this, function* () {
    this.#parts.health.rest("has nothing to claim aside")
    yield* this.#news.wait()
    yield* this.#parts.recording.caughtUp(this.#parts.health)
    const leavesSlow = performance.now() < this.#notBefore.slow
    // Uninterruptible: a claim whose attempts do not follow would stay leased until the lease expires
    const claimed = yield* Effect.zipWith(this.#claimNewest, this.#claimSlow, (newest, slow) => newest + slow).pipe(
      Effect.uninterruptible,
      orRest(0)
    )
    const isBehind = this.#parts.isBehind()
    if (isBehind || claimed > 0 || leavesSlow) this.#news.raise()
    const next = isBehind ? Math.min(this.#notBefore.newest, this.#notBefore.slow) : this.#notBefore.slow
    const rest = Math.max(every.newest.millis, next - performance.now())
    this.#parts.health.begin("rests between claims aside", rest)
    yield* Effect.sleep(rest)
  })

  readonly #claimSlow = Effect.suspend(() => {
    const { attempts, options } = this.#parts
    const { pace } = attempts
    if (performance.now() < this.#notBefore.slow) return Effect.succeed(0)
    pace.forgetOld(performance.now(), (endpointId) => attempts.held(endpointId) > 0)
    const askedFor = slowRooms(pace.slow, attempts.lanes(), attempts.aside, options)
    pace.noteAsked(askedFor.map(({ endpointId }) => endpointId))
    const limit = Math.min(
      maxClaim,
      askedFor.reduce((sum, { room }) => sum + room, 0)
    )
    return this.#claim("slow", { look: "asked", limit, askedFor }, usualCap(options))
  })

  readonly #claimNewest = Effect.suspend(() =>
    this.#parts.isBehind() && performance.now() >= this.#notBefore.newest
      ? this.#claim("newest", { look: "newest", limit: newestRoom(this.#parts.attempts.aside) }, newestPerEndpoint)
      : Effect.succeed(0)
  )

  /** Claims and begins deliveries. Returns how many. */
  #claim(
    kind: keyof typeof every,
    wanted: Pick<ClaimOptions, "look" | "limit" | "askedFor">,
    mostPerEndpoint: number
  ): Effect.Effect<number, SqlError.SqlError> {
    const { attempts, begin, options, health, queue } = this.#parts
    const claimedAt = performance.now()
    const { cost, millis, most } = every[kind]
    this.#notBefore[kind] = claimedAt + millis
    if (wanted.limit < 1) return Effect.succeed(0)
    health.begin("claims aside")
    const claimed = queue.claim({
      lease: options.lease,
      perEndpoint: Math.min(mostPerEndpoint, options.concurrencyPerEndpoint),
      inFlight: new Map(Array.from(attempts.lanes(), ([endpointId, { held }]) => [endpointId, held])),
      caps: new Map(Array.from(attempts.caps(), ([endpointId, cap]) => [endpointId, Math.min(mostPerEndpoint, cap)])),
      leftOut: [...attempts.pace.slow.keys()],
      ...wanted
    })
    return Effect.flatMap(claimed, ({ deliveries }) => {
      const now = performance.now()
      const rest = deliveries.length > 0 ? millis : Math.min(most, this.#rest[kind] * 2)
      this.#rest[kind] = rest
      this.#notBefore[kind] = now + Math.max(rest, cost * (now - claimedAt))
      return Effect.as(begin(deliveries, claimedAt, kind), deliveries.length)
    })
  }
}

interface HandOffParts {
  readonly options: Pick<WorkerOptions, "lease" | "concurrency">
  readonly attempts: Attempts
  readonly claiming: Claiming
  readonly held: Held
  readonly begin: Begin
  /** Runs an effect that never fails. */
  readonly run: (effect: Effect.Effect<void>) => void
}

/**
 * Takes over new deliveries as this process stores them, by the rules of claims: as many as there is room for, and as
 * many of an endpoint as its cap allows, or some more if it keeps up; but none of slow endpoints, and none while more
 * is due than claims have reached.
 */
export const handOffRecipient = ({ attempts, begin, claiming, held, options, run }: HandOffParts): Recipient => {
  const kept = new Map<EndpointId, number>()
  let keptInAll = 0

  const release = (endpointId: EndpointId): void => {
    const count = kept.get(endpointId) ?? 0
    if (count > 1) kept.set(endpointId, count - 1)
    else kept.delete(endpointId)
    keptInAll -= 1
    held.settle(1)
  }

  return {
    leaseMillis: Duration.toMillis(options.lease),
    reserve: (endpointId) => {
      const count = kept.get(endpointId) ?? 0
      const room = claiming.room - keptInAll
      if (claiming.isBehind || room < 1 || attempts.pace.isSlow(endpointId)) return false
      // Batches may wait here for their turn, as long as half of the places are left to other endpoints
      const most = room > options.concurrency / 2 ? attempts.mayHold(endpointId) : attempts.capOf(endpointId)
      if (attempts.held(endpointId) + count >= most) return false
      kept.set(endpointId, count + 1)
      keptInAll += 1
      // Counted as held from now on, so that a shutdown waits for the statement that stores it
      held.add(1)
      return true
    },
    release,
    take: (deliveries, { id: lease, leasedAt, storedAt }) => {
      const first = { attempt: 1, interrupted: 0, trigger: "automatic", createdAt: storedAt } as const
      const claim = { lease, claimedAt: storedAt }
      const claimed = deliveries.map((delivery) => new DeliveryUnderLease(delivery, delivery.secretIds, first, claim))
      // Places stay reserved until the attempts are counted: their destination may have to be loaded first
      const releaseAll = Effect.sync(() => {
        for (const { endpointId } of deliveries) release(endpointId)
      })
      run(Effect.ensuring(begin(claimed, leasedAt, "usual"), releaseAll))
    }
  }
}
