import { SqlClient } from "@effect/sql"
import { Clock, Duration, Effect, type Layer, Queue as Mailbox, Option } from "effect"
import { deliveryWindow } from "../../engine/attempts/Outcome.ts"
import { WakeUp } from "../../engine/queue/WakeUp.ts"
import type { PrincipalShape } from "../../identity/Principal.ts"
import {
  EndpointDeleted,
  RecoveryInProgress,
  ResourceNotFound,
  unknownCursor,
  ValidationFailed
} from "../../platform/errors/Errors.ts"
import { makeAudit } from "../../platform/kit/Audit.ts"
import { type EndpointId, newId, RecoveryId } from "../../platform/kit/Ids.ts"
import { defaultPageSize, pageOf } from "../../platform/kit/Request.ts"
import { service } from "../../platform/kit/Service.ts"
import type { Tenant } from "../../platform/kit/Tenant.ts"
import { orUnavailable, transaction } from "../../platform/storage/Database.ts"
import { backgroundStepsLayer, stepPause } from "../deliveries/BackgroundSteps.ts"
import { makeEndpointsRepo, noEndpoint } from "../endpoints/EndpointsRepo.ts"
import type { ListRecoveries } from "./Api.ts"
import { makeRecoveriesRepo } from "./RecoveriesRepo.ts"

/** Tolerance for latency and clocks, for a caller that computes 72 hours before now. */
const grace = Duration.minutes(1)

const checkSince = Effect.fnUntraced(function* (since: Date) {
  const age = (yield* Clock.currentTimeMillis) - since.getTime()
  if (age < 0 || age > Duration.toMillis(Duration.sum(deliveryWindow, grace))) {
    return yield* new ValidationFailed({
      message: `\`since\` must be within the last 72 hours, since older deliveries can't be re-sent; got "${since.toISOString()}".`,
      fields: ["since"]
    })
  }
})

const makeParts = Effect.all({ repo: makeRecoveriesRepo, endpoints: makeEndpointsRepo })

type Parts = Effect.Effect.Success<typeof makeParts>

/**
 * Starts a recovery of everything that failed between `since` and now and takes its first step, so that a small one
 * is finished in the answer. If a running recovery already reaches back as far, returns that one. The caller must
 * `announce` it after the commit.
 */
const makeQueue = Effect.fnUntraced(function* ({ endpoints, repo }: Parts) {
  const sql = yield* SqlClient.SqlClient
  const audit = yield* makeAudit

  const begin = Effect.fnUntraced(function* (principal: PrincipalShape, endpointId: EndpointId, since: Date) {
    const endpoint = yield* Effect.flatMap(endpoints.lock(principal, endpointId), Effect.mapError(noEndpoint))
    if (endpoint.deleted) {
      return yield* new EndpointDeleted()
    }
    const running = yield* repo.findRunning(principal, endpointId)
    if (Option.isSome(running)) {
      return running.value.since <= since ? running.value : yield* new RecoveryInProgress()
    }
    const id = RecoveryId.make(yield* newId)
    yield* repo.insert(principal, endpointId, id, since)
    yield* audit({ ...principal, action: "recovery.started", targetId: id })
    yield* repo.step(id)
    return yield* Effect.flatMap(repo.find(principal, endpointId, id), Effect.orDie)
  })

  return Effect.fn("Recoveries.queue")(function* (principal: PrincipalShape, endpointId: EndpointId, since: Date) {
    yield* checkSince(since)
    return yield* transaction(sql)(begin(principal, endpointId, since))
  }, orUnavailable)
})

const reads = ({ endpoints, repo }: Parts) => {
  const get = Effect.fn("Recoveries.get")(function* (tenant: Tenant, endpointId: EndpointId, id: RecoveryId) {
    return yield* Effect.flatMap(
      repo.find(tenant, endpointId, id),
      Effect.mapError(() => new ResourceNotFound({ message: "There is no such recovery of this endpoint." }))
    )
  }, orUnavailable)

  /** An endpoint's recoveries, newest first. Refuses a `starting_after` that is not one of them. */
  const list = Effect.fn("Recoveries.list")(function* (tenant: Tenant, endpointId: EndpointId, query: ListRecoveries) {
    if (!(yield* endpoints.existed(tenant, endpointId))) {
      return yield* noEndpoint()
    }
    const { starting_after: after } = query
    if (after !== undefined && Option.isNone(yield* repo.find(tenant, endpointId, after))) {
      return yield* unknownCursor()
    }
    const limit = query.limit ?? defaultPageSize
    const rows = yield* repo.list(tenant, endpointId, query, limit + 1)
    return pageOf(rows, limit)
  }, orUnavailable)

  return { get, list }
}

const make = Effect.gen(function* () {
  const wakeUp = yield* WakeUp
  const parts = yield* makeParts
  const started = yield* Mailbox.sliding<void>(1)
  const queue = yield* makeQueue(parts)
  const announce = Effect.zipRight(wakeUp.announce, Effect.asVoid(Mailbox.offer(started, undefined)))
  const step = Effect.tap(parts.repo.step(null), (done) =>
    Option.isSome(done) && done.value.queued > 0 ? wakeUp.announce : Effect.void
  )

  return { queue, announce, ...reads(parts), step, await: Mailbox.take(started) }
})

/** The progress of a recovery is in the database: any process can take its next step (contract 9.4). */
export class Recoveries extends service<Recoveries>()("connected-payments/destinations/Recoveries", make) {}

/** Runs recoveries in every process: those started in it at once, and those left over from other processes. */
export const recoveriesLayer: Layer.Layer<never, never, Recoveries> = backgroundStepsLayer(
  Effect.map(Recoveries, (recoveries) => ({
    name: "A recovery",
    step: Effect.map(recoveries.step, Option.as(stepPause)),
    await: recoveries.await
  }))
)
