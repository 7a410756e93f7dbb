import { createHmac, randomBytes } from "node:crypto"
import { readFile } from "node:fs/promises"
import { join } from "node:path"
import { Console, Effect, Redacted, Schema } from "effect"
import pg from "pg"
import { startEmbeddedPostgres } from "../../../src/storage/EmbeddedPostgres.ts"
import type { LoadResult } from "../api/Load.ts"
import {
  BenchFailed,
  builtService,
  directoryOfItsOwn,
  firstLine,
  masterKeys,
  processorTime,
  serviceNodeArgs,
  startScript,
  traceSink
} from "../api/Processes.ts"
import { type Bench, type Figure, median } from "../Bench.ts"
import { makeEndpoint } from "../deliveries/Bed.ts"
import { notificationOf, paymentOf } from "./Notification.ts"
import { type Executed, type StatementProxy, startStatementProxy } from "./StatementProxy.ts"

/**
 * How many notifications are verified and stored per second, each with its receipt, its event and deliveries to three
 * endpoints, against a bare server that stores the same rows, one notification at a time, by the least statement that
 * does. The statements and round trips are counted between the service and its database. Not in the figures: deliveries are
 * not sent, and PostgreSQL is on the same two cores as the load.
 */

const connections = 64
const poolSize = 10
const rounds = 3
const warmUpMillis = 2000
const millis = 5000
const countedMillis = 2000
const endpoints = 3

const account = "acct_1BenchInbound"
const secret = "whsec_bench0123456789"

/** What the bare server stores for each notification: as the service did for one, with other ids. */
export interface Sample {
  readonly organizationId: string
  readonly account: string
  readonly endpoints: ReadonlyArray<{ readonly id: string; readonly secretId: string }>
  readonly providerEventId: string
  readonly paymentId: string
  readonly eventId: string
  readonly payload: string
}

const LocalFile = Schema.parseJson(Schema.Struct({ baseUrl: Schema.String, organizationId: Schema.String }))

/**
 * The service's API in a process of its own, one request in a hundred traced. `BENCH_NODE_ARGS` is handed to its Node,
 * e.g. `--cpu-prof --cpu-prof-dir=…` to see where the time goes.
 */
const startService = Effect.fnUntraced(function* (directory: string, databaseUrl: string, sink: string) {
  const started = yield* startScript(yield* builtService, {
    nodeArgs: serviceNodeArgs,
    env: {
      MODE: "local",
      ROLES: "api",
      HOST: "127.0.0.1",
      PORT: "0",
      DATA_DIR: join(directory, "service"),
      DATABASE_URL: databaseUrl,
      DATABASE_POOL_SIZE: String(poolSize),
      MASTER_KEYS: masterKeys,
      // Nobody listens there: a notification of a payment asks the provider nothing
      PROVIDER_API_URL: "http://127.0.0.1:9",
      PROVIDER_SANDBOX_SECRET_KEY: "sk_test_bench",
      PROVIDER_SANDBOX_WEBHOOK_SECRETS: secret,
      OTEL_TRACES_SAMPLER: "traceidratio",
      OTEL_TRACES_SAMPLER_ARG: "0.01",
      OTEL_EXPORTER_OTLP_ENDPOINT: sink
    }
  })
  yield* firstLine(started)
  started.child.stdout?.resume()
  const local = yield* Effect.flatMap(
    Effect.promise(() => readFile(join(directory, "service", "local.json"), "utf8")),
    Schema.decode(LocalFile)
  )
  return { ...local, pid: started.child.pid ?? 0 }
})

const startBare = Effect.fnUntraced(function* (databaseUrl: string, sample: Sample) {
  const started = yield* startScript("../inbound/BareServer.ts", {
    args: [JSON.stringify(sample)],
    env: { DATABASE_URL: databaseUrl, DATABASE_POOL_SIZE: String(poolSize) }
  })
  return { baseUrl: yield* firstLine(started), pid: started.child.pid ?? 0 }
})

const connectTo = (databaseUrl: string) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const client = new pg.Client({ connectionString: databaseUrl })
      await client.connect()
      return client
    }),
    (client) => Effect.promise(() => client.end())
  )

/** An account that is linked, and three endpoints that want its payments. */
const seed = Effect.fnUntraced(function* (client: pg.Client, organizationId: string) {
  const query = (text: string, values?: ReadonlyArray<unknown>) =>
    Effect.promise(async (): Promise<ReadonlyArray<Record<string, unknown>>> => {
      const { rows } = await client.query(text, [...(values ?? [])])
      return rows
    })
  yield* query(
    `INSERT INTO payments.provider_accounts (organization_id, environment, account_id, status, had_payments_before)
     VALUES ($1, 'sandbox', $2, 'connected', true)`,
    [organizationId, account]
  )
  return yield* Effect.replicateEffect(makeEndpoint({ query }, organizationId, "https://shop.example/hook"), endpoints)
})

