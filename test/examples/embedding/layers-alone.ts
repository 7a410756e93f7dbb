/** Provider, Keys, Endpoints and Deliveries by themselves: each with what the guide's table says that it needs, and no more. */
import { BlockList } from "node:net"
import { PgClient } from "@effect/sql-pg"
import {
  Cipher,
  Deliveries,
  DnsResolver,
  Endpoints,
  Keys,
  migrationsLayer,
  Organizations,
  Provider,
  SlowReads,
  stripeProviderLayer,
  WakeUp
} from "connected-payments"
import { EmbeddedDatabase, LocalProvider } from "connected-payments/testing"
import { Duration, Effect, Layer, Redacted } from "effect"

/** Your own pool, with the service's tables in it. */
const database = Layer.unwrapEffect(
  Effect.map(EmbeddedDatabase, ({ url }) => PgClient.layer({ url, maxConnections: 5 }))
).pipe(Layer.provide(EmbeddedDatabase.layer))
const storage = Layer.provideMerge(migrationsLayer, database)

const keepFor = Duration.days(30)
const cipher = Cipher.layer([{ id: "2026", key: Redacted.make(crypto.getRandomValues(new Uint8Array(32))) }])
const slowReads = SlowReads.layer({ databasePoolSize: 5 })

const endpoints = Endpoints.layer({
  limit: 20,
  allowLocalDestinations: true,
  destinationNetworks: new BlockList(),
  keepFor
}).pipe(Layer.provide([cipher, DnsResolver.layer, slowReads]))
const deliveries = Deliveries.layer({ keepFor }).pipe(Layer.provide([slowReads, WakeUp.layer]))
const provider = Layer.unwrapEffect(Effect.map(LocalProvider, ({ options }) => stripeProviderLayer(options)))

const author = { kind: "operator", id: "shop" } as const

const program = Effect.gen(function* () {
  const { id: organizationId } = yield* (yield* Organizations).create({
    name: "Bakery",
    ownerEmail: "ada@example.com",
    author
  })
  const tenant = { organizationId, environment: "sandbox" } as const

  const { key } = yield* Effect.flatMap(Keys, (keys) =>
    keys.create({ organizationId, name: "Shop", permissions: ["payments:read"], author })
  ).pipe(Effect.provide(Keys.layer))
  const endpoint = yield* Effect.flatMap(Endpoints, (of) =>
    of.create(
      { ...tenant, author, permissions: new Set() },
      { name: "Shop", url: "http://127.0.0.1:9/hook", events: ["payment.succeeded"] }
    )
  ).pipe(Effect.provide(endpoints))
  const { data } = yield* Effect.flatMap(Deliveries, (of) => of.list(tenant, endpoint.id, {})).pipe(
    Effect.provide(deliveries)
  )
  const { available } = yield* Effect.gen(function* () {
    const accountId = yield* (yield* LocalProvider).emulator.ensureAccount()
    return yield* (yield* Provider).retrieveBalance({ environment: "sandbox", accountId })
  }).pipe(Effect.provide(Layer.provideMerge(provider, LocalProvider.layer)))

  const shown = [Redacted.value(key).slice(0, 8), endpoint.name, data.length, JSON.stringify(available)]
  yield* Effect.sync(() => process.stdout.write(`layers alone: ${shown.join(", ")}\n`))
})

await Effect.runPromise(program.pipe(Effect.provide(Layer.provideMerge(Organizations.layer, storage))))
