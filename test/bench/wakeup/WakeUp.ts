import { randomUUID } from "node:crypto"
import { createServer } from "node:net"
import { join } from "node:path"
import { setTimeout as sleep } from "node:timers/promises"
import { Console, Effect, Schema } from "effect"
import { listening } from "../../harness/Listening.ts"
import { BenchFailed, type Local, localOf } from "../api/Processes.ts"
import { type Bench, figuresOfCases, inRounds, percentile, ratioToFirst } from "../Bench.ts"
import { type Database, makeEndpoint, startDatabase, startService } from "../deliveries/Bed.ts"
import { roundsOf } from "../sizes.ts"

/**
 * What a worker has to claim: the time from the answer to a synthetic test or a re-send to the consumer's first byte, with
 * one, two and four processes that serve and deliver, each asked in turn. What notifications lead to is handed over within
 * their process: that is `latency`.
 */

const cases = [1, 2, 4]
const nameOf = (processes: number) => (processes === 1 ? "1 process" : `${processes} processes`)

const rounds = roundsOf(3)

/** How many of each kind are measured in a round; an endpoint takes 5 tests a minute, so each gets one. */
const count = 100

/** Between two requests, so that none waits for another. */
const pauseMillis = 15

const timeoutMillis = 20_000

const Queued = Schema.Struct({ id: Schema.String, eventId: Schema.String })

/** A consumer in this process, so that one clock tells all times: when each event came last. */
const startConsumer = Effect.gen(function* () {
  const cameAt = new Map<string, number>()
  const server = createServer((socket) => {
    socket.on("error", () => {})
    let text = ""
    socket.on("data", (chunk: Buffer) => {
      const now = performance.now()
      text += chunk.toString("latin1")
      const [, id] = /"id":"(svc_test_evt_[^"]+)"/.exec(text) ?? []
      if (id === undefined || !text.endsWith("}")) return
      cameAt.set(id, now)
      text = ""
      socket.write("HTTP/1.1 204 No Content\r\n\r\n")
    })
  })
  const port = yield* listening(server)
  return { url: `http://127.0.0.1:${port}/hook`, cameAt }
})

/** A process that serves and delivers, with files of its own, and how to reach it. */
const startOne = Effect.fnUntraced(function* (database: Database) {
  const directory = join(database.directory, randomUUID())
  yield* startService(database, "all", { DATA_DIR: directory })
  return yield* localOf(directory)
})

const post = ({ apiKey, baseUrl, organizationId }: Local, path: string, body?: unknown) =>
  Effect.tryPromise(async () => {
    const answer = await fetch(`${baseUrl}/v2/organizations/${organizationId}/integrations${path}`, {
      method: "POST",
      headers: { "x-api-key": apiKey, "content-type": "application/json", "idempotency-key": randomUUID() },
      ...(body === undefined ? {} : { body: JSON.stringify(body) })
    })
    const answered: unknown = await answer.json()
    if (!answer.ok) throw new Error(`${path}: ${answer.status} ${JSON.stringify(answered)}`)
    return { answeredAt: performance.now(), answered }
  })

const measure = (database: Database, { url, cameAt }: Effect.Effect.Success<typeof startConsumer>, processes: number) =>
  Effect.gen(function* () {
    const services = yield* Effect.replicateEffect(startOne(database), processes)
    const [first] = services
    if (first === undefined) return yield* new BenchFailed({ message: "No process runs" })
    /** In turns; the key of one is known to all. */
    const serviceOf = (index: number) => ({ ...first, baseUrl: services[index % services.length]?.baseUrl ?? "" })
    const endpoints = yield* Effect.replicateEffect(makeEndpoint(database, first.organizationId, url), count)

    /** Asks for each, waits until all have come, and says how long each took after its answer, in milliseconds. */
    const timed = (paths: ReadonlyArray<string>, body?: unknown) =>
      Effect.gen(function* () {
        cameAt.clear()
        const asked: Array<typeof Queued.Type & { readonly answeredAt: number }> = []
        for (const [index, path] of paths.entries()) {
          const { answeredAt, answered } = yield* post(serviceOf(index), path, body)
          asked.push({ ...(yield* Schema.decodeUnknown(Queued)(answered)), answeredAt })
          yield* Effect.promise(() => sleep(pauseMillis))
        }
        const since = performance.now()
        while (asked.some(({ eventId }) => !cameAt.has(eventId))) {
          if (performance.now() - since > timeoutMillis) {
            return yield* new BenchFailed({
              message: `${nameOf(processes)}: only ${cameAt.size} of ${asked.length} arrived`
            })
          }
          yield* Effect.promise(() => sleep(10))
        }
        const millis = asked.map(({ answeredAt, eventId }) =>
          Math.max(0, (cameAt.get(eventId) ?? Number.NaN) - answeredAt)
        )
        return { ids: asked.map(({ id }) => id), millis }
      })
    const tests = yield* timed(
      endpoints.map(({ id }) => `/endpoints/${id}/test`),
      { type: "payment.succeeded" }
    )
    const ended = "SELECT count(*)::int AS left FROM payments.delivery_queue"
    while ((yield* database.query(ended))[0]?.["left"] !== 0) yield* Effect.promise(() => sleep(20))
    yield* database.query("UPDATE payments.deliveries SET state = 'failed' WHERE id = ANY ($1::uuid[])", [tests.ids])
    const resends = yield* timed(tests.ids.map((id) => `/deliveries/${id}/retry`))
    const say = (name: string, { millis }: typeof tests) =>
      `${name} p50 ${percentile(millis, 0.5).toFixed(1)}, p99 ${percentile(millis, 0.99).toFixed(1)} ms`
    yield* Console.error(`  ${nameOf(processes)}: ${say("tests", tests)}; ${say("re-sends", resends)}`)
    return { tests: tests.millis, resends: resends.millis }
  }).pipe(Effect.scoped)

type Millis = Readonly<Record<"tests" | "resends", ReadonlyArray<number>>>

export const wakeUpBench: Bench = {
  name: "wakeup",
  about: "synthetic tests and re-sends, from the answer to the consumer, with one, two and four processes",
  run: Effect.gen(function* () {
    const database = yield* startDatabase
    const consumer = yield* startConsumer
    const results = yield* inRounds(rounds, () => Effect.forEach(cases, (one) => measure(database, consumer, one)))
    return figuresOfCases<Millis>(
      "wakeup",
      cases.map(nameOf),
      results,
      (["tests", "resends"] as const).flatMap((kind) => [
        ...([0.5, 0.99] as const).map(
          (share) => [`${kind}_p${100 * share}_ms`, "ms", (one: Millis) => percentile(one[kind], share)] as const
        ),
        ratioToFirst(`${kind}_p50_to_1_process`, (one: Millis) => percentile(one[kind], 0.5))
      ])
    )
  })
}
