import { SqlClient } from "@effect/sql"
import { Clock, Duration, Effect, type Layer, Queue as Mailbox, Option } from "effect"
import { deliveryWindow } from "../../engine/attempts/Outcome.ts"
import { WakeUp } from "../../engine/queue/WakeUp.ts"
import type { PrincipalShape } from "../../identity/Principal.ts"
import { EndpointDeleted, RecoveryInProgress, ValidationFailed } from "../../platform/errors/Errors.ts"
import { makeAudit } from "../../platform/kit/Audit.ts"
import { type EndpointId, newId, RecoveryId } from "../../platform/kit/Ids.ts"
import { service } from "../../platform/kit/Service.ts"
import { orUnavailable, transaction } from "../../platform/storage/Database.ts"
import { backgroundStepsLayer, stepPause } from "../deliveries/BackgroundSteps.ts"
import { endpointReads } from "../endpoints/EndpointReads.ts"
import { makeEndpointsRepo, noEndpoint } from "../endpoints/EndpointsRepo.ts"
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

const make = Effect.gen(function* () {
  const wakeUp = yield* WakeUp
  const parts = yield* makeParts
  const started = yield* Mailbox.sliding<void>(1)
  const queue = yield* makeQueue(parts)
  const announce = Effect.zipRight(wakeUp.announce, Effect.asVoid(Mailbox.offer(started, undefined)))
  const step = Effect.tap(parts.repo.step(null), (done) =>
    Option.isSome(done) && done.value.queued > 0 ? wakeUp.announce : Effect.void
  )

  const reads = endpointReads("Recoveries", parts, "recovery")

  return { queue, announce, ...reads, step, await: Mailbox.take(started) }
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
