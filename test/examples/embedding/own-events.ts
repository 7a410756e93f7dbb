/** A team's own events through the queue: its own catalog, signed deliveries, stored with its own changes or not at all. */
import { createServer } from "node:http"
import { SqlClient } from "@effect/sql"
import {
  Deliveries,
  Endpoints,
  embeddedEventsLayer,
  OrganizationId,
  Organizations,
  type OutboundEventData,
  OutboundEvents
} from "connected-payments"
import { EmbeddedDatabase, embeddedClientLayer } from "connected-payments/testing"
import { verifyWebhook } from "connected-payments/webhooks"
import { Deferred, Effect, Layer, Redacted, Runtime, Schema } from "effect"

const database = Layer.provide(embeddedClientLayer, EmbeddedDatabase.layer)

const catalog = [
  {
    type: "order.shipped",
    description: "An order left the warehouse.",
    data: Schema.Struct({ order_id: Schema.String, parcels: Schema.Int })
  }
] as const

/** Takes an event only with the data that the catalog says of its type. */
const publish = OutboundEvents.publisher(catalog)

const events = embeddedEventsLayer({
  source: "shop",
  catalog,
  masterKeys: [{ id: "2026", key: Redacted.make(crypto.getRandomValues(new Uint8Array(32))) }],
  settings: { allowLocalDestinations: true }
})

interface Delivered {
  readonly body: string
  readonly signature: string
}

/** An integrator's server: answers the first delivery's bytes and signature. */
const consumer = Effect.gen(function* () {
  const received = yield* Deferred.make<Delivered>()
  const run = Runtime.runFork(yield* Effect.runtime<never>())
  const server = createServer((request, response) => {
    const chunks: Array<Buffer> = []
    request.on("data", (chunk: Buffer) => chunks.push(chunk))
    request.on("end", () => {
      response.writeHead(204).end()
      const signature = String(request.headers["service-signature"])
      run(Deferred.succeed(received, { body: Buffer.concat(chunks).toString("utf8"), signature }))
    })
  })
  yield* Effect.acquireRelease(
    Effect.async<void>((resume) => void server.listen(0, "127.0.0.1", () => resume(Effect.void))),
    () => Effect.sync(() => server.close())
  )
  const address = server.address()
  const port = typeof address === "object" && address !== null ? address.port : 0
  return { url: `http://127.0.0.1:${port}/events`, received: Deferred.await(received) }
})

const program = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const outbound = yield* OutboundEvents
  yield* sql`CREATE TABLE orders (id text PRIMARY KEY, shipped boolean NOT NULL)`
  yield* sql`INSERT INTO orders (id, shipped) VALUES ('o-1', false)`

  const author = { kind: "operator", id: "shop" } as const
  const tenant = { organizationId: OrganizationId.make(crypto.randomUUID()), environment: "sandbox" } as const
  yield* (yield* Organizations).adopt({ id: tenant.organizationId, name: "A customer of ours", author })
  const { received, url } = yield* consumer
  const endpoint = yield* (yield* Endpoints).create(
    { ...tenant, author, permissions: new Set() },
    { name: "Warehouse", url, events: ["order.shipped"] }
  )

  yield* outbound.transact(
    Effect.gen(function* () {
      yield* sql`UPDATE orders SET shipped = true WHERE id = 'o-1'`
      yield* publish({
        ...tenant,
        type: "order.shipped",
        id: "o-1-shipped",
        data: { order_id: "o-1", parcels: 2 }
      })
    })
  )

  const { body, signature } = yield* received
  // Its receivers have the catalog's types: `event.type === "order.shipped"` narrows `event.data`
  const event = verifyWebhook<OutboundEventData<typeof catalog>>({
    secret: endpoint.signingSecret,
    header: signature,
    body
  })
  const history = yield* (yield* Deliveries).list(tenant, endpoint.id, {})
  yield* Effect.sync(() => process.stdout.write(`own events: ${event.type}, ${history.data.length} delivery\n`))
})

await Effect.runPromise(program.pipe(Effect.scoped, Effect.provide(events.pipe(Layer.provideMerge(database)))))
