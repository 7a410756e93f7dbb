import { randomBytes, randomUUID } from "node:crypto"
import { readdirSync, readFileSync } from "node:fs"
import { connect } from "node:net"
import { join } from "node:path"
import { setTimeout as sleep } from "node:timers/promises"
import { Console, Effect, Redacted } from "effect"
import { secretContext } from "../../../src/engine/attempts/Signing.ts"
import { Cipher } from "../../../src/platform/kit/crypto/Cipher.ts"
import { OrganizationId } from "../../../src/platform/kit/Ids.ts"
import { databaseLayer } from "../../../src/platform/storage/Database.ts"
import { startEmbeddedPostgres } from "../../../src/platform/storage/embedded/EmbeddedPostgres.ts"
import { migrate } from "../../../src/platform/storage/Migrations.ts"
import { connectionTo } from "../../harness/Connection.ts"
import { temporaryDirectory } from "../../platform/storage/fixtures/temporaryDirectory.ts"
import { firstLine, masterKey, processorTime, startBuilt, startScript, traced, traceSink } from "../api/Processes.ts"
import type { Metric } from "../Bench.ts"

/** What the benches of deliveries stand on: a durable PostgreSQL, endpoints, waiting rows, consumers, the service. */

/** The fields of a process's state after its name, which may hold blanks; none where the system has no `/proc`. */
const processFields = (pid: number): ReadonlyArray<string> => {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8")
    return stat.slice(stat.lastIndexOf(")") + 2).split(" ")
  } catch {
    return []
  }
}

/** Microseconds of processor time in these fields of a process, which count in ticks of 10 ms. */
const ticks = (fields: ReadonlyArray<string>, ...at: ReadonlyArray<number>): number =>
  at.reduce((sum, index) => sum + Number(fields[index] ?? Number.NaN) * 10_000, 0)

export const parentOf = (pid: number): number => Number(processFields(pid)[1])

/** Processor time of a server and all that it started so far, those that have ended included, in microseconds. */
const serverProcessorTime = (postmaster: number): number => {
  const own = ticks(processFields(postmaster), 11, 12, 13, 14)
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map((name) => processFields(Number(name)))
    .filter((fields) => Number(fields[1]) === postmaster)
    .reduce((sum, fields) => sum + ticks(fields, 11, 12), own)
}

/** How often each thread of processes has gone to sleep so far: each time, something had to wake it. */
const sleeps = (pids: ReadonlyArray<number>): ReadonlyMap<string, number> =>
  new Map(
    pids
      .flatMap((pid) => readdirSync(`/proc/${pid}/task`).map((thread) => `/proc/${pid}/task/${thread}/status`))
      .map((file) => {
        const [, count] = /^voluntary_ctxt_switches:\s+(\d+)/m.exec(readFileSync(file, "utf8")) ?? []
        return [file, Number(count)]
      })
  )

/** How often they went to sleep in between; those of threads that have ended are not known. */
const sleepsBetween = (before: ReadonlyMap<string, number>, after: ReadonlyMap<string, number>): number =>
  Array.from(after).reduce((sum, [file, count]) => sum + count - (before.get(file) ?? 0), 0)

/**
 * Processor time of processes and of PostgreSQL so far, in microseconds, and how often they have slept; NaN where the system
 * does not tell it.
 */
const usedSoFar = (services: ReadonlyArray<{ readonly pid: number }>, { postmaster }: Pick<Database, "postmaster">) => {
  try {
    const service = services.reduce((sum, { pid }) => sum + processorTime(pid), 0)
    const backends = readdirSync("/proc")
      .map(Number)
      .filter((pid) => pid > 0 && parentOf(pid) === postmaster)
    return {
      service,
      postgres: serverProcessorTime(postmaster),
      serviceSleeps: sleeps(services.map(({ pid }) => pid)),
      postgresSleeps: sleeps(backends)
    }
  } catch {
    const unknown = new Map([["", Number.NaN]])
    return { service: Number.NaN, postgres: Number.NaN, serviceSleeps: unknown, postgresSleeps: unknown }
  }
}

