import { createHash, randomBytes, randomUUID } from "node:crypto"
import { join } from "node:path"
import { setTimeout as sleep } from "node:timers/promises"
import { Console, Effect, Redacted } from "effect"
import { v7 } from "uuid"
import { startEmbeddedPostgres } from "../../../src/platform/storage/EmbeddedPostgres.ts"
import { connectionTo } from "../../harness/Connection.ts"
import { type Bench, figuresOf, inRounds } from "../Bench.ts"
import {
  BenchFailed,
  directoryOfItsOwn,
  firstLine,
  type Local,
  load,
  localOf,
  masterKey,
  processorTime,
  startBuilt,
  startScript,
  traced,
  traceSink
} from "./Processes.ts"

/**
 * What the service costs on top of its work: an authenticated read of a record of ours (`GET M/deliveries/{id}`), with
 * rate limit and one request in a hundred traced, against a bare server that does the same look-up and read.
 */

const connections = 64
const poolSize = 10
const rounds = 3
const warmUpMillis = 3000
const millis = 6000

/** The service's API in a process of its own, its emulator idle beside it, one request in a hundred traced. */
export const startService = Effect.fnUntraced(function* (directory: string, databaseUrl: string, sink: string) {
  const DATA_DIR = join(directory, "service")
  const { pid } = yield* startBuilt("api", {
    DATA_DIR,
    DATABASE_URL: databaseUrl,
    DATABASE_POOL_SIZE: String(poolSize),
    ...traced(sink)
  })
  return { ...(yield* localOf(DATA_DIR)), pid }
})

const startBare = Effect.fnUntraced(function* (databaseUrl: string, withRateLimit: boolean) {
  const started = yield* startScript(new URL("./BareServer.ts", import.meta.url), {
    env: {
      DATABASE_URL: databaseUrl,
      DATABASE_POOL_SIZE: String(poolSize),
      WITH_RATE_LIMIT: withRateLimit ? "1" : "0"
    }
  })
  return { baseUrl: yield* firstLine(started), pid: started.child.pid ?? 0 }
})

/** Keys of the organization, a delivery with two attempts for each, and their paths. */
export const seed = (databaseUrl: string, { apiKey, organizationId }: Local) =>
  Effect.gen(function* () {
    const client = yield* connectionTo(databaseUrl)
    const query = (text: string, values: ReadonlyArray<unknown> = []) =>
      Effect.promise(() => client.query(text, [...values]))
    const hash = (key: string) => createHash("sha256").update(key).digest()
    const keys: Array<string> = []
    const paths: Array<string> = []
    const endpointId = randomUUID()
    const secretId = randomUUID()
    const of = [organizationId, "sandbox"]
    yield* query(
      `INSERT INTO payments.endpoints (organization_id, environment, id, name, url, events)
       VALUES ($1, $2, $3, 'Bench', 'https://shop.example/hook', ARRAY['payment.succeeded'])`,
      [...of, endpointId]
    )
    yield* query(
      `INSERT INTO payments.endpoint_secrets (organization_id, environment, id, endpoint_id, master_key_id, ciphertext)
       VALUES ($1, $2, $3, $4, $5, '\\x00')`,
      [...of, secretId, endpointId, masterKey.id]
    )
    for (let n = 0; n < connections; n++) {
      const key = `pk_test_${randomBytes(32).toString("base64url")}`
      keys.push(key)
      yield* query(
        `INSERT INTO payments.api_keys
           (id, organization_id, environment, name, key_hash, key_prefix, last_four, permissions)
         SELECT $2, organization_id, environment, 'Bench', $3, key_prefix, 'xxxx', permissions
         FROM payments.api_keys WHERE key_hash = $1`,
        [hash(apiKey), randomUUID(), hash(key)]
      )
      const id = v7()
      const eventId = `svc_evt_${hash(id).toString("hex")}`
      const payload = {
        id: eventId,
        type: "payment.succeeded",
        version: 1,
        created_at: new Date().toISOString(),
        livemode: false,
        organization_id: organizationId,
        source: { provider: "stripe", event_id: `evt_${n}` },
        data: { payment_id: `pi_${n}`, amount_received: 3000, currency: "brl" }
      }
      yield* query(
        `INSERT INTO payments.events (organization_id, environment, id, type, payload) VALUES ($1, $2, $3, $4, $5)`,
        [...of, eventId, payload.type, JSON.stringify(payload)]
      )
      yield* query(
        `INSERT INTO payments.deliveries (organization_id, environment, id, endpoint_id, event_id, secret_ids, state,
           attempts, finished_at, attempt_count, last_http_status)
         VALUES ($1, $2, $3, $4, $5, ARRAY[$6::uuid], 'delivered', ARRAY[
           ROW(1, 'automatic', now(), 30, 500, 'http_error'), ROW(2, 'automatic', now(), 20, 200, NULL)
         ]::payments.delivery_attempt[], now(), 2, 200)`,
        [...of, id, endpointId, eventId, secretId]
      )
      paths.push(`/v2/organizations/${organizationId}/integrations/deliveries/${id}`)
    }
    yield* query("VACUUM ANALYZE")
    return { keys, paths }
  }).pipe(Effect.scoped)

