import { randomUUID } from "node:crypto"
import { createServer } from "node:http"
import { NodeSdk } from "@effect/opentelemetry"
import { HttpServer } from "@effect/platform"
import { NodeHttpServer } from "@effect/platform-node"
import { SqlClient } from "@effect/sql"
import { PgClient } from "@effect/sql-pg"
import { describe, expect, it } from "@effect/vitest"
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  PeriodicExportingMetricReader
} from "@opentelemetry/sdk-metrics"
import { Context, Effect, Layer, Option, Redacted, type Scope, TestClock } from "effect"
import pg from "pg"
import { type EmbeddedServiceOptions, embeddedEventsLayer, embeddedServiceLayer } from "../src/app/Embedding.ts"
import { Endpoints } from "../src/destinations/endpoints/Endpoints.ts"
import { Organizations } from "../src/identity/organizations/Organizations.ts"
import { OrganizationId } from "../src/platform/kit/Ids.ts"
import { databaseLayer } from "../src/platform/storage/Database.ts"
import { Metrics, metricsLayer } from "../src/platform/telemetry/Metrics.ts"
import type { NeverHappened } from "./harness/Eventually.ts"
import { freePort } from "./harness/FreePort.ts"
import { hasPgBouncer, pgBouncerNote, startPgBouncer } from "./harness/PgBouncer.ts"
import { createTestDatabase } from "./harness/TestDatabase.ts"

// Two services in one program, each with its own database

const masterKeys = [{ id: "test", key: Redacted.make(new Uint8Array(32).fill(3)) }] as const

const events = (type: string) =>
  embeddedEventsLayer({
    source: "shop",
    catalog: [{ type, description: "Something happened." }],
    masterKeys,
    settings: { allowLocalDestinations: true }
  })

const service = (settings: EmbeddedServiceOptions["settings"] = { roles: { api: false, worker: false } }) =>
  embeddedServiceLayer({
    publicUrl: "http://127.0.0.1",
    masterKeys,
    provider: {
      sandbox: Option.none(),
      production: Option.none(),
      oauthClientIds: {},
      apiUrl: Option.none(),
      checkoutSuccessUrl: "https://shop.example/thanks",
      checkoutCancelUrl: "https://shop.example/cart"
    },
    settings
  })

const parts = Effect.all({ organizations: Organizations, sql: SqlClient.SqlClient })
type Parts = Effect.Effect.Success<typeof parts>

class One extends Context.Tag("test/One")<One, Parts>() {}
class Other extends Context.Tag("test/Other")<Other, Parts>() {}

const database = () => Layer.unwrapScoped(Effect.map(createTestDatabase(), ({ url }) => databaseLayer({ url })))

/** Registers a tenant and returns its id with those that the database has. */
const adopt = ({ organizations, sql }: Parts) =>
  Effect.gen(function* () {
    const id = OrganizationId.make(randomUUID())
    yield* organizations.adopt({ id, name: "Bakery", author: { kind: "operator", id: "shop" } })
    const stored = yield* sql<{ readonly id: string }>`SELECT id FROM payments.organizations`
    return { adopted: [id], stored: stored.map((row) => row.id) }
  })

const together = <E>(
  make: (name: string) => Layer.Layer<Organizations, E, Layer.Layer.Context<ReturnType<typeof events>>>
) =>
  Effect.gen(function* () {
    const one = Layer.effect(One, parts).pipe(Layer.provide(make("order.shipped")), Layer.provide(database()))
    const other = Layer.effect(Other, parts).pipe(Layer.provide(make("order.returned")), Layer.provide(database()))
    const both = yield* Layer.build(Layer.merge(one, other))
    for (const each of [Context.get(both, One), Context.get(both, Other)]) {
      const { adopted, stored } = yield* adopt(each)
      expect(stored).toEqual(adopted)
    }
  })

describe("two services in one program", () => {
  it.scopedLive("each send a team's own events from their own database", () => together(events), 60_000)

  it.scopedLive("each are whole on their own database", () => together(() => service()), 60_000)
})

type Pooled = (url: Redacted.Redacted) => Effect.Effect<{ readonly url: string }, NeverHappened, Scope.Scope>

/** Builds a layer on a database, with a client of a team's own. */
const onClientOf = <A, E>(
  layer: Layer.Layer<A, E, PgClient.PgClient | SqlClient.SqlClient>,
  options: Partial<PgClient.PgClientConfig>,
  pooled?: Pooled
) =>
  Effect.gen(function* () {
    const { url } = yield* createTestDatabase()
    const through = pooled === undefined ? url : Redacted.make((yield* pooled(url)).url)
    return yield* Layer.build(
      Layer.provideMerge(layer, PgClient.layer({ url: through, maxConnections: 5, ...options }))
    )
  })

/** Why such a client is refused. */
const refusalOf = (options: Partial<PgClient.PgClientConfig>, pooled?: Pooled) =>
  Effect.map(Effect.flip(onClientOf(events("order.shipped"), options, pooled)), ({ message }) => message)