const send = (baseUrl: string, providerEventId: string) =>
  Effect.promise(async () => {
    const body = notificationOf(account, providerEventId)
    const time = Math.floor(Date.now() / 1000)
    const signature = createHmac("sha256", secret).update(`${time}.${body}`).digest("hex")
    const response = await fetch(`${baseUrl}/webhooks/provider`, {
      method: "POST",
      headers: { "content-type": "application/json", "stripe-signature": `t=${time},v1=${signature}` },
      body
    })
    return { status: response.status, text: await response.text() }
  })

/** Workers are told once in some milliseconds, whatever the number of notifications. */
const isWakeUp = ({ text }: Executed): boolean => text.includes("pg_notify")

/** Sends one notification and keeps what the service stored of it. */
const sampleOf = Effect.fnUntraced(function* (
  client: pg.Client,
  { baseUrl, organizationId }: { readonly baseUrl: string; readonly organizationId: string },
  seeded: Sample["endpoints"]
) {
  const providerEventId = `evt_sample${randomBytes(6).toString("hex")}`
  const { status, text } = yield* send(baseUrl, providerEventId)
  if (status !== 200) return yield* new BenchFailed({ message: `A notification was answered ${status}: ${text}` })
  const [event] = yield* Effect.promise(async () => {
    const { rows } = await client.query<{ id: string; payload: string }>(
      "SELECT id, payload FROM payments.events WHERE provider_event_id = $1",
      [providerEventId]
    )
    return rows
  })
  if (event === undefined) return yield* new BenchFailed({ message: "A notification led to no event" })
  return {
    organizationId,
    account,
    endpoints: seeded.map(({ id, secretId }) => ({ id, secretId })),
    providerEventId,
    paymentId: paymentOf(providerEventId),
    eventId: event.id,
    payload: event.payload
  } satisfies Sample
})

interface LoadOptions {
  readonly url: string
  readonly prefix: string
  readonly warmUpMillis: number
  readonly millis: number
}

const load = (options: LoadOptions) =>
  Effect.gen(function* () {
    const started = yield* startScript("../inbound/Load.ts", {
      args: [JSON.stringify({ ...options, account, secret, connections })]
    })
    // Written by our own load generator, in this form
    const result: LoadResult = JSON.parse(yield* firstLine(started))
    return result.failures > 0 || result.requests === 0
      ? yield* new BenchFailed({ message: `${options.prefix}: ${result.failures} failures: ${result.firstFailure}` })
      : result
  }).pipe(Effect.scoped)

interface Counted {
  readonly statements: number
  readonly roundTrips: number
  readonly wakeUps: number
}

/** Statements and round trips per notification while many are under way, those that serve several included. */
const count = (proxy: StatementProxy, url: string) =>
  Effect.gen(function* () {
    proxy.take()
    const { answered } = yield* load({ url, prefix: "evt_counted", warmUpMillis: 0, millis: countedMillis })
    const { roundTrips, statements } = proxy.take()
    return {
      statements: statements.length / answered,
      roundTrips: roundTrips / answered,
      wakeUps: statements.filter(isWakeUp).length / answered
    } satisfies Counted
  })

/** Processor time of all processes of the database, each by its id. */
const databaseTimes = (client: pg.Client) =>
  Effect.promise(async () => {
    const { rows } = await client.query<{ pid: number }>(
      "SELECT pid FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
    )
    return new Map(rows.map(({ pid }) => [pid, processorTime(pid)]))
  })

/** How many receipts, events and deliveries there are of the notifications whose ids begin so. */
const storedOf = (client: pg.Client, prefix: string) =>
  Effect.promise(async () => {
    // On tables that have grown since they were looked at, the planner would go through one for each row of the other
    await client.query("SET enable_nestloop = off")
    const { rows } = await client.query<{ counts: string }>(
      `WITH event AS MATERIALIZED (SELECT id FROM payments.events WHERE starts_with(provider_event_id, $1))
       SELECT concat_ws(' ', (SELECT count(*) FROM payments.receipts WHERE starts_with(provider_event_id, $1)),
         (SELECT count(*) FROM event),
         (SELECT count(*) FROM payments.deliveries d JOIN event ON event.id = d.event_id)) AS counts`,
      [prefix]
    )
    return rows[0]?.counts
  })

interface Server {
  readonly name: string
  readonly baseUrl: string
  readonly pid: number
}

interface Measured {
  readonly rate: number
  readonly p50: number
  readonly p99: number
  readonly serverTime: number
  readonly databaseTime: number
}

