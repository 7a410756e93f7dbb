import { createHmac, randomBytes } from "node:crypto"
import { join } from "node:path"
import { Console, Effect, Redacted } from "effect"
import type pg from "pg"
import { startEmbeddedPostgres } from "../../../src/platform/storage/EmbeddedPostgres.ts"
import { connectionTo } from "../../harness/Connection.ts"
import {
  BenchFailed,
  directoryOfItsOwn,
  firstLine,
  load,
  localOf,
  processorTime,
  startBuilt,
  startScript,
  traced,
  traceSink
} from "../api/Processes.ts"
import { type Bench, figuresOf, inRounds } from "../Bench.ts"
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

/** The service's API in a process of its own, one request in a hundred traced. */
const startService = Effect.fnUntraced(function* (directory: string, databaseUrl: string, sink: string) {
  const DATA_DIR = join(directory, "service")
  const { pid } = yield* startBuilt("api", {
    DATA_DIR,
    DATABASE_URL: databaseUrl,
    DATABASE_POOL_SIZE: String(poolSize),
    // Nobody listens there: a notification of a payment asks the provider nothing
    PROVIDER_API_URL: "http://127.0.0.1:9",
    PROVIDER_SANDBOX_SECRET_KEY: "sk_test_bench",
    PROVIDER_SANDBOX_WEBHOOK_SECRETS: secret,
    ...traced(sink)
  })
  return { ...(yield* localOf(DATA_DIR)), pid }
})

const startBare = Effect.fnUntraced(function* (databaseUrl: string, sample: Sample) {
  const started = yield* startScript(new URL("./BareServer.ts", import.meta.url), {
    args: [JSON.stringify(sample)],
    env: { DATABASE_URL: databaseUrl, DATABASE_POOL_SIZE: String(poolSize) }
  })
  return { baseUrl: yield* firstLine(started), pid: started.child.pid ?? 0 }
})

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

const notifying = (url: string, prefix: string, warmUpMillis: number, millis: number) =>
  load(prefix, { url, prefix, account, secret, connections, warmUpMillis, millis })

interface Counted {
  readonly statements: number
  readonly roundTrips: number
  readonly wakeUps: number
}

/** Statements and round trips per notification while many are under way, those that serve several included. */
const count = (proxy: StatementProxy, url: string) =>
  Effect.gen(function* () {
    proxy.take()
    const { answered } = yield* notifying(url, "evt_counted", 0, countedMillis)
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

/** One round on one server; what was answered has to be stored, whole. */
const measure = Effect.fnUntraced(function* (server: Server, client: pg.Client, round: number) {
  const prefix = `evt_${server.name}${round}x`
  const serverBefore = processorTime(server.pid)
  const databaseBefore = yield* databaseTimes(client)
  const result = yield* notifying(server.baseUrl, prefix, warmUpMillis, millis)
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
  }
})

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
    const client = yield* connectionTo(databaseUrl)
    const sink = yield* traceSink
    yield* Console.error("Counting statements…")
    const { counted, sample } = yield* sampleAndCount(directory, databaseUrl, sink, client)
    yield* Console.error("Starting the service and the bare server…")
    const service = { name: "service", ...(yield* startService(directory, databaseUrl, sink)) }
    const bare = { name: "bare", ...(yield* startBare(databaseUrl, sample)) }
    yield* Effect.promise(() => client.query("VACUUM ANALYZE"))
    const results = yield* inRounds(rounds, (round) =>
      Effect.all({ service: measure(service, client, round), bare: measure(bare, client, round) })
    )
    const figure = figuresOf("inbound", results)
    const counts = { service: counted, bare: { statements: 1, roundTrips: 1 } }
    return [
      figure("service", "wake_ups", "per notification", () => counted.wakeUps),
      ...(["service", "bare"] as const).flatMap((name) => [
        figure(name, "rate", "notifications/s", (round) => round[name].rate),
        figure(name, "p50", "ms", (round) => round[name].p50),
        figure(name, "p99", "ms", (round) => round[name].p99),
        figure(name, "statements", "per notification", () => counts[name].statements),
        figure(name, "round_trips", "per notification", () => counts[name].roundTrips),
        figure(name, "server_processor_time", "µs/notification", (round) => round[name].serverTime),
        figure(name, "database_processor_time", "µs/notification", (round) => round[name].databaseTime),
        // Each round's ratios by themselves: what else the machine does changes from one to the next, rates more than times
        figure(
          name,
          "processor_time_to_bare",
          "",
          (round) =>
            (round[name].serverTime + round[name].databaseTime) / (round.bare.serverTime + round.bare.databaseTime)
        ),
        figure(name, "ratio_to_bare_inserts", "", (round) => round[name].rate / round.bare.rate)
      ])
    ]
  })
}
