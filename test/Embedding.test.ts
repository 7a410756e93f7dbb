import { randomUUID } from "node:crypto"
import { createServer } from "node:http"
import { Readable } from "node:stream"
import type { ReadableStream } from "node:stream/web"
import { NodeSdk } from "@effect/opentelemetry"
import {
  FetchHttpClient,
  HttpApi,
  HttpApiBuilder,
  HttpApiEndpoint,
  HttpApiGroup,
  HttpRouter,
  HttpServer,
  HttpServerResponse
} from "@effect/platform"
import { NodeHttpServer } from "@effect/platform-node"
import { SqlClient } from "@effect/sql"
import { PgClient } from "@effect/sql-pg"
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  PeriodicExportingMetricReader
} from "@opentelemetry/sdk-metrics"
import { Context, Effect, Exit, Layer, Option, Redacted, Schema, type Scope, TestClock } from "effect"
import pg from "pg"
import { ApiKeyCheck, ownPermissions, requirePermission } from "../src/app/ApiKeyCheck.ts"
import {
  type EmbeddedEventsOptions,
  type EmbeddedServiceOptions,
  embeddedAppLayer,
  embeddedEventsLayer,
  embeddedServiceLayer
} from "../src/app/Embedding.ts"
import { LocalProvider } from "../src/app/testing/index.ts"
import { makeClient } from "../src/client/index.ts"
import { Endpoints, type NewEndpoint } from "../src/destinations/endpoints/Endpoints.ts"
import { OutboundEvents } from "../src/destinations/publishing/OutboundEvents.ts"
import { Keys, type NewKey } from "../src/identity/keys/Keys.ts"
import { Organizations } from "../src/identity/organizations/Organizations.ts"
import { Principal } from "../src/identity/Principal.ts"
import { Accounts } from "../src/payments/Accounts.ts"
import { errorSchemas, PermissionDenied } from "../src/platform/errors/Errors.ts"
import { OrganizationId } from "../src/platform/kit/Ids.ts"
import { type DatabaseOptions, databaseLayer } from "../src/platform/storage/Database.ts"
import { Metrics, metricsLayer } from "../src/platform/telemetry/Metrics.ts"
import { PaymentsApp } from "../src/surface/http/Mounted.ts"
import { ask } from "./harness/Connection.ts"
import { firstOf, makeConsumer } from "./harness/Consumer.ts"
import { eventuallyDone, type NeverHappened } from "./harness/Eventually.ts"
import { freePort } from "./harness/FreePort.ts"
import { listening } from "./harness/Listening.ts"
import { hasPgBouncer, pgBouncerNote, startPgBouncer } from "./harness/PgBouncer.ts"
import { createTestDatabase } from "./harness/TestDatabase.ts"
import { describe, expect, it } from "./harness/Tests.ts"

// Two services in one program, each with its own database

const masterKeys = [{ id: "test", key: Redacted.make(new Uint8Array(32).fill(3)) }] as const

const author = { kind: "operator", id: "shop" } as const

/** An organization of a service, with an owner. */
const createIn = (context: Context.Context<Organizations>, ownerEmail: string) =>
  Effect.map(Context.get(context, Organizations).create({ name: "Bakery", ownerEmail, author }), ({ id }) => id)

const events = (
  type: string,
  settings: Partial<EmbeddedEventsOptions["settings"]> = {},
  options: Pick<EmbeddedEventsOptions, "worker"> = {}
) =>
  embeddedEventsLayer({
    ...options,
    source: "shop",
    catalog: [{ type, description: "Something happened." }],
    masterKeys,
    settings: { allowLocalDestinations: true, ...settings }
  })

