import { expect } from "@effect/vitest"
import { Effect, Option } from "effect"
import { eventually } from "../../harness/Eventually.ts"
import { onSharedService } from "../../harness/TestService.ts"
import { accepted, asTenant, makeSubscriber, notification, notify } from "../../inbound/Notifications.ts"

onSharedService("the statistics", (it) => {
  it.effect("count in the background what is stored", function* () {
    const { id, tenant } = yield* makeSubscriber()
    yield* accepted(notify(notification(tenant.accountId)))
    const counted = yield* eventually(
      "the count",
      Effect.map(asTenant(tenant, "GET", "/statistics"), ({ json, status, text }) => {
        expect(status, text).toBe(200)
        // Each kind is counted by itself
        return [json["deliveries"], json["payments"], json["endpoints"]].every((each) => Array.isArray(each) && each[0])
          ? Option.some(json)
          : Option.none()
      }),
      // They are behind by design
      180_000
    )
    expect(counted["payments"]).toEqual([
      {
        date: expect.stringMatching(/^\d{4}-\d\d-\d\d$/),
        currency: "brl",
        succeeded: { count: 1, amount: expect.stringMatching(/^\d+$/) },
        failed: { count: 0, amount: "0" },
        refunded: { count: 0, amount: "0" },
        refundFailed: { count: 0, amount: "0" }
      }
    ])
    const day = { date: expect.any(String), delivered: 0, failed: 0, queued: 1 }
    expect(counted["deliveries"]).toEqual([day])
    expect(counted["endpoints"]).toEqual([{ id, days: [day] }])
  })
})
