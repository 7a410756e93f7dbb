/** The whole service inside another one: on its database, beside its own tables, with the typed client in front. */
import { FetchHttpClient } from "@effect/platform"
import { PgClient } from "@effect/sql-pg"
import { databaseLayer, embeddedServiceLayer, Keys, Organizations } from "connected-payments"
import { makeClient } from "connected-payments/client"
import { EmbeddedDatabase, LocalProvider } from "connected-payments/testing"
import { Effect, Layer, Redacted } from "effect"

/** The pool, which your own statements can use as well. The service's tables are in the schema `payments`; yours are wherever you like. */
const database = Layer.unwrapEffect(Effect.map(EmbeddedDatabase, ({ url }) => databaseLayer({ url }))).pipe(
  Layer.provide(EmbeddedDatabase.layer)
)

const port = Number(process.env["PORT"] ?? 8089)
const baseUrl = `http://127.0.0.1:${port}`

/** In production: your provider's credentials in place of the emulator's. */
const payments = Layer.unwrapEffect(
  Effect.map(LocalProvider, ({ options }) =>
    embeddedServiceLayer({
      publicUrl: baseUrl,
      masterKeys: [{ id: "2026", key: Redacted.make(crypto.getRandomValues(new Uint8Array(32))) }],
      provider: options,
      settings: { host: "127.0.0.1", port }
    })
  )
)

const program = Effect.gen(function* () {
  const sql = yield* PgClient.PgClient
  yield* sql`CREATE SCHEMA shop`
  yield* sql`CREATE TABLE shop.customers (id uuid PRIMARY KEY REFERENCES payments.organizations)`

  const organization = yield* (yield* Organizations).create({ name: "Bakery", ownerEmail: "ada@example.com" })
  yield* sql`INSERT INTO shop.customers (id) VALUES (${organization.id})`
  const { key } = yield* (yield* Keys).create({
    organizationId: organization.id,
    name: "Shop",
    permissions: ["*"],
    author: { kind: "operator", id: "shop" }
  })

  const client = yield* makeClient({ baseUrl, organizationId: organization.id, apiKey: key })
  const error = yield* Effect.flip(client.products.create({ payload: { name: "Coffee" } }))
  // No account is linked yet, and the error says so by its class
  yield* Effect.sync(() => process.stdout.write(`whole service: ${error._tag}\n`))
})

await Effect.runPromise(
  program.pipe(
    Effect.provide(payments.pipe(Layer.provide(LocalProvider.layer), Layer.provideMerge(database))),
    Effect.provide(FetchHttpClient.layer)
  )
)