/** An adopted organization of a service, with an endpoint that wants its shipped orders. */
const subscribed = Effect.fnUntraced(function* (
  context: Context.Context<Endpoints | Organizations>,
  options: Pick<NewEndpoint, "filters"> = {}
) {
  const tenant = { organizationId: OrganizationId.make(randomUUID()), environment: "sandbox" } as const
  yield* Context.get(context, Organizations).adopt({ id: tenant.organizationId, name: "Bakery", author })
  const consumer = yield* makeConsumer
  const endpoint = yield* Context.get(context, Endpoints).create(
    { ...tenant, author, permissions: new Set() },
    { name: "Shop", url: consumer.url, events: ["order.shipped"], ...options }
  )
  return { consumer, endpoint, tenant }
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

const adopt = ({ organizations, sql }: Parts) =>
  Effect.gen(function* () {
    const id = OrganizationId.make(randomUUID())
    yield* organizations.adopt({ id, name: "Bakery", author })
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
  it.scopedLive("each send a team's own events from their own database", () => together((type) => events(type)), 60_000)

  it.scopedLive("each are whole on their own database", () => together(() => service()), 60_000)
})

it.scopedLive("the whole service's worker delivers the team's own events, if both are in one program", function* () {
  const whole = service({ mode: "local", allowLocalDestinations: true, roles: { api: false, worker: true } })
  const context = yield* onClientOf(Layer.merge(whole, events("order.shipped", {}, { worker: false })), {})
  const { consumer, tenant } = yield* subscribed(context)
  const { publish, transact } = Context.get(context, OutboundEvents)
  yield* transact(publish({ ...tenant, type: "order.shipped", data: { order: 1 } }))
  const received = yield* firstOf(consumer)
  expect(JSON.parse(received.body.toString())).toMatchObject({ type: "order.shipped", data: { order: 1 } })
})

describe("databaseLayer, in place of a team's own client,", () => {
  /** Ships an order and, before the consumer answers, has the team's statements hold the whole pool: the queue must not need it. */
  const recordsWhileHeld = Effect.fnUntraced(function* (
    url: Redacted.Redacted,
    options: Partial<DatabaseOptions> = {}
  ) {
    const database = databaseLayer({ url, poolSize: 2, ...options })
    const context = yield* Layer.build(Layer.provideMerge(events("order.shipped"), database))
    const { consumer, tenant } = yield* subscribed(context)
    const answer = consumer.hold()
    const { publish, transact } = Context.get(context, OutboundEvents)
    yield* transact(publish({ ...tenant, type: "order.shipped", data: {} }))
    yield* firstOf(consumer)
    yield* Effect.replicateEffect(Context.get(context, SqlClient.SqlClient).reserve, 2)
    answer()
    const rows = ask(options.directUrl ?? url, "SELECT state FROM payments.deliveries")
    yield* eventuallyDone(
      "the record",
      Effect.map(rows, ([row]) => row?.["state"] === "delivered")
    )
  })

  it.scopedLive("keeps separate connections for the queue", function* () {
    yield* recordsWhileHeld((yield* createTestDatabase()).url)
  })

  it.scopedLive.skipIf(!hasPgBouncer)(`works through a pooler by transaction${pgBouncerNote}`, function* () {
    const { url } = yield* createTestDatabase()
    const pooler = yield* startPgBouncer(url, { pool_mode: "transaction" })
    yield* recordsWhileHeld(Redacted.make(pooler.url), { directUrl: url })
  })

  it.scopedLive("is not mixed with a client of another database", function* () {
    const outer = databaseLayer({ url: (yield* createTestDatabase()).url })
    const refused = Effect.flip(onClientOf(events("order.shipped"), {})).pipe(Effect.provide(yield* Layer.build(outer)))
    expect((yield* refused).message).toContain("another database than the databaseLayer around it")
  })
})

/** The keys of the advisory locks: of migrations, of removing days and months, and of adding them. */
const locks = [5_190_277_301, 5_190_277_303, 5_190_277_304, 5_190_277_305]

describe("two services in one database", () => {
  it.scopedLive("each publish by SQL, deliver and keep to their own schema", function* () {
    const { url } = yield* createTestDatabase()
    const client = yield* Layer.build(PgClient.layer({ url, maxConnections: 10 }))
    const sql = Context.get(client, SqlClient.SqlClient)
    const installed = Effect.fnUntraced(function* (databaseSchema: string) {
      const built = yield* Effect.provide(Layer.build(events("order.shipped", { databaseSchema })), client)
      const { consumer, tenant } = yield* subscribed(built)
      const { organizationId } = tenant
      const publish = (id: string, of: string = organizationId) =>
        sql`SELECT ${sql(databaseSchema)}.publish(${of}, 'sandbox', ${id}, 'order.shipped', '{}')`
      return { built, consumer, organizationId, publish, databaseSchema }
    })
    const one = yield* installed("payments")
    // What keeps the processes of one waiting keeps the other from nothing
    const held = yield* sql.reserve
    for (const key of locks) {
      yield* held.execute(`SELECT pg_advisory_lock(hashtextextended('"payments"', ${key}))`, [], undefined)
    }
    const other = yield* installed("other")
    for (const { consumer, databaseSchema, organizationId, publish } of [one, other]) {
      yield* sql.withTransaction(publish(databaseSchema))
      const received = yield* firstOf(consumer)
      expect(JSON.parse(received.body.toString())).toMatchObject({
        organization_id: organizationId,
        source: { event_id: databaseSchema }
      })
      const organizations = yield* sql`SELECT id FROM ${sql(databaseSchema)}.organizations`
      expect(organizations).toEqual([{ id: organizationId }])
    }
    expect([one.consumer.received.length, other.consumer.received.length]).toEqual([1, 1])
    expect(String(yield* Effect.flip(one.publish("o", other.organizationId)))).toContain("SqlError")
    // A transaction of the team's own has its event in it, with the client that the team has
    const within = Context.get(other.built, OutboundEvents)
      .publish({ organizationId: other.organizationId, environment: "sandbox", type: "order.shipped", data: {} })
      .pipe(Effect.zipRight(Effect.fail("no")), sql.withTransaction, Effect.flip)
    expect(yield* within).toBe("no")
    expect(yield* sql`SELECT FROM other.events`).toHaveLength(1)
    const named = (schema: string) => sql`
          SELECT relname FROM pg_class WHERE relnamespace = ${schema}::regnamespace ORDER BY relname`
    expect(yield* named("other")).toEqual(yield* named("payments"))
    expect(
      yield* sql`
            SELECT proname FROM pg_proc WHERE pronamespace = 'other'::regnamespace AND prosrc ~ '\ypayments\y'
            UNION ALL SELECT conname FROM pg_constraint JOIN pg_class r ON r.oid = confrelid
            WHERE connamespace = 'other'::regnamespace AND r.relnamespace <> connamespace
            UNION ALL SELECT pg_get_expr(adbin, adrelid) FROM pg_attrdef JOIN pg_class c ON c.oid = adrelid
            WHERE c.relnamespace = 'other'::regnamespace AND pg_get_expr(adbin, adrelid) ~ '\ypayments\.'`
    ).toEqual([])
  })

  it.scopedLive("are not built in a schema whose name is none, or that has other tables", function* () {
    const { url } = yield* createTestDatabase()
    const client = yield* Layer.build(PgClient.layer({ url, maxConnections: 5 }))
    const sql = Context.get(client, SqlClient.SqlClient)
    yield* sql`CREATE TABLE shop.orders (id text)`.pipe((table) => Effect.zipRight(sql`CREATE SCHEMA shop`, table))
    const reason = (databaseSchema: string) =>
      Layer.build(events("order.shipped", { databaseSchema })).pipe(
        Effect.provide(client),
        Effect.flip,
        Effect.map(({ message }) => message)
      )
    for (const name of ['x"; DROP SCHEMA public; --', "Shop", "1st", "", "pg_shop", "public", "é", "a".repeat(41)]) {
      expect([name, yield* reason(name)]).toEqual([name, expect.stringContaining("must be 1 to 40 lowercase")])
    }
    expect(yield* reason("shop")).toContain("The schema shop holds tables of something else")
  })
})

type Pooled = (url: Redacted.Redacted) => Effect.Effect<{ readonly url: string }, NeverHappened, Scope.Scope>

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
  it.scopedLive("may rename columns and keys: the service's own statements are without that", function* () {
    const snake = (name: string) => name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
    const camel = (name: string) => name.replaceAll(/_([a-z])/g, (_, letter: string) => letter.toUpperCase())
    const context = yield* onClientOf(events("order.shipped"), {
      transformQueryNames: snake,
      transformResultNames: camel
    })
    const filters = { metadata: { order_id: "4711" } }
    expect((yield* subscribed(context, { filters })).endpoint.filters).toEqual(filters)
    const sql = Context.get(context, SqlClient.SqlClient)
    const [stored] = yield* sql<{ readonly createdAt: Date }>`SELECT created_at FROM payments.organizations`
    expect(stored?.createdAt).toBeInstanceOf(Date)
  })

  it.scopedLive("is refused if it would read times or documents as text, or has one connection only", function* () {
    expect(yield* refusalOf(parsing(pg.types.builtins.TIMESTAMPTZ))).toContain("its parsers read timestamptz as")
    expect(yield* refusalOf(parsing(pg.types.builtins.JSONB))).toContain("its parsers read jsonb as")
    expect(yield* refusalOf({ transformQueryNames: (name) => name.toLowerCase() })).toContain(
      "transformQueryNames without transformResultNames"
    )
    expect(yield* refusalOf({ maxConnections: 1, connectTimeout: "1 second" })).toContain("maxConnections must be")
  })

  it.scopedLive.skipIf(!hasPgBouncer)(
    `is refused behind a pooler that gives each transaction another connection${pgBouncerNote}`,
    function* () {
      const inTransactionMode = (url: Redacted.Redacted) => startPgBouncer(url, { pool_mode: "transaction" })
      expect(yield* refusalOf({}, inTransactionMode)).toContain("gives each transaction another connection")
    }
  )
})

