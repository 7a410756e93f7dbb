import { SqlClient } from "@effect/sql"
import { Clock, Duration, Effect } from "effect"
import { WakeUp } from "../../engine/queue/WakeUp.ts"
import type { EventType } from "../../events/Catalog.ts"
import { encodeEnvelope } from "../../events/Envelope.ts"
import { neverReceived } from "../../events/NeverReceived.ts"
import { syntheticEvent } from "../../events/Synthetic.ts"
import type { PrincipalShape, Tenant } from "../../identity/Principal.ts"
import {
  EndpointPaused,
  EventTypeNotSubscribed,
  ProviderAccountNotConnected,
  TestEnvironmentRequired,
  TestRateLimitExceeded
} from "../../platform/errors/Errors.ts"
import { makeAudit } from "../../platform/kit/Audit.ts"
import { type EndpointId, newId } from "../../platform/kit/Ids.ts"
import { service } from "../../platform/kit/Service.ts"
import { orUnavailable, transaction } from "../../platform/storage/Database.ts"
import { currentTraceparent } from "../../platform/telemetry/Spans.ts"
import { makeEndpointsRepo, noEndpoint } from "../endpoints/EndpointsRepo.ts"
import { makeSyntheticTestsRepo, type TestCandidate, testsPerMinute } from "./SyntheticTestsRepo.ts"

const make = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const repo = yield* makeSyntheticTestsRepo
  const endpoints = yield* makeEndpointsRepo
  const audit = yield* makeAudit
  const { announce } = yield* WakeUp

  /** Concurrent tests in any process are counted one after another. */
  const lock = (tenant: Tenant, id: EndpointId) =>
    Effect.zipRight(
      endpoints.lock(tenant, id),
      // A separate statement: the first would still see the rows as they were before it waited for the lock
      Effect.flatMap(repo.find(tenant, id), Effect.mapError(noEndpoint))
    )

  /** Queues a synthetic event, whatever the endpoint's filters; `announce` it after the commit. */
  const queue = Effect.fn("SyntheticTests.queue")(function* (
    principal: PrincipalShape,
    id: EndpointId,
    type: EventType
  ) {
    const testId = yield* newId
    const createdAt = new Date(yield* Clock.currentTimeMillis)
    const envelope = syntheticEvent({ organizationId: principal.organizationId, testId, createdAt, type })
    const traceparent = yield* currentTraceparent
    return yield* transaction(sql)(
      Effect.gen(function* () {
        const candidate = yield* lock(principal, id)
        yield* judge(principal, candidate, type)
        const matching = [{ endpointId: id, secretIds: candidate.secretIds }]
        const event = { id: envelope.id, type, payload: encodeEnvelope(envelope), matching }
        const deliveryId = yield* repo.insert(principal, id, {
          events: [event],
          receivedAt: createdAt,
          traceparent
        })
        yield* audit({ ...principal, action: "endpoint.tested", targetId: id })
        const warnings = neverReceived([type], candidate.filters)
        return { id: deliveryId, eventId: envelope.id, state: "queued", test: true, warnings } as const
      })
    )
  }, orUnavailable)

  return { queue, announce }
})

export class SyntheticTests extends service<SyntheticTests>()("connected-payments/publishing/SyntheticTests", make) {}

/** Fails, with the most basic reason first, if an endpoint can't be tested with this type now. */
const judge = Effect.fnUntraced(function* (tenant: Tenant, candidate: TestCandidate, type: EventType) {
  if (tenant.environment !== "sandbox") {
    return yield* new TestEnvironmentRequired()
  }
  if (!candidate.connected) {
    return yield* new ProviderAccountNotConnected()
  }
  if (!candidate.active) {
    return yield* new EndpointPaused()
  }
  if (candidate.secretIds.length === 0) {
    return yield* new EndpointPaused({
      message: "The endpoint has no signing secret; rotate it before sending a test event."
    })
  }
  if (!candidate.events.includes(type)) {
    return yield* new EventTypeNotSubscribed({
      message: `type is an event type that the endpoint does not subscribe to; it subscribes to ${candidate.events.join(", ")}.`,
      fields: ["type"]
    })
  }
  if (candidate.testsInLastMinute >= testsPerMinute) {
    return yield* new TestRateLimitExceeded({ retryAfter: Duration.seconds(candidate.secondsToNextTest) })
  }
})
