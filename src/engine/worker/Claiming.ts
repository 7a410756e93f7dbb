import { performance } from "node:perf_hooks"
import type { SqlError } from "@effect/sql"
import { Array, type Context, Duration, Effect, Iterable, Option } from "effect"
import type { EndpointId } from "../../platform/kit/Ids.ts"
import type { Attempts } from "../attempts/Attempts.ts"
import { type LaneShare, type NewClaim, type QueuePlace, queueStart } from "../queue/Claim.ts"
import type { Queue } from "../queue/Queue.ts"
import type { Recording } from "../queue/Recording.ts"
import { Signal } from "../queue/Signal.ts"
import type { WakeUp } from "../queue/WakeUp.ts"
import type { Begin, Held } from "./Held.ts"
import {
  maxClaim,
  mostLanes,
  newestPerEndpoint,
  newestRoom,
  slowShares,
  usualCap,
  type WorkerOptions
} from "./Limits.ts"
import { LoopHealth } from "./WorkerLife.ts"

/** The longest wait for attempts to end before the line is served again, in milliseconds. */
const gatherFor = 15

/** The least rest between looks at what is new while others wait, in milliseconds. */
const arrivalsEvery = 5

/** The most deliveries that the line gets in each `gatherFor` while others have something new. */
const mostBesideNew = 128

/** How often slow lanes are served, in milliseconds. */
const slowEvery = 200

/** A lane in line. Entering the line again replaces it. */
interface Lane {
  /** Where its due deliveries begin. */
  readonly from: QueuePlace
  /** Whether it had more due when it was last served. */
  readonly hasMore: boolean
}

/** How many deliveries a lane gets at least, of one that is known to have more and of any other, if there is room. */
const atOnce = { hasMore: 8, unknown: 2 }

/** How many endpoints one sweep visits. No sweep begins while ten times as many lanes are in line. */
const sweptAtOnce = 1000

/** The rest after a sweep, as a multiple of its duration: if endpoints are left to visit, and if none is. */
const restAfterSweep = { amid: 10, atEnd: 100 }

/** The longest such rest, and the longest sleep of a worker that finds nothing, as multiples of the poll interval. */
const mostRest = 30
const mostIdle = 4

/** The shortest interval, in milliseconds, between notifying other processes that this one has no room. */
const passOnEvery = 100

interface ClaimingParts {
  readonly options: WorkerOptions
  readonly queue: Pick<Context.Tag.Service<Queue>, "claimNew" | "claimOfLanes" | "sweep">
  readonly recording: Pick<Recording, "caughtUp">
  readonly wakeUp: Context.Tag.Service<WakeUp>
  readonly attempts: Attempts
  readonly held: Held
  readonly begin: Begin
  /** Runs an effect that never fails. */
  readonly run: (effect: Effect.Effect<void>) => void
}

const noEndpoint = "00000000-0000-0000-0000-000000000000"
const unanswered = "can't claim: the database does not answer"

/**
 * Finds due deliveries, claims them while there is room, and begins their attempts. `src/docs/maintaining/lanes.md`
 * explains it.
 *
 * An endpoint with due deliveries that nobody holds has a *lane*, and the lanes stand in line. Three loops run: one takes
 * what has just come due, one serves the line, and one sweeps the queue for endpoints that have no lane yet.
 */
export class Claiming {
  readonly #parts: ClaimingParts
  /** The line: those served go to its end, or leave it. */
  readonly #line = new Map<EndpointId, Lane>()
  /** Where the next look at what has just come due begins. */
  #since: QueuePlace = queueStart
  /** After which endpoint the next sweep begins. */
  #swept: string = noEndpoint
  /** Raised if something may have come due, or if there is room again for what has. */
  readonly #arrivals = new Signal()
  /** Raised if it is worthwhile to serve the line. */
  readonly #turn = new Signal()
  /** Raised if a sweep should not wait. */
  readonly #sweepNow = new Signal()
  /** Whether a lane that is not slow may be in line. */
  #isBehind = false
  /** When something new last began aside, by `performance.now()`. */
  #newAsideAt = Number.NEGATIVE_INFINITY
  /** How many attempts must end until it is worthwhile to serve the line again. */
  #toEnd = 0
  /** Whether what has just come due waits for room. */
  #isOutOfRoom = false
  /** When slow lanes may be served again, and when other processes were last notified, by `performance.now()`. */
  #slowNotBefore = 0
  #passedOnAt = 0
  readonly health = {
    arrivals: new LoopHealth("starts"),
    line: new LoopHealth("starts"),
    sweeps: new LoopHealth("starts")
  }