describe("the whole service in a program with a server of its own", () => {
  it.scopedLive("leaves that server what it is", function* () {
    const port = yield* freePort
    const payments = service({ host: "127.0.0.1", port })
    const own = NodeHttpServer.layer(createServer, { host: "127.0.0.1", port: 0 })
    const context = yield* onClientOf(Layer.mergeAll(own, payments), {})
    // The last of several layers wins where both give the same service
    const { address } = Context.get(context, HttpServer.HttpServer)
    expect(address._tag === "TcpAddress" && address.port).not.toBe(port)
  })

  it.scopedLive("gives its metrics to that program's own OpenTelemetry", function* () {
    const port = yield* freePort
    const exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE)
    const reader = new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 3_600_000 })
    yield* Layer.build(NodeSdk.layer(() => ({ resource: { serviceName: "shop" }, metricReader: reader })))
    yield* onClientOf(Layer.provide(service({ host: "127.0.0.1", port }), metricsLayer), {})
    yield* Effect.promise(() => fetch(`http://127.0.0.1:${port}/openapi.json`).then((answer) => answer.text()))
    yield* Effect.promise(() => reader.forceFlush())
    const exported = exporter
      .getMetrics()
      .flatMap(({ scopeMetrics }) => scopeMetrics.flatMap(({ metrics }) => metrics.map(({ descriptor }) => descriptor)))
    expect(exported).toContainEqual(expect.objectContaining({ name: "http.server.request.duration", unit: "s" }))
  })

  it.scoped("reads its gauges every ten seconds, since nobody tells it of an export", function* () {
    let looks = 0
    const metrics = yield* Metrics.pipe(Effect.provide(yield* Layer.build(metricsLayer)))
    yield* metrics?.observe(Effect.sync(() => void looks++)) ?? Effect.void
    yield* TestClock.adjust("30 seconds")
    expect(looks).toBe(3)
  })
})

