import { createHmac, randomBytes } from "node:crypto"
import { join } from "node:path"
import { setTimeout as sleep } from "node:timers/promises"
import { Effect } from "effect"
import { BenchFailed, load, localOf, startServer } from "../api/Processes.ts"
import { type Bench, figuresOfCases, inRounds, ratioToFirst } from "../Bench.ts"
import {
  costOf,
  type Database,
  linkAccount,
  provider,
  startDatabase,
  startService,
  transactions
} from "../deliveries/Bed.ts"
import { notificationOf, paymentOf } from "./Notification.ts"

/**
 * How many notifications are verified and stored per second, each with its receipt, its event and deliveries to three
 * endpoints, against a bare server that stores the same rows, one notification at a time, by the least statement that
 * does. Not in the figures: deliveries are
 * not sent, and PostgreSQL is on the same two cores as the load.
 */

const connections = 64
const poolSize = 10
const rounds = 3
const warmUpMillis = 2000
const millis = 5000
const endpoints = 3

const { account, secret } = provider

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

const startApi = Effect.fnUntraced(function* (database: Database) {
  const { pid } = yield* startService(database, "api", {
    DATABASE_POOL_SIZE: String(poolSize),
    ...provider.settings
  })
  return { ...(yield* localOf(join(database.directory, "service"))), pid }
})

const startBare = (databaseUrl: string, sample: Sample) =>
  startServer(new URL("./BareServer.ts", import.meta.url), {
    args: [JSON.stringify(sample)],
    env: { DATABASE_URL: databaseUrl, DATABASE_POOL_SIZE: String(poolSize) }
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

const sampleOf = Effect.fnUntraced(function* (
  { query }: Database,
  { baseUrl, organizationId }: { readonly baseUrl: string; readonly organizationId: string },
  seeded: Sample["endpoints"]
) {
  const providerEventId = `evt_sample${randomBytes(6).toString("hex")}`
  const { status, text } = yield* send(baseUrl, providerEventId)
  if (status !== 200) return yield* new BenchFailed({ message: `A notification was answered ${status}: ${text}` })
  const [event] = yield* query("SELECT id, payload FROM payments.events WHERE provider_event_id = $1", [
    providerEventId
  ])
  if (event === undefined) return yield* new BenchFailed({ message: "A notification led to no event" })
  return {
    organizationId,
    account,
    endpoints: seeded.map(({ id, secretId }) => ({ id, secretId })),
    providerEventId,
    paymentId: paymentOf(providerEventId),
    eventId: String(event["id"]),
    payload: String(event["payload"])
  } satisfies Sample
})

/** How many receipts, events and deliveries there are of the notifications whose ids begin so. */
const storedOf = ({ query }: Database, prefix: string) =>
  Effect.gen(function* () {
    // On tables that have grown since they were looked at, the planner would go through one for each row of the other
    yield* query("SET enable_nestloop = off")
    const [row] = yield* query(
      `WITH event AS MATERIALIZED (SELECT id FROM payments.events WHERE starts_with(provider_event_id, $1))
       SELECT concat_ws(' ', (SELECT count(*) FROM payments.receipts WHERE starts_with(provider_event_id, $1)),
         (SELECT count(*) FROM event),
         (SELECT count(*) FROM payments.deliveries d JOIN event ON event.id = d.event_id)) AS counts`,
      [prefix]
    )
    return row?.["counts"]
  })

interface Server {
  readonly name: string
  readonly baseUrl: string
  readonly pid: number
}

/** One round on one server; what was answered has to be stored, whole. */
const measure = Effect.fnUntraced(function* (server: Server, database: Database, round: number) {
  const prefix = `evt_${server.name}${round}x`
  const before = yield* transactions(database)
  const url = server.baseUrl
  const cost = yield* costOf(
    database,
    [server],
    Effect.map(load(server.name, { url, prefix, account, secret, connections, warmUpMillis, millis }), (result) => ({
      ...result,
      count: result.answered
    }))
  )
  const stored = yield* storedOf(database, prefix)
  if (stored !== `${cost.answered} ${cost.answered} ${cost.answered * endpoints}`) {
    return yield* new BenchFailed({ message: `${prefix}: ${cost.answered} were answered, stored were: ${stored}` })
  }
  // The server counts a second late
  yield* Effect.promise(() => sleep(1200))
  return { ...cost, statements: ((yield* transactions(database)) - before) / cost.answered }
})

export const inboundBench: Bench = {
  name: "inbound",
  about: "notifications verified and stored with three deliveries each, against the least inserts of the same rows",
  run: Effect.gen(function* () {
    const database = yield* startDatabase
    const api = yield* startApi(database)
    const seeded = yield* linkAccount(database, api.organizationId, endpoints)
    const servers = [
      { name: "bare", ...(yield* startBare(database.url, yield* sampleOf(database, api, seeded))) },
      { name: "service", ...api }
    ]
    yield* database.query("VACUUM ANALYZE")
    const results = yield* inRounds(rounds, (round) =>
      Effect.forEach(servers, (server) => measure(server, database, round))
    )
    return figuresOfCases<(typeof results)[number][number]>(
      "inbound",
      servers.map(({ name }) => name),
      results,
      [
        ["rate", "notifications/s", ({ rate }) => rate],
        ["p50", "ms", ({ p50 }) => p50],
        ["p99", "ms", ({ p99 }) => p99],
        ["statements", "per notification", ({ statements }) => statements],
        ["server_processor_time", "µs/notification", ({ processor }) => processor],
        ["database_processor_time", "µs/notification", ({ postgres }) => postgres],
        ratioToFirst("processor_time_to_bare", ({ postgres, processor }) => postgres + processor),
        ratioToFirst("ratio_to_bare_inserts", ({ rate }) => rate)
      ]
    )
  })
}