  constructor(parts: ClaimingParts) {
    this.#parts = parts
  }

  /** The loops' rounds. */
  get rounds(): ReadonlyArray<Effect.Effect<void>> {
    return [this.#takeArrivals, this.#serveLine, this.#sweep]
  }

  /**
   * How many more deliveries may be held, given the places for attempts and for records: recording must not hold up
   * sending.
   */
  get room(): number {
    const { attempts, held, options } = this.#parts
    return Math.min(attempts.room, 5 * options.concurrency - (held.count - attempts.aside), maxClaim)
  }

  /** Whether others wait, or hold all places: what is new then begins aside, a few of each endpoint. */
  get isCrowded(): boolean {
    return this.#isBehind || this.room < 1
  }

  /** Whether an endpoint's due deliveries wait in a lane. */
  isInLine(endpointId: EndpointId): boolean {
    return this.#line.has(endpointId)
  }

  /** Gives an endpoint a lane: some of its due deliveries wait. Can be called from anywhere; returns at once. */
  enterLine(endpointId: EndpointId): void {
    // One that is in line keeps its place there, but is searched from the start: a dead worker may have left some
    this.#line.set(endpointId, { from: queueStart, hasMore: this.#line.get(endpointId)?.hasMore ?? false })
    if (!this.#parts.attempts.pace.isSlow(endpointId)) this.#isBehind = true
    if (this.#toEnd <= 0 || this.#line.size === 1) this.#turn.raise()
  }

  /** Signals that something new began aside, while others wait. Returns at once. */
  noteNewAside(): void {
    this.#newAsideAt = performance.now()
  }

  /** Signals that an attempt has ended or given up its place. Can be called from anywhere; returns at once. */
  noteEnded(): void {
    this.#toEnd -= 1
    if (this.#toEnd <= 0 && this.#line.size > 0) this.#turn.raise()
    this.noteRoom()
  }

  /** Signals that there may be more room. Can be called from anywhere; returns at once. */
  noteRoom(): void {
    if (this.#isOutOfRoom && this.#roomForNew() >= 1) this.#arrivals.raise()
  }

  /**
   * Waits for announcements while there is room for the announced deliveries; without room, other processes take them.
   */
  readonly listening: Effect.Effect<void> = Effect.suspend(() =>
    this.#roomForNew() < 1
      ? Effect.sleep("10 millis")
      : Effect.zipRight(
          this.#parts.wakeUp.await,
          Effect.sync(() => this.#arrivals.raise())
        )
  )

  #roomForNew(): number {
    return this.isCrowded ? newestRoom(this.#parts.attempts.aside) : this.room
  }

  /** Takes what has just come due, then waits for more. */
  readonly #takeArrivals: Effect.Effect<void> = Effect.gen(this, function* () {
    const { held, options, recording } = this.#parts
    const health = this.health.arrivals
    yield* recording.caughtUp(health)
    this.#isOutOfRoom = this.#roomForNew() < 1
    if (this.#isOutOfRoom) {
      yield* this.#passOn
      health.begin("waits for room: as many attempts are under way as there may be", passOnEvery)
      return yield* this.#arrivals.wait(passOnEvery)
    }
    const claimed = yield* this.#claimNew
    if (claimed === null) return
    const idle = claimed.deliveries.length === 0 && held.count === 0 ? mostIdle : 1
    const poll = Duration.toMillis(options.pollInterval) * idle
    const rest =
      claimed.nextDueInMillis === null ? poll : Math.min(poll, Math.max(1, Math.ceil(claimed.nextDueInMillis)))
    health.begin("waits for deliveries that come due", rest)
    if (this.isCrowded) yield* Effect.sleep(arrivalsEvery)
    yield* this.#arrivals.wait(rest)
  })

  /** Notifies other processes: they may have room. */
  readonly #passOn: Effect.Effect<void> = Effect.suspend(() => {
    if (performance.now() - this.#passedOnAt < passOnEvery) return Effect.void
    this.#passedOnAt = performance.now()
    return this.#parts.wakeUp.announceToOthers
  })

  readonly #claimNew: Effect.Effect<NewClaim | null> = Effect.suspend(() => {
    const { attempts, begin, options, queue } = this.#parts
    const health = this.health.arrivals
    const leftOut = this.#leftOut()
    // Else it is done whenever the line is served
    if (this.#line.size === 0) attempts.takeCounts()
    const { isCrowded } = this
    health.begin("claims")
    const claimedAt = performance.now()
    return queue
      .claimNew({
        since: this.#since,
        limit: this.#roomForNew(),
        perEndpoint: isCrowded ? Math.min(newestPerEndpoint, options.concurrencyPerEndpoint) : usualCap(options),
        leftOut,
        lease: options.lease
      })
      .pipe(
        Effect.tap(({ deliveries }) => begin(deliveries, claimedAt, isCrowded)),
        Effect.tap(({ deliveries, isFull, next, waiting }) => {
          this.#since = next
          if (isCrowded && deliveries.length > 0) this.noteNewAside()
          for (const endpointId of waiting) if (!this.#line.has(endpointId)) this.enterLine(endpointId)
          if (isFull) this.#sweepNow.raise()
        })
      )
  }).pipe((claim) => this.#claimed(claim, this.health.arrivals))

  /** Endpoints whose deliveries wait for their lane's turn, or that have as many in flight as they may. */
  #leftOut(): ReadonlyArray<EndpointId> {
    const { attempts } = this.#parts
    // The last of a very long line may have a few taken out of turn
    const out = new Set<EndpointId>([...Iterable.take(this.#line.keys(), sweptAtOnce), ...attempts.pace.slow.keys()])
    for (const [endpointId, { held }] of attempts.lanes()) if (held >= attempts.mayHold(endpointId)) out.add(endpointId)
    return [...out]
  }

  /** Claims for the first lanes in line that have room, then waits until doing so again is worthwhile. */
  readonly #serveLine: Effect.Effect<void> = Effect.gen(this, function* () {
    const { attempts, recording } = this.#parts
    const health = this.health.line
    if (this.#line.size === 0) {
      health.rest("has no backlog")
      yield* this.#turn.wait()
    }
    yield* recording.caughtUp(health)
    const isTurnOfSlow = performance.now() >= this.#slowNotBefore
    if (isTurnOfSlow) this.#slowNotBefore = performance.now() + slowEvery
    const usual = this.#sharesOfUsual()
    const slow = isTurnOfSlow ? this.#sharesOfSlow() : []
    const count = usual.length + slow.length > 0 ? yield* this.#claimOf(usual, slow) : 0
    this.#isBehind = Iterable.some(this.#line.keys(), (endpointId) => !attempts.pace.isSlow(endpointId))
    if (this.#isBehind) yield* this.#passOn
    this.#toEnd = Math.floor((attempts.size - attempts.aside) / 2)
    const rest = usual.length > 0 ? gatherFor : slowEvery
    health.begin("waits for room: as many attempts are under way as there may be", rest)
    if (this.#leavesRoom) yield* Effect.sleep(gatherFor)
    else if (this.#toEnd > 0 || count === 0) yield* this.#turn.wait(rest)
  })

  /** Whether others had something new a moment ago: then the line leaves them a part of the machine. */
  get #leavesRoom(): boolean {
    return performance.now() - this.#newAsideAt < slowEvery
  }

  /**
   * What the first lanes in line get, of those that are not slow, until the room is used up. Those that are known to have
   * more get several at once: to look for a lane's deliveries costs as much as to take a few.
   */
  #sharesOfUsual(): ReadonlyArray<LaneShare> {
    const { attempts } = this.#parts
    const counts = attempts.takeCounts()
    const shares: Array<LaneShare> = []
    let left = this.#leavesRoom ? Math.min(this.room, mostBesideNew) : this.room
    const even = Math.floor(left / this.#line.size)
    for (const [endpointId, { from, hasMore }] of this.#line) {
      if (left < 1 || shares.length >= mostLanes) break
      const own = attempts.capOf(endpointId) - (counts.get(endpointId) ?? 0)
      const room = Math.min(own, left, Math.max(even, hasMore ? atOnce.hasMore : atOnce.unknown))
      if (room < 1 || attempts.pace.isSlow(endpointId)) continue
      shares.push({ endpointId, from, room })
      left -= room
    }
    return shares
  }

  #sharesOfSlow(): ReadonlyArray<LaneShare> {
    const { attempts, options } = this.#parts
    const { slow } = attempts.pace
    const inLine = Array.filterMap(this.#line, ([endpointId, { from }]) =>
      Option.map(Option.fromNullable(slow.get(endpointId)), (known) => ({ ...known, endpointId, from }))
    )
    return slowShares(inLine, slow, attempts.lanes(), attempts.aside, options)
  }

  /** Claims and begins deliveries of lanes, which go to the end of the line or leave it. Returns how many it took. */
  #claimOf(usual: ReadonlyArray<LaneShare>, slow: ReadonlyArray<LaneShare>): Effect.Effect<number> {
    const { attempts, begin, options, queue, run } = this.#parts
    this.health.line.begin("claims")
    const claimedAt = performance.now()
    const shares = [...usual, ...slow]
    const lanes = shares.map(({ endpointId, from }) => {
      const lane = { from, hasMore: false }
      this.#line.delete(endpointId)
      this.#line.set(endpointId, lane)
      return lane
    })
    const areSlow = new Set(slow.map(({ endpointId }) => endpointId))
    const claim = queue.claimOfLanes({ lanes: shares, lease: options.lease }).pipe(
      Effect.tap(({ deliveries, found }) => {
        const ofEach = new Map(found.map((of) => [of.endpointId, of]))
        for (const [index, { endpointId, room }] of shares.entries()) {
          // It has entered again meanwhile
          if (this.#line.get(endpointId) !== lanes[index]) continue
          const of = ofEach.get(endpointId)
          if (of !== undefined && of.count >= room) this.#line.set(endpointId, { from: of.first, hasMore: true })
          else this.#line.delete(endpointId)
        }
        const [others, aside] = Array.partition(deliveries, ({ endpointId }) => areSlow.has(endpointId))
        // Takes some turns of the event loop, for which the next claim need not wait
        if (aside.length > 0) run(begin(aside, claimedAt, true))
        return begin(others, claimedAt, false)
      }),
      Effect.map(({ deliveries }) => deliveries.length)
    )
    if (slow.length > 0) {
      attempts.pace.forgetOld(claimedAt, (endpointId) => attempts.held(endpointId) > 0 || areSlow.has(endpointId))
    }
    return Effect.map(this.#claimed(claim, this.health.line), (count) => count ?? 0)
  }

  /** Looks for endpoints with due deliveries, some at a time, and rests the longer, the longer that takes. */
  readonly #sweep: Effect.Effect<void> = Effect.gen(this, function* () {
    const { held, options, queue } = this.#parts
    const health = this.health.sweeps
    const poll = Duration.toMillis(options.pollInterval)
    let [rest, least] = [poll, 0]
    if (this.#line.size < 10 * sweptAtOnce) {
      health.begin("looks for deliveries that are due")
      const startedAt = performance.now()
      const swept = yield* this.#claimed(queue.sweep(this.#swept, sweptAtOnce), health)
      if (swept === null) return
      this.#swept = swept.last ?? noEndpoint
      for (const endpointId of swept.due) this.enterLine(endpointId)
      const took = performance.now() - startedAt
      const isIdle = swept.due.length === 0 && held.count === 0
      least = restAfterSweep.amid * took
      rest =
        swept.last === null
          ? Math.min(mostRest * poll, Math.max(isIdle ? mostIdle * poll : poll, restAfterSweep.atEnd * took))
          : 0
    }
    health.begin("rests between looks for deliveries that are due", least + rest)
    yield* Effect.sleep(least)
    yield* this.#sweepNow.wait(rest)
  })

  /**
   * Treats a failed claim as none, after a pause. Uninterruptible: a claim whose attempts do not follow would stay leased
   * until the lease expires.
   */
  #claimed<A>(claim: Effect.Effect<A, SqlError.SqlError>, health: LoopHealth): Effect.Effect<A | null> {
    return claim.pipe(
      Effect.uninterruptible,
      Effect.catchAll((error) => {
        health.begin(unanswered)
        return Effect.logWarning("Deliveries can't be claimed", error).pipe(
          Effect.zipRight(Effect.sleep("1 second")),
          Effect.as(null)
        )
      })
    )
  }
}
