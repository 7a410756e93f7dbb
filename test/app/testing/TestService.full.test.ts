import { FetchHttpClient } from "@effect/platform"
import { SqlClient } from "@effect/sql"
import { Context, Effect, Layer, Option } from "effect"
import {
  LocalProvider,
  type RunningTestService,
  TestService,
  type TestServiceOptions
} from "../../../src/app/testing/index.ts"
import { makeClient } from "../../../src/client/index.ts"
import { databaseLayer } from "../../../src/platform/storage/Database.ts"
import { firstOf, makeConsumer } from "../../harness/Consumer.ts"
import { eventually } from "../../harness/Eventually.ts"
import { createTestDatabase } from "../../harness/TestDatabase.ts"
import { describe, expect, it } from "../../harness/Tests.ts"

// What other teams' suites are built on

class One extends Context.Tag("test/One")<One, RunningTestService>() {}
class Other extends Context.Tag("test/Other")<Other, RunningTestService>() {}

const emptyDatabase = () => Layer.unwrapScoped(Effect.map(createTestDatabase(), ({ url }) => databaseLayer({ url })))

const onDatabase = (options?: TestServiceOptions) => TestService.layerOnDatabase(options)

const clientOf = ({ apiKey, baseUrl, organizationId }: RunningTestService) =>
  makeClient({ baseUrl, organizationId, apiKey })

/** Waits until the service has the event of a payment that its own emulator makes. */
const hearsOfPayment = (service: RunningTestService) =>
  Effect.gen(function* () {
    yield* service.emulator.trigger({ type: "payment_intent.succeeded" })
    const client = yield* clientOf(service)
    const look = Effect.map(client.events.list({ urlParams: { type: "payment.succeeded" } }), ({ data }) =>
      Option.fromNullable(data[0])
    )
    yield* eventually("an event of the payment", look)
  })

describe("the service for other teams' suites", () => {
  it.scopedLive("starts again on a database that an earlier suite used, and beside one that uses it", function* () {
    const database = yield* Layer.build(emptyDatabase())
    const idOf = Effect.map(TestService, ({ organizationId }) => organizationId)
    const start = idOf.pipe(Effect.provide(onDatabase()), Effect.provide(database))
    const earlier = yield* start
    const [one, other] = yield* Effect.all([start, start], { concurrency: 2 })
    expect(new Set([earlier, one, other]).size).toBe(3)
  })

  it.scopedLive("has an emulator of its own when two are built together, so that each hears of its payments", () =>
    Effect.gen(function* () {
      const one = Layer.effect(One, TestService).pipe(Layer.provide(onDatabase()), Layer.provide(emptyDatabase()))
      const other = Layer.effect(Other, TestService).pipe(
        Layer.provide(onDatabase({ settings: { endpointLimit: 3 } })),
        Layer.provide(emptyDatabase())
      )
      const both = yield* Layer.build(Layer.merge(one, other))
      expect(Context.get(both, One).emulator.url).not.toBe(Context.get(both, Other).emulator.url)
      yield* hearsOfPayment(Context.get(both, One))
      yield* hearsOfPayment(Context.get(both, Other))
    }).pipe(Effect.provide(FetchHttpClient.layer))
  )

  it.scoped("works while the suite's own clock stands still, as in a test of @effect/vitest's defaults", () =>
    Effect.gen(function* () {
      const { emulator, organizationId, ...service } = yield* TestService
      // The provider and the database are the service's own
      expect((yield* LocalProvider).emulator.url).toBe(emulator.url)
      const sql = yield* SqlClient.SqlClient
      expect(yield* sql`SELECT 1 FROM payments.organizations WHERE id = ${organizationId}`).toHaveLength(1)

      const client = yield* clientOf({ emulator, organizationId, ...service })
      const consumer = yield* makeConsumer
      yield* client.endpoints.create({ payload: { name: "Shop", url: consumer.url, events: ["payment.succeeded"] } })
      yield* emulator.trigger({ type: "payment_intent.succeeded" })
      const { body } = yield* firstOf(consumer)
      expect(JSON.parse(body.toString()).type).toBe("payment.succeeded")

      const price = yield* client.prices.create({
        payload: { product_data: { name: "Coffee" }, unit_amount: 1500, currency: "brl" }
      })
      const page = yield* client.checkoutPages.create({
        payload: { title: "Coffee", items: [{ price: price.id, quantity: 1 }] }
      })
      const { status } = yield* Effect.promise(() => fetch(page.url))
      expect(status).toBe(200)
    }).pipe(Effect.provide(TestService.layer()), Effect.provide(FetchHttpClient.layer))
  )
})
