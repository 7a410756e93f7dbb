import { expect } from "@effect/vitest"
import { matchableEndpoints } from "../../../src/destinations/publishing/PublicationStatement.ts"
import { failingEndpoints } from "../../../src/destinations/warnings/WarningsRepo.ts"
import { onService, TestService } from "../../harness/TestService.ts"
import { makeSubscriber } from "../../inbound/Notifications.ts"
import { readBy } from "../../platform/storage/PlanRows.ts"
import { storeDeliveries } from "../deliveries/StoredDeliveries.ts"

const deleted = 3000

onService({ roles: { api: true, worker: false } })("an organization that has deleted very many endpoints", (it) => {
  it.effect("costs those that look after all organizations no more than another", function* () {
    const { sql } = yield* TestService
    const { id, tenant } = yield* makeSubscriber()
    yield* storeDeliveries({ organizationId: tenant.id, endpointId: id, count: 3 })
    yield* sql`
        WITH endpoint AS (
          INSERT INTO payments.endpoints (organization_id, environment, id, name, url, deleted_at)
          SELECT ${tenant.id}, 'sandbox', gen_random_uuid(), 'Gone', 'https://gone.example/', now()
          FROM generate_series(1, ${deleted}::int) RETURNING *
        )
        INSERT INTO payments.deliveries (organization_id, environment, id, endpoint_id, event_id, secret_ids, state, attempts,
          finished_at)
        SELECT organization_id, environment, overlay(gen_random_uuid()::text PLACING
            substr(payments.id_at(now())::text, 1, 13) FROM 1)::uuid, id, 'gone', ARRAY[id], 'failed', '{}', now()
        FROM endpoint`
    const destinations = sql`
        SELECT ${matchableEndpoints(sql, "a")} FROM payments.provider_accounts a WHERE a.account_id = ${tenant.accountId}`
    for (const statistics of ["without statistics", "with statistics"]) {
      if (statistics === "with statistics") yield* sql`ANALYZE payments.endpoints, payments.deliveries`
      for (const [what, statement] of Object.entries({ destinations, failing: failingEndpoints(sql) })) {
        const { rows } = yield* readBy(sql, statement)
        expect(rows, `${what} ${statistics}: ${rows} rows`).toBeLessThan(100)
      }
    }
    expect(yield* failingEndpoints(sql)).toEqual([
      { organizationId: tenant.id, environment: "sandbox", endpointId: id }
    ])
  })
})
