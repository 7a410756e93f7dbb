import { SqlClient } from "@effect/sql"
import { Clock, Duration, Effect, type Layer, Queue as Mailbox, Option, Predicate } from "effect"
import { WakeUp } from "../../engine/queue/WakeUp.ts"
import { passes, subjectsFor } from "../../events/Filters.ts"
import type { PrincipalShape } from "../../identity/Principal.ts"
import {
  EndpointDeleted,
  EndpointPaused,
  EventTypeNotSubscribed,
  ReplayInProgress,
  ValidationFailed
} from "../../platform/errors/Errors.ts"
import { type AuditAction, makeAudit } from "../../platform/kit/Audit.ts"
import { KeyedHash } from "../../platform/kit/crypto/KeyedHash.ts"
import { type EndpointId, EventReplayId, firstIdAt, newId, replayedDeliveryId } from "../../platform/kit/Ids.ts"
import { serviceWith } from "../../platform/kit/Service.ts"
import { orUnavailable, transaction } from "../../platform/storage/Database.ts"
import { backgroundStepsLayer, stepPause } from "../deliveries/BackgroundSteps.ts"
import { endpointReads, missingOf } from "../endpoints/EndpointReads.ts"
import { makeEndpointsRepo, noEndpoint } from "../endpoints/EndpointsRepo.ts"
import type { StartEventReplay } from "./Api.ts"
import { type LockedReplay, type LookedAtEvent, makeEventReplaysRepo, type ReplayStep } from "./EventReplaysRepo.ts"

/** The most deliveries that one step creates: few, so that a new event waits for few. */
const deliveriesPerStep = 100

const waitingPause: Duration.DurationInput = "1 second"

export interface EventReplaysOptions {
  /** How old an event can be to be replayed: as long as deliveries are kept. */
  readonly keepFor: Duration.Duration
}

const noReplay = missingOf("replay")

/** The range of a request; without `until`, it ends now. */
const rangeOf = Effect.fnUntraced(function* ({ since, until: wanted }: StartEventReplay) {
  const now = new Date(yield* Clock.currentTimeMillis)
  const until = wanted ?? now
  if (until > now) {
    return yield* new ValidationFailed({ message: "`until` must not be in the future.", fields: ["until"] })
  }
  if (since >= until) {
    return yield* wanted === undefined
      ? new ValidationFailed({ message: "`since` must not be in the future.", fields: ["since"] })
      : new ValidationFailed({ message: "`since` must be before `until`.", fields: ["since", "until"] })
  }
  return { since, until }
})

const isSent = (
  { filterSubjects, id }: LookedAtEvent,
  payload: string,
  { filters }: LockedReplay,
  keyedHash: KeyedHash["Type"]
): boolean => {
  const envelope: unknown = JSON.parse(payload)
  if (!Predicate.isRecord(envelope) || envelope["test"] === true) return false
  const data = Predicate.isRecord(envelope["data"]) ? envelope["data"] : {}
  return passes(filters, { data, subjects: subjectsFor(keyedHash, id, filterSubjects, filters) })
}

/** Decides what a step does with the next events. Pure. */
const stepOf = (
  replay: LockedReplay,
  events: ReadonlyArray<LookedAtEvent>,
  last: boolean,
  keyedHash: KeyedHash["Type"]
): ReplayStep => {
  const deliveries: Array<ReplayStep["deliveries"][number]> = []
  let skipped = 0
  for (const event of events) {
    if (event.payload === null) continue
    if (isSent(event, event.payload, replay, keyedHash)) {
      const { endpointId, id: replayId } = replay
      deliveries.push({ id: replayedDeliveryId({ replayId, eventKey: event.key, endpointId }), eventKey: event.key })
    } else {
      skipped += 1
    }
    if (deliveries.length === deliveriesPerStep) {
      return { deliveries, skipped, reached: event.key, state: "running" }
    }
  }
  const reached = events.at(-1)?.key ?? replay.reached
  return { deliveries, skipped, reached, state: last ? "finished" : "running" }
}

const makeParts = Effect.fnUntraced(function* ({ keepFor }: EventReplaysOptions) {
  const sql = yield* SqlClient.SqlClient
  const wakeUp = yield* WakeUp
  const keyedHash = yield* KeyedHash
  const repo = yield* makeEventReplaysRepo
  const endpoints = yield* makeEndpointsRepo
  const audit = yield* makeAudit
  const started = yield* Mailbox.sliding<void>(1)
  const record = (principal: PrincipalShape, action: AuditAction, id: EventReplayId) =>
    audit({ ...principal, action, targetId: id })
  return { keepFor, sql, wakeUp, keyedHash, repo, endpoints, audit, started, record }
})

type Parts = Effect.Effect.Success<ReturnType<typeof makeParts>>

