import { expect } from "@effect/vitest"
import { Effect } from "effect"
import { onSharedService, TestService } from "../../harness/TestService.ts"
import { asTenant, makeTenant, type Tenant } from "../../inbound/Notifications.ts"
import { expectFailure } from "./Refusals.ts"

const read = (tenant: Tenant, query = "", key = tenant.key) => asTenant(tenant, "GET", `/statistics${query}`, { key })

const millisPerDay = 86_400_000

const dateOf = (millis: number) => new Date(millis).toISOString().slice(0, 10)

onSharedService("the statistics", (it) => {
  it.effect("are of the last days, today included, each tenant's own in each environment", function* () {
    const { makeKey, sql } = yield* TestService
    const [tenant, stranger] = [yield* makeTenant, yield* makeTenant]
    const now = Date.now()
    // Well within each day, whatever the time is
    for (const ago of [0, 1, 6, 7, 89, 90]) {
      yield* sql`
          INSERT INTO payments.payment_counts (organization_id, environment, day, pass, slot, currency, kind, count, amount)
          VALUES (${tenant.id}, 'sandbox', ${dateOf(now - ago * millisPerDay)}::date, 0, now(), 'kwd', 'succeeded', 1, ${ago + 1})`
    }
    const amounts = (query: string) =>
      Effect.map(read(tenant, query), ({ json, status, text }) => {
        expect(status, text).toBe(200)
        return Array.from(Object(json["payments"]), (day) => Number(Object(day).succeeded.amount))
      })
    expect(yield* amounts("?days=1")).toEqual([1])
    expect(yield* amounts("?days=7")).toEqual([7, 2, 1])
    expect(yield* amounts("")).toEqual([8, 7, 2, 1])
    expect(yield* amounts("?days=90")).toEqual([90, 8, 7, 2, 1])
    const { json } = yield* read(tenant, "?days=7")
    expect(json).toMatchObject({ from: dateOf(now - 6 * millisPerDay), until: dateOf(now) })
    expect(json["countedUntil"]).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
    const live = yield* makeKey(tenant.id, ["webhook-endpoints:read"], { mode: "live" }).pipe(Effect.orDie)
    for (const answer of [yield* read(tenant, "", live), yield* read(stranger)]) {
      expect(answer.json).toMatchObject({ payments: [], deliveries: [], endpoints: [] })
    }
    expectFailure(yield* read(tenant, "", stranger.key), { status: 403, code: "organization_access_denied" })
  })
})
