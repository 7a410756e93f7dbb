import { createHash, randomBytes, randomUUID } from "node:crypto"
import { readFile } from "node:fs/promises"
import { join } from "node:path"
import { setTimeout as sleep } from "node:timers/promises"
import { Console, Effect, Redacted, Schema } from "effect"
import pg from "pg"
import { v7 } from "uuid"
import { startEmbeddedPostgres } from "../../../src/storage/EmbeddedPostgres.ts"
import { type Bench, type Figure, median } from "../Bench.ts"
import type { LoadResult } from "./Load.ts"
import {
  BenchFailed,
  builtService,
  directoryOfItsOwn,
  firstLine,
  masterKey,
  masterKeys,
  processorTime,
  serviceNodeArgs,
  startScript,
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

const LocalFile = Schema.parseJson(
  Schema.Struct({ baseUrl: Schema.String, organizationId: Schema.String, apiKey: Schema.String })
)

/**
 * The service's API in a process of its own, as `npm start` has it, its emulator idle beside it. `BENCH_NODE_ARGS` is
 * handed to its Node, e.g. `--cpu-prof --cpu-prof-dir=…` to see where the time goes.
 */
export const startService = Effect.fnUntraced(function* (directory: string, databaseUrl: string, sink: string) {
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
      RATE_LIMIT_PER_MINUTE: "100000000",
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

const startBare = Effect.fnUntraced(function* (databaseUrl: string, withRateLimit: boolean) {
  const started = yield* startScript("./BareServer.ts", {
    env: {
      DATABASE_URL: databaseUrl,
      DATABASE_POOL_SIZE: String(poolSize),
      WITH_RATE_LIMIT: withRateLimit ? "1" : "0"
    }
  })
  return { baseUrl: yield* firstLine(started), pid: started.child.pid ?? 0 }
})

/** Keys of the organization, a delivery with two attempts for each, and their paths. */
export const seed = (databaseUrl: string, { apiKey, organizationId }: typeof LocalFile.Type) =>
  Effect.promise(async () => {
    const client = new pg.Client({ connectionString: databaseUrl })
    await client.connect()
    const hash = (key: string) => createHash("sha256").update(key).digest()
    const keys: Array<string> = []
    const paths: Array<string> = []
    const endpointId = randomUUID()
    const secretId = randomUUID()
    const of = [organizationId, "sandbox"]
    await client.query(
      `INSERT INTO payments.endpoints (organization_id, environment, id, name, url, events)
       VALUES ($1, $2, $3, 'Bench', 'https://shop.example/hook', ARRAY['payment.succeeded'])`,
      [...of, endpointId]
    )
    await client.query(
      `INSERT INTO payments.endpoint_secrets (organization_id, environment, id, endpoint_id, master_key_id, ciphertext)
       VALUES ($1, $2, $3, $4, $5, '\\x00')`,
      [...of, secretId, endpointId, masterKey.id]
    )
    for (let n = 0; n < connections; n++) {
      const key = `pk_test_${randomBytes(32).toString("base64url")}`
      keys.push(key)
      await client.query(
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
      await client.query(
        `INSERT INTO payments.events (organization_id, environment, id, type, payload) VALUES ($1, $2, $3, $4, $5)`,
        [...of, eventId, payload.type, JSON.stringify(payload)]
      )
      await client.query(
        `INSERT INTO payments.deliveries (organization_id, environment, id, endpoint_id, event_id, secret_ids, state,
           attempts, finished_at, attempt_count, last_http_status)
         VALUES ($1, $2, $3, $4, $5, ARRAY[$6::uuid], 'delivered', ARRAY[
           ROW(1, 'automatic', now(), 30, 500, 'http_error'), ROW(2, 'automatic', now(), 20, 200, NULL)
         ]::payments.delivery_attempt[], now(), 2, 200)`,
        [...of, id, endpointId, eventId, secretId]
      )
      paths.push(`/v2/organizations/${organizationId}/integrations/deliveries/${id}`)
    }
    await client.query("VACUUM ANALYZE")
    await client.end()
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
    const started = yield* startScript("./Load.ts", {
      args: [JSON.stringify({ url: server.baseUrl, keys, paths, connections: atOnce, warmUpMillis, millis })]
    })
    const line = yield* firstLine(started)
    // Written by our own load generator, in this form
    const result: LoadResult = JSON.parse(line)
    if (result.failures > 0 || result.requests === 0) {
      return yield* new BenchFailed({ message: `${name}: ${result.failures} failures: ${result.firstFailure}` })
    }
    yield* Console.error(`  ${name}: ${Math.round(result.requests / result.seconds)} requests/s`)
    yield* Effect.promise(() => sleep(300))
    const processor = (processorTime(server.pid) - before) / result.answered
    return { processor, rate: result.requests / result.seconds, p50: result.p50, p99: result.p99 }
  }).pipe(Effect.scoped)

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
    const results = new Map(
      cases.map(({ name }): [string, Array<Effect.Effect.Success<ReturnType<typeof measure>>>] => [name, []])
    )
    for (let round = 1; round <= rounds; round++) {
      yield* Console.error(`Round ${round} of ${rounds}`)
      for (const one of cases) results.get(one.name)?.push(yield* measure(one))
    }
    const of = (name: string) => results.get(name) ?? []
    return cases.flatMap(({ name }): ReadonlyArray<Figure> => {
      const figure = (metric: string, value: number, unit: string) => ({
        bench: "api",
        case: name,
        metric,
        value,
        unit
      })
      const processor = median(of(name).map((result) => result.processor))
      // Each round's ratio by itself: what else the machine does changes from one to the next
      const ratioTo = (other: string) =>
        median(of(name).map(({ rate }, round) => rate / (of(other)[round]?.rate ?? Number.NaN)))
      return [
        ...(Number.isNaN(processor) ? [] : [figure("server_processor_time", processor, "µs/request")]),
        figure("rate", median(of(name).map(({ rate }) => rate)), "requests/s"),
        figure("p50", median(of(name).map(({ p50 }) => p50)), "ms"),
        figure("p99", median(of(name).map(({ p99 }) => p99)), "ms"),
        figure("ratio_to_bare", ratioTo("bare"), ""),
        figure("ratio_to_bare_with_rate_limit", ratioTo("bare with rate limit"), "")
      ]
    })
  })
}