const own = ownPermissions(["invoices:read", "invoices:write"])

/** The whole service with the emulator, in a server of the team's own: sells, hears of the payment and delivers. */
const sellsAndDelivers = (serve: (app: PaymentsApp["Type"]) => Effect.Effect<string, never, Scope.Scope>) =>
  Effect.gen(function* () {
    const { emulator, options } = yield* LocalProvider.pipe(Effect.provide(yield* Layer.build(LocalProvider.layer)))
    const payments = embeddedAppLayer({
      publicUrl: "http://127.0.0.1/payments",
      masterKeys,
      provider: options,
      settings: { mode: "local", allowLocalDestinations: true, console: false }
    }).pipe(Layer.provide(own.layer))
    const context = yield* onClientOf(payments, {})
    const baseUrl = yield* serve(Context.get(context, PaymentsApp))
    yield* emulator.setWebhookUrl(`${baseUrl}/webhooks/provider`)
    const organizationId = yield* createIn(context, "ada@example.com")
    const accountId = yield* emulator.ensureAccount()
    yield* Context.get(context, Accounts).link({ organizationId, environment: "sandbox" }, accountId, author)
    const permissions = ["*", "webhook-endpoints:*", own.permission("invoices:read")] as const
    const { key } = yield* Context.get(context, Keys).create({ organizationId, name: "Shop", permissions, author })
    const client = yield* makeClient({ baseUrl, organizationId, apiKey: key })
    const consumer = yield* makeConsumer
    yield* client.endpoints.create({ payload: { name: "Shop", url: consumer.url, events: ["payment.succeeded"] } })
    const product = yield* client.products.create({ payload: { name: "Coffee" } })
    expect((yield* client.products.get({ path: { id: product.id } })).name).toBe("Coffee")
    yield* emulator.trigger({ type: "payment_intent.succeeded" })
    const first = yield* firstOf(consumer)
    expect(JSON.parse(first.body.toString()).type).toBe("payment.succeeded")
    const ask = (path: string, init?: RequestInit) =>
      Effect.promise(async () => {
        const answer = await fetch(`${baseUrl}${path}`, init)
        return { status: answer.status, body: await answer.text() }
      })
    expect((yield* ask("/health/ready")).status).toBe(200)
    const self = yield* ask("/identity/api-key", { headers: { "x-api-key": Redacted.value(key) } })
    expect(JSON.parse(self.body).permissions).toContain("invoices:read")
    const body = JSON.stringify({ type: "payment_intent.succeeded" })
    const unsigned = { method: "POST", body, headers: { "stripe-signature": "t=1,v1=00" } }
    expect(yield* ask("/webhooks/provider", unsigned)).toMatchObject({ status: 400 })
    expect(yield* ask("/v2/nothing-here")).toMatchObject({ status: 404 })
    const large = {
      method: "POST",
      body: "x".repeat(300_000),
      headers: { "content-type": "application/json", "x-api-key": Redacted.value(key) }
    }
    expect(yield* ask(`/v2/organizations/${organizationId}/provider/products`, large)).toMatchObject({ status: 413 })
  }).pipe(Effect.provide(FetchHttpClient.layer))

