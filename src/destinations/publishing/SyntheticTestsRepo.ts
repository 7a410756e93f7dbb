import { SqlClient } from "@effect/sql"
import { Effect } from "effect"
import { signingSecretIds } from "../../engine/attempts/Signing.ts"
import type { EventType } from "../../events/Catalog.ts"
import type { Filters } from "../../events/Filters.ts"
import type { DeliveryId, EndpointId } from "../../platform/kit/Ids.ts"
import { existingOf, ofTenant, type Tenant } from "../../platform/kit/Tenant.ts"
import { firstRow } from "../../platform/storage/Database.ts"
import type { NewEvent } from "./Publication.ts"
import { publicationParts, type TenantPublication } from "./PublicationStatement.ts"

export const testsPerMinute = 5

/** The state that decides whether an endpoint may be tested, and the secrets that sign its tests. */
export interface TestCandidate {
  readonly active: boolean
  readonly events: ReadonlyArray<EventType>
  readonly filters: Filters
  /** Whether the organization's account is connected in this environment. */
  readonly connected: boolean
  readonly secretIds: ReadonlyArray<string>
  readonly testsInLastMinute: number
  /** Seconds until the oldest of those is a minute old; 0 if there are none. */
  readonly secondsToNextTest: number
}

export const makeSyntheticTestsRepo = Effect.map(SqlClient.SqlClient, (sql) => ({
  /** Reads the state that decides about a test, of an endpoint whose row is locked. None if there is no such endpoint. */
  find: (tenant: Tenant, id: EndpointId) =>
    firstRow(sql<TestCandidate>`
        SELECT e.active, COALESCE(e.events, ARRAY['payment.succeeded']) AS events, e.filters,
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
        WHERE ${existingOf(sql, tenant, "e")} AND e.id = ${id}`),

  /** Stores an event without deliveries: only streams contain it. */
  insertUndelivered: (tenant: Tenant, event: NewEvent, receivedAt: Date) =>
    sql`WITH ${publicationParts(sql, tenant, { events: [event], receivedAt })} SELECT id FROM event`,

  /** Stores an event with its delivery to the endpoint, and counts the test. Returns the delivery's id. */
  insert: (tenant: Tenant, endpointId: EndpointId, publication: TenantPublication) =>
    Effect.flatMap(
      sql<{ readonly id: DeliveryId }>`
        WITH counted AS (
          UPDATE payments.endpoints SET recent_tests = clock_timestamp() || recent_tests[1:${testsPerMinute - 1}::int]
          WHERE ${ofTenant(sql, tenant)} AND id = ${endpointId}
        ), ${publicationParts(sql, tenant, publication, { test: true })}
        SELECT id FROM delivery`,
      ([stored]) =>
        stored === undefined
          ? Effect.dieMessage("A test of a locked, active endpoint has one delivery")
          : Effect.succeed(stored.id)
    )
}))