/** A client with a parser of its own for a type. */
const parsing = (oid: number): Partial<PgClient.PgClientConfig> => ({
  types: { getTypeParser: (id: number) => (id === oid ? String : pg.types.getTypeParser(id)) } as pg.CustomTypesConfig
})

describe("a team's own client", () => {
  it.scopedLive(
    "may rename columns and keys: the service's own statements are without that",
    () =>
      Effect.gen(function* () {
        const snake = (name: string) => name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
        const camel = (name: string) => name.replaceAll(/_([a-z])/g, (_, letter: string) => letter.toUpperCase())
        const context = yield* onClientOf(events("order.shipped"), {
          transformQueryNames: snake,
          transformResultNames: camel
        })
        const author = { kind: "operator", id: "shop" } as const
        const tenant = { organizationId: OrganizationId.make(randomUUID()), environment: "sandbox" } as const
        yield* Context.get(context, Organizations).adopt({ id: tenant.organizationId, name: "Bakery", author })
        const endpoint = yield* Context.get(context, Endpoints).create(
          { ...tenant, author, permissions: new Set() },
          {
            name: "Shop",
            url: "http://127.0.0.1:9/hook",
            events: ["order.shipped"],
            filters: { metadata: { order_id: "4711" } }
          }
        )
        expect(endpoint.filters).toEqual({ metadata: { order_id: "4711" } })
        const sql = Context.get(context, SqlClient.SqlClient)
        const [stored] = yield* sql<{ readonly createdAt: Date }>`SELECT created_at FROM payments.organizations`
        expect(stored?.createdAt).toBeInstanceOf(Date)
      }),
    60_000
  )

  it.scopedLive(
    "is refused if it would read times or documents as text, or has one connection only",
    () =>
      Effect.gen(function* () {
        expect(yield* refusalOf(parsing(pg.types.builtins.TIMESTAMPTZ))).toContain("its parsers read timestamptz as")
        expect(yield* refusalOf(parsing(pg.types.builtins.JSONB))).toContain("its parsers read jsonb as")
        expect(yield* refusalOf({ transformQueryNames: (name) => name.toLowerCase() })).toContain(
          "transformQueryNames without transformResultNames"
        )
        expect(yield* refusalOf({ maxConnections: 1, connectTimeout: "1 second" })).toContain("maxConnections must be")
      }),
    60_000
  )

  it.scopedLive.skipIf(!hasPgBouncer)(
    `is refused behind a pooler that gives each transaction another connection${pgBouncerNote}`,
    () =>
      Effect.gen(function* () {
        const inTransactionMode = (url: Redacted.Redacted) => startPgBouncer(url, { pool_mode: "transaction" })
        expect(yield* refusalOf({}, inTransactionMode)).toContain("gives each transaction another connection")
      }),
    60_000
  )
})

describe("the whole service in a program with a server of its own", () => {
  it.scopedLive(
    "leaves that server what it is",
    () =>
      Effect.gen(function* () {
        const port = yield* freePort
        const payments = service({ host: "127.0.0.1", port })
        const own = NodeHttpServer.layer(createServer, { host: "127.0.0.1", port: 0 })
        const context = yield* onClientOf(Layer.mergeAll(own, payments), {})
        // The last of several layers wins where both give the same service
        const { address } = Context.get(context, HttpServer.HttpServer)
        expect(address._tag === "TcpAddress" && address.port).not.toBe(port)
      }),
    60_000
  )

  it.scopedLive(
    "gives its metrics to that program's own OpenTelemetry",
    () =>
      Effect.gen(function* () {
        const port = yield* freePort
        const exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE)
        const reader = new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 3_600_000 })
        yield* Layer.build(NodeSdk.layer(() => ({ resource: { serviceName: "shop" }, metricReader: reader })))
        yield* onClientOf(Layer.provide(service({ host: "127.0.0.1", port }), metricsLayer), {})
        yield* Effect.promise(() => fetch(`http://127.0.0.1:${port}/openapi.json`).then((answer) => answer.text()))
        yield* Effect.promise(() => reader.forceFlush())
        const exported = exporter
          .getMetrics()
          .flatMap(({ scopeMetrics }) =>
            scopeMetrics.flatMap(({ metrics }) => metrics.map(({ descriptor }) => descriptor))
          )
        expect(exported).toContainEqual(expect.objectContaining({ name: "http.server.request.duration", unit: "s" }))
      }),
    60_000
  )

  it.scoped("reads its gauges every ten seconds, since nobody tells it of an export", () =>
    Effect.gen(function* () {
      let looks = 0
      const metrics = yield* Metrics.pipe(Effect.provide(yield* Layer.build(metricsLayer)))
      yield* metrics?.observe(Effect.sync(() => void looks++)) ?? Effect.void
      yield* TestClock.adjust("30 seconds")
      expect(looks).toBe(3)
    })
  )
})