describe("the service in a team's own server", () => {
  it.scopedLive("is mounted under a prefix of an Effect server, beside the team's own routes", () =>
    sellsAndDelivers(({ httpApp }) =>
      Effect.gen(function* () {
        const router = HttpRouter.empty.pipe(
          HttpRouter.get("/hello", HttpServerResponse.text("ours")),
          HttpRouter.mountApp("/payments", httpApp, { includePrefix: false })
        )
        const server = yield* Layer.build(
          HttpServer.serve(router).pipe(
            Layer.provideMerge(NodeHttpServer.layer(createServer, { host: "127.0.0.1", port: 0 }))
          )
        )
        const { address } = Context.get(server, HttpServer.HttpServer)
        const origin = `http://127.0.0.1:${address._tag === "TcpAddress" ? address.port : 0}`
        const own = yield* Effect.promise(() => fetch(`${origin}/hello`).then((answer) => answer.text()))
        expect(own).toBe("ours")
        return `${origin}/payments`
      }).pipe(Effect.orDie)
    )
  )

  it.scopedLive("answers the requests of any other server, as a function from Request to Response", () =>
    sellsAndDelivers((app) =>
      Effect.gen(function* () {
        const server = createServer(async (incoming, outgoing) => {
          const hasBody = incoming.method !== "GET" && incoming.method !== "HEAD"
          const request = new Request(`http://own${incoming.url}`, {
            method: incoming.method ?? "GET",
            headers: new Headers(Object.entries(incoming.headers).map(([name, value]) => [name, String(value)])),
            ...(hasBody ? { body: Readable.toWeb(incoming), duplex: "half" } : {})
          } as RequestInit)
          const { body, headers, status } = await app.fetch(request, incoming.socket.remoteAddress)
          outgoing.writeHead(status, Object.fromEntries(headers))
          if (body === null) outgoing.end()
          else Readable.fromWeb(body as ReadableStream).pipe(outgoing)
        })
        return `http://127.0.0.1:${yield* listening(server)}`
      })
    )
  )

  it.scopedLive("lends it the check of API keys for the team's own groups", function* () {
    const context = yield* onClientOf(Layer.provide(service(), own.layer), {})
    const organizationId = yield* createIn(context, "grace@example.com")
    const keyWith = (permission: NewKey["permissions"][number]) =>
      Context.get(context, Keys).create({ organizationId, name: permission, permissions: [permission], author })
    const orders = HttpApiGroup.make("orders")
      .add(HttpApiEndpoint.get("list", "/orders").addSuccess(Schema.String).addError(errorSchemas(PermissionDenied)))
      .add(HttpApiEndpoint.get("owed", "/owed").addSuccess(Schema.String).addError(errorSchemas(PermissionDenied)))
      .middleware(ApiKeyCheck)
    const api = HttpApi.make("shop").add(orders)
    const handlers = HttpApiBuilder.group(api, "orders", (of) =>
      of
        .handle("list", () =>
          Effect.zipRight(
            requirePermission("products:read"),
            Effect.map(Principal, (caller) => caller.organizationId)
          )
        )
        .handle("owed", () => Effect.as(own.requirePermission("invoices:read"), "7 EUR"))
    )
    const { handler } = HttpApiBuilder.toWebHandler(
      Layer.mergeAll(
        HttpApiBuilder.api(api).pipe(
          Layer.provide(handlers),
          Layer.provide(ApiKeyCheck.layer),
          Layer.provide(Layer.succeedContext(context))
        ),
        NodeHttpServer.layerContext
      )
    )
    const ask = (key: string | undefined, path = "/orders") =>
      Effect.promise(async () => {
        const answer = await handler(
          new Request(`http://shop${path}`, key === undefined ? {} : { headers: { "x-api-key": key } })
        )
        return { status: answer.status, body: await answer.json() }
      })
    const [right, other] = yield* Effect.all([keyWith("products:read"), keyWith("payments:read")])
    expect(yield* ask(Redacted.value(right.key))).toEqual({ status: 200, body: organizationId })
    expect(yield* ask(Redacted.value(other.key))).toMatchObject({
      status: 403,
      body: { code: "permission_denied" }
    })
    expect(yield* ask(undefined)).toMatchObject({ status: 401, body: { code: "api_key_invalid" } })
    expect(yield* ask("sk_test_unknown")).toMatchObject({ status: 401, body: { code: "api_key_invalid" } })
    expect(yield* ask("x".repeat(10_000))).toMatchObject({ status: 401, body: { code: "api_key_invalid" } })
    // Permissions of the team's own
    const reads = Redacted.value((yield* keyWith(own.permission("invoices:read"))).key)
    const writes = Redacted.value((yield* keyWith(own.permission("invoices:write"))).key)
    const all = Redacted.value((yield* keyWith("*")).key)
    expect(yield* ask(reads, "/owed")).toEqual({ status: 200, body: "7 EUR" })
    for (const key of [writes, all, Redacted.value(right.key)]) {
      expect(yield* ask(key, "/owed")).toMatchObject({ status: 403, body: { code: "permission_denied" } })
    }
    expect(yield* ask(reads)).toMatchObject({ status: 403 })
    // @ts-expect-error: it is not declared
    expect((yield* Effect.flip(keyWith(own.permission("invoices:delete")))).message).toContain("invoices:delete")
    // @ts-expect-error: it is neither declared nor the service's
    own.requirePermission("invoices:delete")
    for (const name of ["payments:read", "Invoices:read", "invoices", "*"]) {
      expect(Exit.isFailure(yield* Effect.exit(Layer.build(ownPermissions([name]).layer)))).toBe(true)
    }
  })
})