interface Server {
  readonly baseUrl: string
  readonly pid: number
}

interface Case {
  readonly name: string
  readonly server: Server
  readonly keys: ReadonlyArray<string>
  readonly paths: ReadonlyArray<string>
  /** Default: as many as there are keys. */
  readonly connections?: number
}

export const measure = ({ connections: atOnce = connections, keys, name, paths, server }: Case) =>
  Effect.gen(function* () {
    const before = processorTime(server.pid)
    const result = yield* load(name, { url: server.baseUrl, keys, paths, connections: atOnce, warmUpMillis, millis })
    yield* Console.error(`  ${name}: ${Math.round(result.requests / result.seconds)} requests/s`)
    yield* Effect.promise(() => sleep(300))
    const processor = (processorTime(server.pid) - before) / result.answered
    return { processor, rate: result.requests / result.seconds, p50: result.p50, p99: result.p99 }
  })

/** Both servers have to answer the same, or their rates can't be compared. */
const checkSame = (service: string, bare: string, path: string, key: string) =>
  Effect.promise(async () => {
    const [ours, theirs] = await Promise.all(
      [service, bare].map(async (url) => {
        const body: unknown = await (await fetch(`${url}${path}`, { headers: { "x-api-key": key } })).json()
        return Object.entries(Object(body)).length
      })
    )
    return ours === theirs
  })

/** `npm run bench -- api`. */
export const apiBench: Bench = {
  name: "api",
  about: "an authenticated read, against a bare server that does the same look-up and read",
  run: Effect.gen(function* () {
    const directory = yield* directoryOfItsOwn
    const database = yield* startEmbeddedPostgres({ directory: join(directory, "postgres") })
    const databaseUrl = Redacted.value(database.url)
    const sink = yield* traceSink
    yield* Console.error("Starting the service and the bare server…")
    const service = yield* startService(directory, databaseUrl, sink)
    const { keys, paths } = yield* seed(databaseUrl, service)
    const bare = yield* startBare(databaseUrl, false)
    const limited = yield* startBare(databaseUrl, true)
    if (!(yield* checkSame(service.baseUrl, bare.baseUrl, paths[0] ?? "", keys[0] ?? ""))) {
      return yield* new BenchFailed({ message: "The bare server does not answer what the service answers" })
    }
    const cases: ReadonlyArray<Case> = [
      { name: "service, 64 keys", server: service, keys, paths },
      { name: "bare", server: bare, keys, paths },
      { name: "bare with rate limit", server: limited, keys, paths },
      { name: "service, 1 key", server: service, keys: keys.slice(0, 1), paths }
    ]
    const results = yield* inRounds(rounds, () =>
      Effect.map(
        Effect.forEach(cases, (one) => Effect.map(measure(one), (measured) => [one.name, measured] as const)),
        (measured) => new Map(measured)
      )
    )
    const figure = figuresOf("api", results)
    return cases.flatMap(({ name }) => {
      const of =
        (metric: "processor" | "rate" | "p50" | "p99", server = name) =>
        (round: (typeof results)[number]) =>
          round.get(server)?.[metric] ?? Number.NaN
      const ratioTo = (server: string) => (round: (typeof results)[number]) =>
        of("rate")(round) / of("rate", server)(round)
      return [
        figure(name, "server_processor_time", "µs/request", of("processor")),
        figure(name, "rate", "requests/s", of("rate")),
        figure(name, "p50", "ms", of("p50")),
        figure(name, "p99", "ms", of("p99")),
        figure(name, "ratio_to_bare", "", ratioTo("bare")),
        figure(name, "ratio_to_bare_with_rate_limit", "", ratioTo("bare with rate limit"))
      ]
    })
  })
}