/** What each of what was done costs, in microseconds of processor time, and how many were done in a second. */
export interface Cost {
  readonly count: number
  readonly rate: number
  readonly processor: number
  readonly postgres: number
  /** How often a thread of theirs was woken. */
  readonly wakeUps: number
  readonly postgresWakeUps: number
}

/** Measures while `work` runs, which answers how much was done, and whatever else it found: a rate of its own takes the place of this one. */
export const costOf = <Done extends { readonly count: number }, E, R>(
  database: Pick<Database, "postmaster">,
  services: ReadonlyArray<{ readonly pid: number }>,
  work: Effect.Effect<Done, E, R>
) =>
  Effect.gen(function* () {
    const [before, startedAt] = [usedSoFar(services, database), performance.now()]
    const done = yield* work
    const [after, endedAt] = [usedSoFar(services, database), performance.now()]
    const { count } = done
    return {
      rate: (count / (endedAt - startedAt)) * 1000,
      processor: (after.service - before.service) / count,
      postgres: (after.postgres - before.postgres) / count,
      wakeUps: sleepsBetween(before.serviceSleeps, after.serviceSleeps) / count,
      postgresWakeUps: sleepsBetween(before.postgresSleeps, after.postgresSleeps) / count,
      ...done
    } satisfies Cost
  })

export const costMetrics: ReadonlyArray<Metric<Cost>> = [
  ["rate", "1/s", ({ rate }) => rate],
  ["processor_time", "µs each", ({ processor }) => processor],
  ["postgres_processor_time", "µs each", ({ postgres }) => postgres],
  // Of both together: a core of PostgreSQL keeps (100 - share) / share cores of the service busy
  ["postgres_share", "%", ({ postgres, processor }) => (100 * postgres) / (postgres + processor)]
]

/** Transactions that the database has seen; each statement of the service's own is one, as is each transaction. */
export const transactions = ({ query }: Pick<Database, "query">) =>
  Effect.map(
    query("SELECT xact_commit::float8 AS count FROM pg_stat_database WHERE datname = current_database()"),
    ([row]) => Number(row?.["count"])
  )

export const connectTo = (url: string) =>
  Effect.map(
    connectionTo(url),
    (client) =>
      (text: string, values: ReadonlyArray<unknown> = []) =>
        Effect.promise(async (): Promise<ReadonlyArray<Record<string, unknown>>> => {
          const { rows } = await client.query(text, [...values])
          return rows
        })
  )

/** A durable PostgreSQL with the service's schema in this directory, and a connection to it. */
export const startDatabaseIn = Effect.fnUntraced(function* (directory: string) {
  const { url } = yield* startEmbeddedPostgres({ directory: join(directory, "postgres") })
  yield* migrate.pipe(Effect.provide(databaseLayer({ url })))
  const query = yield* connectTo(Redacted.value(url))
  const [backend] = yield* query("SELECT pg_backend_pid() AS pid")
  return { directory, url: Redacted.value(url), query, postmaster: parentOf(Number(backend?.["pid"])) }
})

/** A copy of a database on the same server, and a connection to it. Nobody else may be connected to the original. */
export const copyDatabase = Effect.fnUntraced(function* (database: Database, name: string) {
  const url = new URL(database.url)
  yield* database.query(`CREATE DATABASE ${name} TEMPLATE "${url.pathname.slice(1)}" STRATEGY file_copy`)
  url.pathname = `/${name}`
  return { ...database, url: url.href, query: yield* connectTo(url.href) } satisfies Database
})

/** The same in a directory of its own. */
export const startDatabase = Effect.zipRight(
  Console.error("Starting the database…"),
  Effect.flatMap(temporaryDirectory, startDatabaseIn)
)

export type Database = Effect.Effect.Success<typeof startDatabase>

export interface BenchEndpoint {
  readonly organizationId: OrganizationId
  readonly id: string
  readonly secretId: string
}

