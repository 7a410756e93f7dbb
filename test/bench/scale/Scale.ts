import { join } from "node:path"
import { Console, Effect } from "effect"
import { load, localOf } from "../api/Processes.ts"
import { type Bench, figuresOfCases, inRounds, ratioToFirst } from "../Bench.ts"
import {
  costMetrics,
  costOf,
  type Database,
  linkAccount,
  makeOrganization,
  provider,
  startDatabase,
  startService,
  transactions
} from "../deliveries/Bed.ts"
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

const { account, secret } = provider
const notifying = { account, secret }

const workOf = (database: Database) =>
  Effect.map(
    database.query(`
      SELECT (pg_current_wal_insert_lsn() - '0/0')::float8 AS wal,
        count(*) FILTER (WHERE application_name LIKE 'connected-payments%')::float8 AS connections
      FROM pg_stat_activity`),
    ([row]) => ({ wal: Number(row?.["wal"]), connections: Number(row?.["connections"]) })
  )

/** An API process with data of its own: each says in its file where it listens. */
const startApi = Effect.fnUntraced(function* (database: Database, name: string) {
  const directory = join(database.directory, name)
  const { pid } = yield* startService(database, "api", {
    DATA_DIR: directory,
    ...provider.settings
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
            const options = { url, prefix, ...notifying, connections: connections / processes }
            return load(prefix, { ...options, warmUpMillis: 0, millis })
          },
          { concurrency: "unbounded" }
        ),
        (results) => ({ count: results.reduce((sum, { answered }) => sum + answered, 0) })
      )
    // Code that is run for the first time costs several times as much
    yield* all("warm", warmUpMillis)
    const [workBefore, transactionsBefore] = [yield* workOf(database), yield* transactions(database)]
    const cost = yield* costOf(database, services, all("counted", millis))
    const { connections: atOnce, wal } = yield* workOf(database)
    return {
      ...cost,
      wal: (wal - workBefore.wal) / cost.count,
      transactions: ((yield* transactions(database)) - transactionsBefore) / cost.count,
      connections: atOnce
    }
  }).pipe(Effect.scoped)

export const scaleBench: Bench = {
  name: "scale",
  about: "what 1 and 2 API processes do on one database, and what that costs it",
  run: Effect.gen(function* () {
    const database = yield* startDatabase
    yield* linkAccount(database, yield* makeOrganization(database), endpointsOfAccount)
    const results = yield* inRounds(rounds, (round) =>
      Effect.forEach(cases, (processes) =>
        Effect.tap(notify(database, processes, round), ({ rate }) =>
          Console.error(`  ${processes} of API: ${Math.round(rate)}/s`)
        )
      )
    )
    return figuresOfCases<(typeof results)[number][number]>(
      "scale",
      cases.map((processes) => `notifications, ${processes} of API`),
      results,
      [
        ...costMetrics,
        ratioToFirst("rate_to_one", ({ rate }) => rate),
        ["wal", "bytes each", ({ wal }) => wal],
        // A session may tell of a transaction ten seconds later: too late for a short measurement
        ...(share < 1
          ? []
          : [["transactions", "each", (one: { readonly transactions: number }) => one.transactions] as const]),
        ["connections", "", (one) => one.connections]
      ]
    )
  })
}
