import { execFile } from "node:child_process"
import { access } from "node:fs/promises"
import { setTimeout as sleep } from "node:timers/promises"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { Console, Effect } from "effect"
import { BenchFailed, firstLine, startScript } from "../api/Processes.ts"
import { type Bench, figuresOfCases, inRounds } from "../Bench.ts"
import {
  addDeliveries,
  costOf,
  emptyQueue,
  makeEndpoints,
  payloadBytes,
  startDatabase,
  startReceiver,
  startService
} from "../deliveries/Bed.ts"
import { roundsOf } from "../sizes.ts"

/**
 * The same work on other queues that stand on PostgreSQL, at the settings that their documentation recommends and at the
 * fastest that were found: same database, same receiver, in turns in one run, each with its records checked afterwards.
 */

const rounds = roundsOf(3)
/** In its first seconds, a process waits for its compiler, and the service, which has more code, for longer than the others. */
const warmUpMillis = 6000
const millis = 4000
const endpointCount = 64

/** What may have arrived and not be recorded when a worker ends: what it has in flight, and a batch of records. */
const mostInFlight = 3000

const payload = `{"id":"svc_evt_1","pad":"${"x".repeat(payloadBytes - 26)}"}`
const folder = fileURLToPath(new URL(".", import.meta.url))

const peers = [
  { name: "graphile-worker as documented", peer: "graphile-worker", tuned: false, jobs: 40_000 },
  { name: "graphile-worker tuned", peer: "graphile-worker", tuned: true, jobs: 250_000 },
  { name: "pg-boss as documented", peer: "pg-boss", tuned: false, jobs: 40_000 },
  { name: "pg-boss tuned", peer: "pg-boss", tuned: true, jobs: 250_000 }
]

/** Into the bench's own folder, when it first runs. */
const install = Effect.promise(() =>
  access(`${folder}node_modules/pg-boss`).then(
    () => true,
    () => false
  )
).pipe(
  Effect.flatMap((installed) =>
    installed
      ? Effect.void
      : Effect.tryPromise({
          try: () =>
            promisify(execFile)(
              "npm",
              ["install", "--no-audit", "--no-fund", "--ignore-scripts", "--no-package-lock"],
              {
                cwd: folder
              }
            ),
          catch: (cause) => new BenchFailed({ message: `The peers can't be installed: ${String(cause)}` })
        })
  )
)

export const peersBench: Bench = {
  name: "peers",
  about: "the same deliveries on graphile-worker and on pg-boss",
  run: Effect.gen(function* () {
    yield* Console.error("Installing the peers, starting the database and the receiver…")
    yield* install
    const database = yield* startDatabase
    const receiver = yield* startReceiver(endpointCount)
    const endpoints = yield* makeEndpoints(database, receiver.urls)
    const rateFromNow = (name: string) =>
      Effect.gen(function* () {
        yield* Effect.promise(() => sleep(warmUpMillis))
        const { rate } = yield* costOf(database, [], receiver.receivedIn(millis))
        yield* Console.error(`  ${name}: ${Math.round(rate)}/s`)
        return rate
      })
    /** The rate of what runs within the scope; then whether all that arrived is recorded, but what was in flight. */
    const recordedRate = <E, R>(name: string, start: Effect.Effect<unknown, E, R>, recorded: string) =>
      Effect.gen(function* () {
        const before = yield* receiver.look
        const rate = yield* Effect.scoped(Effect.zipRight(start, rateFromNow(name)))
        const { received } = yield* receiver.look
        const [row] = yield* database.query(recorded)
        const [arrived, rows] = [received - before.received, Number(row?.["count"])]
        return rows >= arrived - mostInFlight && rows <= arrived
          ? rate
          : yield* new BenchFailed({ message: `${name}: ${arrived} arrived, ${rows} are recorded` })
      })
    const measureService = recordedRate(
      "service",
      Effect.gen(function* () {
        yield* emptyQueue(database)
        yield* addDeliveries(database, endpoints, 200_000)
        yield* database.query("VACUUM ANALYZE payments.deliveries, payments.delivery_queue, payments.events")
        yield* startService(database, "worker")
      }),
      "SELECT count(*)::int AS count FROM payments.deliveries WHERE state = 'delivered'"
    )
    const measurePeer = ({ jobs, name, peer, tuned }: (typeof peers)[number]) =>
      recordedRate(
        name,
        Effect.gen(function* () {
          const options = { peer, tuned, jobs, databaseUrl: database.url, ports: receiver.ports, payload }
          yield* firstLine(
            yield* startScript(new URL("./Peer.mjs", import.meta.url), { args: [JSON.stringify(options)] })
          )
        }),
        "SELECT count(*)::int AS count FROM peer_attempts"
      )
    const entries = [
      { name: "service", measure: measureService },
      ...peers.map((peer) => ({ ...peer, measure: measurePeer(peer) }))
    ]
    const results = yield* inRounds(rounds, (round) =>
      Effect.gen(function* () {
        // Each round begins with another one: whoever comes after a vacuum or a checkpoint has it easier
        const first = (round - 1) % entries.length
        const order = [...entries.slice(first), ...entries.slice(0, first)]
        const measured = yield* Effect.forEach(order, ({ measure }) => measure)
        return [...measured.slice(entries.length - first), ...measured.slice(0, entries.length - first)]
      })
    )
    return figuresOfCases<number>(
      "peers",
      entries.map(({ name }) => name),
      results,
      [
        ["rate", "1/s", (rate) => rate],
        ["service_ratio_to_it", "", (rate, [service = Number.NaN]) => service / rate]
      ]
    )
  })
}