/** One round on one server; what was answered has to be stored, whole. */
const measure = Effect.fnUntraced(function* (server: Server, client: pg.Client, round: number) {
  const prefix = `evt_${server.name}${round}x`
  const serverBefore = processorTime(server.pid)
  const databaseBefore = yield* databaseTimes(client)
  const result = yield* load({ url: server.baseUrl, prefix, warmUpMillis, millis })
  const databaseAfter = yield* databaseTimes(client)
  const databaseTime = [...databaseAfter].reduce((sum, [pid, time]) => sum + time - (databaseBefore.get(pid) ?? 0), 0)
  const stored = yield* storedOf(client, prefix)
  if (stored !== `${result.answered} ${result.answered} ${result.answered * endpoints}`) {
    return yield* new BenchFailed({ message: `${prefix}: ${result.answered} were answered, stored were: ${stored}` })
  }
  const rate = result.requests / result.seconds
  yield* Console.error(`  ${server.name}: ${Math.round(rate)} notifications/s`)
  return {
    rate,
    p50: result.p50,
    p99: result.p99,
    serverTime: (processorTime(server.pid) - serverBefore) / result.answered,
    databaseTime: databaseTime / result.answered
  } satisfies Measured
})

const timesOf = (results: ReadonlyArray<Measured>) =>
  [
    ["server_processor_time", median(results.map(({ serverTime }) => serverTime))],
    ["database_processor_time", median(results.map(({ databaseTime }) => databaseTime))]
  ] as const

/** The processor time of server and database together. */
const timeOf = (measured: Measured | undefined): number =>
  measured === undefined ? Number.NaN : measured.serverTime + measured.databaseTime

const figuresOf = (
  name: string,
  results: ReadonlyArray<Measured>,
  bare: ReadonlyArray<Measured>,
  { roundTrips, statements }: Omit<Counted, "wakeUps">
): ReadonlyArray<Figure> => {
  const figure = (metric: string, value: number, unit: string) => ({
    bench: "inbound",
    case: name,
    metric,
    value,
    unit
  })
  return [
    figure("rate", median(results.map(({ rate }) => rate)), "notifications/s"),
    figure("p50", median(results.map(({ p50 }) => p50)), "ms"),
    figure("p99", median(results.map(({ p99 }) => p99)), "ms"),
    figure("statements", statements, "per notification"),
    figure("round_trips", roundTrips, "per notification"),
    ...timesOf(results)
      .filter(([, value]) => !Number.isNaN(value))
      .map(([metric, value]) => figure(metric, value, "µs/notification")),
    // Each round's ratios by themselves: what else the machine does changes from one to the next, rates more than times
    figure("processor_time_to_bare", median(results.map((one, round) => timeOf(one) / timeOf(bare[round]))), ""),
    figure(
      "ratio_to_bare_inserts",
      median(results.map(({ rate }, round) => rate / (bare[round]?.rate ?? Number.NaN))),
      ""
    )
  ]
}

/** Counts through the proxy; the service that is measured later goes without it. */
const sampleAndCount = (directory: string, databaseUrl: string, sink: string, client: pg.Client) =>
  Effect.gen(function* () {
    const proxy = yield* startStatementProxy(databaseUrl)
    const service = yield* startService(directory, proxy.url, sink)
    const seeded = yield* seed(client, service.organizationId)
    const sample = yield* sampleOf(client, service, seeded)
    return { sample, counted: yield* count(proxy, service.baseUrl) }
  }).pipe(Effect.scoped)

/** `npm run bench -- inbound`. */
export const inboundBench: Bench = {
  name: "inbound",
  about: "notifications verified and stored with three deliveries each, against the least inserts of the same rows",
  run: Effect.gen(function* () {
    const directory = yield* directoryOfItsOwn
    const database = yield* startEmbeddedPostgres({ directory: join(directory, "postgres") })
    const databaseUrl = Redacted.value(database.url)
    const client = yield* connectTo(databaseUrl)
    const sink = yield* traceSink
    yield* Console.error("Counting statements…")
    const { counted, sample } = yield* sampleAndCount(directory, databaseUrl, sink, client)
    yield* Console.error("Starting the service and the bare server…")
    const service = { name: "service", ...(yield* startService(directory, databaseUrl, sink)) }
    const bare = { name: "bare", ...(yield* startBare(databaseUrl, sample)) }
    yield* Effect.promise(() => client.query("VACUUM ANALYZE"))
    const results: { readonly [name: string]: Array<Measured> } = { service: [], bare: [] }
    for (let round = 1; round <= rounds; round++) {
      yield* Console.error(`Round ${round} of ${rounds}`)
      for (const server of [service, bare]) results[server.name]?.push(yield* measure(server, client, round))
    }
    const ofBare = results["bare"] ?? []
    return [
      ...figuresOf("service", results["service"] ?? [], ofBare, counted),
      { bench: "inbound", case: "service", metric: "wake_ups", value: counted.wakeUps, unit: "per notification" },
      ...figuresOf("bare", ofBare, ofBare, { statements: 1, roundTrips: 1 })
    ]
  })
}
