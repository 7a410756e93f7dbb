import { join } from "node:path"
import { Console, Effect } from "effect"
import { load, localOf } from "../api/Processes.ts"
import { type Bench, figuresOf, inRounds } from "../Bench.ts"
import { type Database, makeEndpoint, processorTimes, startDatabase, startService } from "../deliveries/Bed.ts"
import { roundsOf, share } from "../sizes.ts"

/**
 * What a further API process adds on one PostgreSQL: they take notifications for three endpoints, in turns in one run.
 * Processes, database and load share the machine's processors: once those are busy, a further process adds nothing to the
 * rate, and what an event costs PostgreSQL says more. From that, `src/docs/guides/growth.md` computes how far one server goes.
 */

const rounds = roundsOf(3)

const connections = 32
const endpointsOfAccount = 3
const warmUpMillis = 6000
const millis = 6000 * share

const cases = [1, 2] as const

const account = "acct_1BenchScale"
const secret = "whsec_bench0123456789"

/** What PostgreSQL has done so far. */
interface Work {
  readonly walBytes: number
  readonly transactions: number
  readonly connections: number
}

const workOf = ({ query }: Database) =>
  Effect.map(
    query(`
      SELECT (pg_current_wal_insert_lsn() - '0/0')::float8 AS wal, d.xact_commit::float8 AS transactions,
        (SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'connected-payments%')::float8 AS connections
      FROM pg_stat_database d WHERE d.datname = current_database()`),
    ([row]): Work => ({
      walBytes: Number(row?.["wal"]),
      transactions: Number(row?.["transactions"]),
      connections: Number(row?.["connections"])
    })
  )

/** What a case costs for each of what it counts. */
interface Measured extends Work {
  readonly rate: number
  /** Microseconds of the service's processes. */
  readonly processor: number
  /** Microseconds of PostgreSQL. */
  readonly postgres: number
}

/** Measures while `work` runs, which answers how much was done. */
const measuring = <E, R>(
  database: Database,
  services: ReadonlyArray<{ readonly pid: number }>,
  work: Effect.Effect<number, E, R>
) =>
  Effect.gen(function* () {
    const processors = () => services.map(({ pid }) => processorTimes(pid, database))
    const [workBefore, before, startedAt] = [yield* workOf(database), processors(), performance.now()]
    const count = yield* work
    const [workAfter, after, endedAt] = [yield* workOf(database), processors(), performance.now()]
    const service = after.reduce((sum, one, index) => sum + one.service - (before[index]?.service ?? Number.NaN), 0)
    const postgres = (after[0]?.postgres ?? Number.NaN) - (before[0]?.postgres ?? Number.NaN)
    const result: Measured = {
      rate: (count / (endedAt - startedAt)) * 1000,
      processor: service / count,
      postgres: postgres / count,
      walBytes: (workAfter.walBytes - workBefore.walBytes) / count,
      transactions: (workAfter.transactions - workBefore.transactions) / count,
      connections: workAfter.connections
    }
    return result
  })

/** An API process with data of its own: each says in its file where it listens. */
const startApi = Effect.fnUntraced(function* (database: Database, name: string) {
  const directory = join(database.directory, name)
  const { pid } = yield* startService(database, "api", {
    DATA_DIR: directory,
    // Nobody listens there: a notification of a payment asks the provider nothing
    PROVIDER_API_URL: "http://127.0.0.1:9",
    PROVIDER_SANDBOX_SECRET_KEY: "sk_test_bench",
    PROVIDER_SANDBOX_WEBHOOK_SECRETS: secret
  })
  return { pid, baseUrl: (yield* localOf(directory)).baseUrl }
})

const notify = (database: Database, processes: number, round: number) =>
  Effect.gen(function* () {
    yield* database.query("TRUNCATE payments.deliveries, payments.delivery_queue, payments.events")
    yield* database.query("CHECKPOINT")
    const services = yield* Effect.forEach(
      Array.from({ length: processes }, (_, index) => `api-${index}`),
      (name) => startApi(database, name)
    )
    const all = (phase: string, millis: number) =>
      Effect.map(
        Effect.forEach(
          services,
          ({ baseUrl: url }, index) => {
            const prefix = `evt_${phase}${round}x${processes}x${index}x`
            const options = { url, prefix, account, secret, connections: connections / processes }
            return load(prefix, { ...options, warmUpMillis: 0, millis })
          },
          { concurrency: "unbounded" }
        ),
        (results) => results.reduce((sum, { answered }) => sum + answered, 0)
      )
    // Code that is run for the first time costs several times as much
    yield* all("warm", warmUpMillis)
    return yield* measuring(database, services, all("counted", millis))
  }).pipe(Effect.scoped)

/** An account that is linked, and endpoints that want its payments. */
const seed = Effect.fnUntraced(function* (database: Database) {
  const [organization] = yield* database.query("SELECT id FROM payments.organizations LIMIT 1")
  const organizationId = String(organization?.["id"])
  yield* database.query(
    `INSERT INTO payments.provider_accounts (organization_id, environment, account_id, status, had_payments_before)
     VALUES ($1, 'sandbox', $2, 'connected', true)`,
    [organizationId, account]
  )
  yield* Effect.replicateEffect(makeEndpoint(database, organizationId, "https://shop.example/hook"), endpointsOfAccount)
})

/** `npm run bench -- scale`. */
export const scaleBench: Bench = {
  name: "scale",
  about: "what 1 and 2 API processes do on one database, and what that costs it",
  run: Effect.gen(function* () {
    yield* Console.error("Starting the database…")
    const database = yield* startDatabase
    yield* seed(database)
    const results = yield* inRounds(rounds, (round) =>
      Effect.forEach(cases, (processes) =>
        Effect.tap(notify(database, processes, round), ({ rate }) =>
          Console.error(`  ${processes} of API: ${Math.round(rate)}/s`)
        )
      )
    )
    return cases.flatMap((processes, index) => {
      const name = `notifications, ${processes} of API`
      const figure = figuresOf(
        "scale",
        results.flatMap((round) => round[index] ?? [])
      )
      return [
        figure(name, "rate", "1/s", ({ rate }) => rate),
        figure(name, "processor_time", "µs each", ({ processor }) => processor),
        figure(name, "postgres_processor_time", "µs each", ({ postgres }) => postgres),
        figure(name, "postgres_share", "%", ({ postgres, processor }) => (100 * postgres) / (postgres + processor)),
        figure(name, "wal", "bytes each", ({ walBytes }) => walBytes),
        // A session may tell of a transaction ten seconds later: too late for a short measurement
        ...(share < 1 ? [] : [figure(name, "transactions", "each", ({ transactions }) => transactions)]),
        figure(name, "connections", "", ({ connections }) => connections)
      ]
    })
  })
}