/** Makes an endpoint in an organization's sandbox, with a secret that the service can decrypt. */
export const makeEndpoint = Effect.fnUntraced(
  function* (database: Pick<Database, "query">, organization: string, url: string) {
    const { encrypt } = yield* Cipher
    const organizationId = OrganizationId.make(organization)
    const endpoint: BenchEndpoint = { organizationId, id: randomUUID(), secretId: randomUUID() }
    const { ciphertext } = yield* encrypt(
      Redacted.make(`whsec_${randomBytes(32).toString("base64url")}`),
      secretContext({ organizationId, environment: "sandbox" }, endpoint.secretId)
    )
    yield* database.query(
      `INSERT INTO payments.endpoints (organization_id, environment, id, name, url)
     VALUES ($1, 'sandbox', $2, 'Bench', $3)`,
      [organizationId, endpoint.id, url]
    )
    yield* database.query(
      `INSERT INTO payments.endpoint_secrets (organization_id, environment, id, endpoint_id, master_key_id, ciphertext)
     VALUES ($1, 'sandbox', $2, $3, $4, $5)`,
      [organizationId, endpoint.secretId, endpoint.id, masterKey.id, ciphertext]
    )
    return endpoint
  },
  Effect.provide(Cipher.layer([{ id: masterKey.id, key: Redacted.make(new Uint8Array(masterKey.bytes)) }]))
)

export const makeOrganization = Effect.fnUntraced(function* ({ query }: Pick<Database, "query">) {
  const organizationId = randomUUID()
  yield* query("INSERT INTO payments.organizations (id, name) VALUES ($1, 'Bench')", [organizationId])
  yield* query("INSERT INTO payments.workspaces VALUES ($1, 'sandbox')", [organizationId])
  return organizationId
})

export const makeEndpoints = Effect.fnUntraced(function* (database: Database, urls: ReadonlyArray<string>) {
  const endpoints: Array<BenchEndpoint> = []
  let organizationId = ""
  for (const [index, url] of urls.entries()) {
    if (index % 4 === 0) organizationId = yield* makeOrganization(database)
    endpoints.push(yield* makeEndpoint(database, organizationId, url))
  }
  return endpoints
})

export const payloadBytes = 420

const payloadSql = (field = '"type":"payment.succeeded"') =>
  `'{"id":"svc_evt_' || k || '",${field},"pad":"' || repeat('x', ${payloadBytes - 104 - field.length}) || '"}'`

/**
 * Adds as many deliveries, each of its own event, to the endpoints in turns. `due` is an SQL expression of `n`, the
 * number of the row from 1; by default, as a backlog has grown, they came due one after the other. One in a hundred comes
 * from a notification whose trace is kept.
 */
export const addDeliveries = (
  database: Database,
  endpoints: ReadonlyArray<BenchEndpoint>,
  count: number,
  {
    due = `now() - (${count} - n) * interval '10 microseconds'`,
    payload = payloadSql()
  }: { readonly due?: string; readonly payload?: string } = {}
) =>
  database.query(
    `WITH target AS MATERIALIZED (
       SELECT (row_number() OVER () - 1)::int AS i, * FROM unnest($1::uuid[], $2::uuid[], $3::uuid[]) AS t (org, endpoint, secret)
     ), new AS MATERIALIZED (
       SELECT n, uuidv7() AS id, uuidv7()::text AS event, md5(random()::text || n) AS k, target.* FROM generate_series(1, $4::int) AS n
       JOIN target ON target.i = n % $5::int
     ), event AS (
       INSERT INTO payments.events (organization_id, environment, id, public_id, type, payload)
       SELECT org, 'sandbox', event, 'svc_evt_' || k, 'payment.succeeded', ${payload} FROM new ORDER BY n
     ), delivery AS (
       INSERT INTO payments.deliveries
         (organization_id, environment, id, endpoint_id, event_id, secret_ids, traceparent, attempts)
       SELECT org, 'sandbox', id, endpoint, event, ARRAY[secret], ${traceparentSql}, '{}' FROM new ORDER BY n
     )
     INSERT INTO payments.delivery_queue
       (organization_id, environment, id, endpoint_id, event_id, secret_ids, traceparent, next_attempt_at, created_at)
     SELECT org, 'sandbox', id, endpoint, event, ARRAY[secret], ${traceparentSql}, ${due}, now()
     FROM new ORDER BY n`,
    [
      endpoints.map(({ organizationId }) => organizationId),
      endpoints.map(({ id }) => id),
      endpoints.map(({ secretId }) => secretId),
      count,
      endpoints.length
    ]
  )

