import { expect } from "@effect/vitest"
import { matchableEndpoints } from "../../../src/destinations/publishing/PublicationStatement.ts"
import { onService, TestService } from "../../harness/TestService.ts"
import { makeNewTenant } from "../../inbound/Notifications.ts"
import { readBy } from "../../platform/storage/PlanRows.ts"

onService({ roles: { api: true, worker: false } })("a tenant's endpoints", (it) => {
  it.effect("are found without reading those that were deleted", function* () {
    const { sql } = yield* TestService
    const { id } = yield* makeNewTenant
    yield* sql`
        INSERT INTO payments.endpoints (organization_id, environment, id, name, url, deleted_at)
        SELECT ${id}, 'sandbox', gen_random_uuid(), 'Any', 'https://shop.example/', NULLIF(now(), CASE WHEN n = 1 THEN now() END)
        FROM generate_series(1, 3000) AS n`
    const matchable = sql`
        SELECT ${matchableEndpoints(sql, "a")} FROM payments.provider_accounts a
        WHERE a.organization_id = ${id} AND a.environment = 'sandbox'`
    const counted = sql`
        SELECT count(*) FROM payments.endpoints e
        WHERE e.organization_id = ${id} AND e.environment = 'sandbox' AND e.deleted_at IS NULL`
    for (const statement of [matchable, counted]) {
      const { indexes, rows } = yield* readBy(sql, statement)
      expect(indexes).toContain("endpoints_in_use")
      expect(rows).toBeLessThan(10)
    }
  })
})
