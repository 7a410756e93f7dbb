import { SqlClient } from "@effect/sql"
import { Effect, Option } from "effect"
import { signingSecretIds } from "../../engine/attempts/SecretLifetime.ts"
import type { EventType } from "../../events/Catalog.ts"
import type { DeliveryId, EndpointId } from "../../platform/kit/Ids.ts"
import type { Tenant } from "../../platform/kit/Tenant.ts"
import {
  matchingPart,
  type NewEvent,
  parametersFor,
  publicationValues,
  sourcePart,
  storingParts
} from "./Publication.ts"

/** The most new synthetic tests per minute and endpoint (contract 10.2). */
export const testsPerMinute = 5

/** The state that decides whether an endpoint may be tested, and the secrets that sign its tests. */
export interface TestCandidate {
  readonly active: boolean
  readonly events: ReadonlyArray<EventType>
  /** Whether the organization's account is connected in this environment. */
  readonly connected: boolean
  /** The secrets that sign new events, the current one first. */
  readonly secretIds: ReadonlyArray<string>
  readonly testsInLastMinute: number
  /** Seconds until the oldest of those is a minute old; 0 if there are none. */
  readonly secondsToNextTest: number
}

/** A synthetic event that goes only to the tested endpoint. */
export interface NewTest {
  readonly event: NewEvent
  readonly receivedAt: Date
  readonly traceparent: string | null
}

/** The SQL of synthetic tests, private to this slice. */
export const makeSyntheticTestsRepo = Effect.map(SqlClient.SqlClient, (sql) => ({
  /**
   * Reads the state that decides about a test, under the endpoint's row lock, so that concurrent tests in any process
   * are counted one after another. None if there is no such endpoint.
   */
  lock: (tenant: Tenant, id: EndpointId) =>
    sql`
      SELECT 1 FROM payments.endpoints
      WHERE organization_id = ${tenant.organizationId} AND environment = ${tenant.environment} AND id = ${id}
      FOR NO KEY UPDATE`.pipe(
      // A separate statement: the first would still see the rows as they were before it waited for the lock
      Effect.zipRight(sql<TestCandidate>`
        SELECT e.active, COALESCE(e.events, ARRAY['payment.succeeded']) AS events,
          EXISTS (
            SELECT 1 FROM payments.provider_accounts a
            WHERE a.organization_id = e.organization_id AND a.environment = e.environment AND a.status = 'connected'
          ) AS connected,
          COALESCE(${sql.literal(signingSecretIds("e"))}, '[]') AS "secretIds",
          tests.count AS "testsInLastMinute", tests.seconds AS "secondsToNextTest"
        FROM payments.endpoints e, LATERAL (
          SELECT count(*)::int AS count,
            GREATEST(0, COALESCE(extract(epoch FROM min(at) + interval '1 minute' - clock_timestamp()), 0))::float8
              AS seconds
          FROM unnest(e.recent_tests) AS at WHERE at > clock_timestamp() - interval '1 minute'
        ) AS tests
        WHERE e.organization_id = ${tenant.organizationId} AND e.environment = ${tenant.environment} AND e.id = ${id}
          AND e.deleted_at IS NULL`),
      Effect.map(([row]) => Option.fromNullable(row))
    ),

  /** Stores an event with its delivery to the endpoint, and counts the test. Returns the delivery's id. */
  insert: (tenant: Tenant, endpointId: EndpointId, { event, receivedAt, traceparent }: NewTest) => {
    const of = parametersFor(sql, publicationValues([{ events: [event], receivedAt }]))
    return Effect.flatMap(
      sql<{ readonly id: DeliveryId }>`
        WITH counted AS (
          UPDATE payments.endpoints SET recent_tests = clock_timestamp() || recent_tests[1:${testsPerMinute - 1}::int]
          WHERE organization_id = ${tenant.organizationId} AND environment = ${tenant.environment} AND id = ${endpointId}
        ), ${sourcePart(sql, tenant, { providerEventId: null, sourceEventId: null, traceparent, receivedAt })},
        ${matchingPart(sql, of)}, ${storingParts(sql, of, { test: true, skippedIf: sql`false` })}
        SELECT id FROM delivery`,
      ([stored]) =>
        stored === undefined
          ? Effect.dieMessage("A test of a locked, active endpoint has one delivery")
          : Effect.succeed(stored.id)
    )
  }
}))