/** The place in its trace of the notification that led to a delivery. */
const traceparentSql = `'00-' || k || '-' || left(k, 16) || CASE WHEN n % 100 = 0 THEN '-01' ELSE '-00' END`

/**
 * Runs a change of a table without its indexes, which are made again at its end, as they were.
 */
const withoutIndexes = <A, E, R>(database: Database, table: string, change: Effect.Effect<A, E, R>) =>
  Effect.gen(function* () {
    const indexes = yield* database.query(
      `SELECT indexname AS name, indexdef AS definition FROM pg_indexes
       WHERE schemaname = 'payments' AND tablename = $1 AND indexname NOT LIKE '%_pkey'`,
      [table]
    )
    yield* database.query("SET maintenance_work_mem = '512MB'")
    for (const { name } of indexes) yield* database.query(`DROP INDEX payments.${String(name)}`)
    yield* change
    for (const { definition } of indexes) {
      // The index of a partitioned table is described without those of its partitions
      yield* database.query(String(definition).replace(" ON ONLY ", " ON "))
    }
    yield* database.query(`VACUUM ANALYZE payments.${table}`)
    yield* database.query("CHECKPOINT")
  })

/** Quickly adds many finished deliveries to the history. Each has its own event, and the events are spread over a day. */
export const fillHistory = Effect.fnUntraced(function* (
  database: Database,
  endpoints: ReadonlyArray<BenchEndpoint>,
  count: number
) {
  const columns = [
    endpoints.map(({ organizationId }) => organizationId),
    endpoints.map(({ id }) => id),
    endpoints.map(({ secretId }) => secretId)
  ]
  yield* withoutIndexes(
    database,
    "deliveries",
    database.query(
      `WITH new AS MATERIALIZED (
         SELECT uuidv7() AS id, t.*,
           date_trunc('day', now(), 'UTC') + (n - 1)::float8 / $4 * interval '24 hours' AS stored_at
         FROM generate_series(1, $4::int) AS n JOIN (
           SELECT (row_number() OVER () - 1)::int AS i, count(*) OVER () AS targets, org, endpoint, ARRAY[secret] AS secrets
           FROM unnest($1::uuid[], $2::uuid[], $3::uuid[]) AS u (org, endpoint, secret)
         ) AS t ON t.i = n % t.targets
       ), event AS (
         INSERT INTO payments.events (organization_id, environment, id, public_id, type, payload, created_at)
         SELECT org, 'sandbox', id::text, 'svc_evt_' || encode(sha256(id::text::bytea), 'hex'), 'payment.succeeded',
           repeat('x', ${payloadBytes}), stored_at
         FROM new
       )
       INSERT INTO payments.deliveries
         (organization_id, environment, id, endpoint_id, event_id, secret_ids, state, finished_at, attempts)
       SELECT org, 'sandbox', id, endpoint, id::text, secrets, 'delivered', now(), '{}' FROM new`,
      [...columns, count]
    )
  )
})

/**
 * Queues the first deliveries of the history, as many as asked for, each due since a moment after the one before,
 * quickly. Their own rows go on to say that they are finished, which neither a claim nor a record looks at.
 */
export const queueAgain = (database: Database, count: number) =>
  withoutIndexes(
    database,
    "delivery_queue",
    database.query(
      `INSERT INTO payments.delivery_queue
         (organization_id, environment, id, endpoint_id, event_id, secret_ids, next_attempt_at, created_at)
       SELECT organization_id, environment, id, endpoint_id, event_id, secret_ids,
         now() - ($1::int - row_number() OVER ()) * interval '10 microseconds', created_at
       FROM payments.deliveries LIMIT $1::int`,
      [count]
    )
  )

