import { createHash, randomBytes, randomUUID } from "node:crypto"
import { join } from "node:path"
import { setTimeout as sleep } from "node:timers/promises"
import { Effect } from "effect"
import { v7 } from "uuid"
import { type Bench, figuresOfCases, inRounds, ratioToFirst } from "../Bench.ts"
import { type Database, makeEndpoint, startDatabase, startService } from "../deliveries/Bed.ts"
import { BenchFailed, type Local, load, localOf, processorTime, startServer } from "./Processes.ts"

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
export const startApi = Effect.fnUntraced(function* (database: Database) {
  const { pid } = yield* startService(database, "api", { DATABASE_POOL_SIZE: String(poolSize) })
  return { ...(yield* localOf(join(database.directory, "service"))), pid }
})

const startBare = (databaseUrl: string, withRateLimit: boolean) =>
  startServer(new URL("./BareServer.ts", import.meta.url), {
    env: {
      DATABASE_URL: databaseUrl,
      DATABASE_POOL_SIZE: String(poolSize),
      WITH_RATE_LIMIT: withRateLimit ? "1" : "0"
    }
  })

/** Keys of the organization, a delivery with two attempts for each, and their paths. */
export const seed = (database: Database, { apiKey, organizationId }: Local) =>
  Effect.gen(function* () {
    const { query } = database
    const hash = (key: string) => createHash("sha256").update(key).digest()
    const keys: Array<string> = []
    const paths: Array<string> = []
    const of = [organizationId, "sandbox"]
    const { id: endpointId, secretId } = yield* makeEndpoint(database, organizationId, "https://shop.example/hook")
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
      const eventKey = v7()
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
        `INSERT INTO payments.events (organization_id, environment, id, public_id, type, payload, provider_event_id)
         VALUES ($1, $2, $3, $4, $5, $6, $7)`,
        [...of, eventKey, eventId, payload.type, JSON.stringify(payload), payload.source.event_id]
      )
      yield* query(
        `INSERT INTO payments.deliveries (organization_id, environment, id, endpoint_id, event_id, secret_ids, state,
           attempts, finished_at, attempt_count, last_http_status)
         VALUES ($1, $2, $3, $4, $5, ARRAY[$6::uuid], 'delivered', ARRAY[
           ROW(1, 'automatic', now(), 30, 500, 'http_error'), ROW(2, 'automatic', now(), 20, 200, NULL)
         ]::payments.delivery_attempt[], now(), 2, 200)`,
        [...of, id, endpointId, eventKey, secretId]
      )
      paths.push(`/v2/organizations/${organizationId}/integrations/deliveries/${id}`)
    }
    yield* query("VACUUM ANALYZE")
    return { keys, paths }
  })

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
    const { answered, rate, ...result } = yield* load(name, {
      url: server.baseUrl,
      keys,
      paths,
      connections: atOnce,
      warmUpMillis,
      millis
    })
    yield* Effect.promise(() => sleep(300))
    return { ...result, rate, processor: (processorTime(server.pid) - before) / answered }
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

export const apiBench: Bench = {
  name: "api",
  about: "an authenticated read, against a bare server that does the same look-up and read",
  run: Effect.gen(function* () {
    const database = yield* startDatabase
    const service = yield* startApi(database)
    const { keys, paths } = yield* seed(database, service)
    const bare = yield* startBare(database.url, false)
    const limited = yield* startBare(database.url, true)
    if (!(yield* checkSame(service.baseUrl, bare.baseUrl, paths[0] ?? "", keys[0] ?? ""))) {
      return yield* new BenchFailed({ message: "The bare server does not answer what the service answers" })
    }
    const cases: ReadonlyArray<Case> = [
      { name: "bare", server: bare, keys, paths },
      { name: "bare with rate limit", server: limited, keys, paths },
      { name: "service, 64 keys", server: service, keys, paths },
      { name: "service, 1 key", server: service, keys: keys.slice(0, 1), paths }
    ]
    const results = yield* inRounds(rounds, () => Effect.forEach(cases, measure))
    return figuresOfCases<(typeof results)[number][number]>(
      "api",
      cases.map(({ name }) => name),
      results,
      [
        ["server_processor_time", "µs/request", ({ processor }) => processor],
        ["rate", "requests/s", ({ rate }) => rate],
        ["p50", "ms", ({ p50 }) => p50],
        ["p99", "ms", ({ p99 }) => p99],
        ratioToFirst("ratio_to_bare", ({ rate }) => rate),
        ["ratio_to_bare_with_rate_limit", "", ({ rate }, [, limited]) => rate / (limited?.rate ?? Number.NaN)]
      ]
    )
  })
}