const makeTakeStep = ({ keepFor, keyedHash, repo }: Parts) => {
  /**
   * The next events of a replay. Leaves out events older than the retention of deliveries, even if still stored: each
   * replay's deliveries would keep the whole day, with all organizations' data of it, for as long as somebody replays
   * it.
   */
  const nextOf = (replay: LockedReplay) =>
    Effect.gen(function* () {
      const oldest = firstIdAt((yield* Clock.currentTimeMillis) - Duration.toMillis(keepFor))
      const reached = replay.reached < oldest ? oldest : replay.reached
      const end = yield* repo.settledEnd(replay)
      const { events, last } = yield* repo.next({ ...replay, reached, end })
      return { events, last: last && end === replay.end }
    })

  /** Takes a step, in a transaction. Returns how many deliveries it created; none if there was nothing to do. */
  const takeStep = Effect.fnUntraced(function* (id: EventReplayId | null) {
    const locked = yield* repo.lock(id)
    if (Option.isNone(locked)) {
      return Option.none<number>()
    }
    const replay = locked.value
    const { reached } = replay
    const { events, last } = replay.deleted ? { events: [], last: true } : yield* nextOf(replay)
    const done: ReplayStep = replay.deleted
      ? { deliveries: [], skipped: 0, reached, state: "canceled" }
      : stepOf(replay, events, last, keyedHash)
    yield* repo.store(replay, done)
    return Option.some(done.deliveries.length)
  })

  return takeStep
}

const makeQueue = ({ endpoints, record, repo, sql }: Parts, takeStep: ReturnType<typeof makeTakeStep>) => {
  const begin = Effect.fnUntraced(function* (
    principal: PrincipalShape,
    endpointId: EndpointId,
    { types }: StartEventReplay,
    range: { readonly since: Date; readonly until: Date }
  ) {
    const endpoint = yield* Effect.flatMap(endpoints.lock(principal, endpointId), Effect.mapError(noEndpoint))
    if (endpoint.deleted) {
      return yield* new EndpointDeleted({ message: "The endpoint was deleted; nothing more is sent to it." })
    }
    if (!endpoint.active) {
      return yield* new EndpointPaused({ message: "The endpoint is paused; activate it before sending events to it." })
    }
    if (!endpoint.canSign) {
      return yield* new EndpointPaused({
        message: "The endpoint has no signing secret; rotate it before sending events to it."
      })
    }
    const unwanted = types?.filter((type) => !endpoint.events.includes(type)) ?? []
    if (unwanted.length > 0) {
      return yield* new EventTypeNotSubscribed({
        message: `types has event types that the endpoint does not subscribe to; it subscribes to ${endpoint.events.join(", ")}.`,
        fields: ["types"]
      })
    }
    if (yield* repo.isRunning(principal, endpointId)) {
      return yield* new ReplayInProgress()
    }
    const id = EventReplayId.make(yield* newId)
    yield* repo.insert(principal, endpointId, { id, types: types ?? null, ...range })
    yield* record(principal, "event_replay.started", id)
    yield* takeStep(id)
    return yield* Effect.flatMap(repo.find(principal, endpointId, id), Effect.orDie)
  })

  const queue = Effect.fn("EventReplays.queue")(function* (
    principal: PrincipalShape,
    endpointId: EndpointId,
    params: StartEventReplay
  ) {
    const range = yield* rangeOf(params)
    return yield* transaction(sql)(begin(principal, endpointId, params, range))
  }, orUnavailable)

  return queue
}

const makeCancel = ({ record, repo, sql }: Parts) => {
  const end = Effect.fnUntraced(function* (principal: PrincipalShape, endpointId: EndpointId, id: EventReplayId) {
    if (yield* repo.cancel(principal, endpointId, id)) {
      yield* record(principal, "event_replay.canceled", id)
    }
    return yield* Effect.flatMap(repo.find(principal, endpointId, id), Effect.mapError(noReplay))
  })

  const cancel = Effect.fn("EventReplays.cancel")(
    (principal: PrincipalShape, endpointId: EndpointId, id: EventReplayId) =>
      transaction(sql)(end(principal, endpointId, id)),
    orUnavailable
  )

  return { end, cancel }
}

const make = Effect.fnUntraced(function* ({ keepFor }: EventReplaysOptions) {
  const parts = yield* makeParts({ keepFor })
  const takeStep = makeTakeStep(parts)
  /** Starts a replay and takes its first step; `announce` it after the commit. */
  const queue = makeQueue(parts, takeStep)
  const { get, list } = endpointReads("EventReplays", parts, "replay")
  /** Cancels a replay if it is running, and returns it. Deliveries that it has created are sent. */
  const cancel = makeCancel(parts)
  /** Takes one step of a running replay. Returns how many deliveries it created; none if no replay has room. */
  const step = transaction(parts.sql)(takeStep(null)).pipe(
    Effect.tap((done) => (Option.getOrElse(done, () => 0) > 0 ? parts.wakeUp.announce : Effect.void))
  )
  const announce = Effect.zipRight(parts.wakeUp.announce, Effect.asVoid(Mailbox.offer(parts.started, undefined)))

  return {
    queue,
    announce,
    get,
    list,
    cancel: cancel.cancel,
    step,
    /** Whether any replay of an active endpoint is running. */
    hasRunning: parts.repo.hasRunning,
    await: Mailbox.take(parts.started)
  }
})

/** The progress of a replay is in the database: any process can take its next step. */
export class EventReplays extends serviceWith<EventReplays>()("connected-payments/destinations/EventReplays", make) {}

/** Runs replays in every process: those started in it at once, and those left over from other processes. */
export const eventReplaysLayer: Layer.Layer<never, never, EventReplays> = backgroundStepsLayer(
  Effect.map(EventReplays, (replays) => ({
    name: "A replay",
    step: Effect.flatMap(
      replays.step,
      Option.match({
        onSome: () => Effect.succeedSome(stepPause),
        onNone: () => Effect.map(replays.hasRunning, (waits) => (waits ? Option.some(waitingPause) : Option.none()))
      })
    ),
    await: replays.await
  }))
)