/** A backlog: so many deliveries, all of them due. */
export const fillQueue = (database: Database, endpoints: ReadonlyArray<BenchEndpoint>, count: number) =>
  Effect.zipRight(fillHistory(database, endpoints, count), queueAgain(database, count))

export const wakeWorkers = ({ query }: Database) => query("SELECT pg_notify('connected_payments_payments', 'bench')")

export const addTimedDelivery = (database: Database, endpoint: BenchEndpoint) =>
  Effect.zipRight(
    addDeliveries(database, [endpoint], 1, {
      due: "now()",
      payload: payloadSql(`"source":{"event_id":"evt_at_${Date.now()}"}`)
    }),
    wakeWorkers(database)
  )

/** The queue without a delivery, its tables as new. */
export const emptyQueue = (database: Database) =>
  database.query("TRUNCATE payments.deliveries, payments.delivery_queue, payments.events")

export interface Seen {
  readonly received: number
  readonly connections: number
  readonly latencies: ReadonlyArray<number>
}

/** A receiver in a process of its own; the first `silent` of its ports never answer. */
export const startReceiver = Effect.fnUntraced(function* (ports: number, silent = 0) {
  const started = yield* startScript(new URL("./Receiver.ts", import.meta.url), {
    args: [String(ports), String(silent)]
  })
  // Written by our own receiver, in this form
  const own: { readonly ports: ReadonlyArray<number>; readonly viewPort: number } = JSON.parse(
    yield* firstLine(started)
  )
  const look = Effect.async<Seen>((resume) => {
    let text = ""
    connect(own.viewPort, "127.0.0.1")
      .on("data", (chunk) => {
        text += chunk.toString()
      })
      .on("end", () => resume(Effect.sync(() => JSON.parse(text))))
  })
  const until = (least: number): Effect.Effect<number> =>
    Effect.flatMap(look, ({ received }) =>
      received >= least ? Effect.succeed(received) : Effect.delay(until(least), "50 millis")
    )
  const receivedIn = (millis: number) =>
    Effect.gen(function* () {
      const { received } = yield* look
      yield* Effect.promise(() => sleep(millis))
      return { count: (yield* look).received - received }
    })
  return { ports: own.ports, urls: own.ports.map((port) => `http://127.0.0.1:${port}/hook`), look, until, receivedIn }
})

/** What a service without an emulator is set to; nobody listens there: a notification of a payment asks the provider nothing. */
export const provider = {
  account: "acct_1Bench",
  secret: "whsec_bench0123456789",
  settings: {
    PROVIDER_API_URL: "http://127.0.0.1:9",
    PROVIDER_SANDBOX_SECRET_KEY: "sk_test_bench",
    PROVIDER_SANDBOX_WEBHOOK_SECRETS: "whsec_bench0123456789"
  }
} as const

/** Links the provider's account, with as many endpoints that want its payments. */
export const linkAccount = Effect.fnUntraced(function* (
  database: Pick<Database, "query">,
  organizationId: string,
  endpoints: number
) {
  yield* database.query(
    `INSERT INTO payments.provider_accounts (organization_id, environment, account_id, status, had_payments_before)
     VALUES ($1, 'sandbox', $2, 'connected', true)`,
    [organizationId, provider.account]
  )
  return yield* Effect.replicateEffect(makeEndpoint(database, organizationId, "https://shop.example/hook"), endpoints)
})

/** The service in a process of its own, one span in a hundred sampled and sent to a collector. */
export const startService = Effect.fnUntraced(function* (
  database: Database,
  roles: "all" | "api" | "worker",
  env: Readonly<Record<string, string>> = {}
) {
  return yield* startBuilt(roles, {
    DATA_DIR: join(database.directory, "service"),
    DATABASE_URL: database.url,
    ...traced(yield* traceSink),
    ...env
  })
})
