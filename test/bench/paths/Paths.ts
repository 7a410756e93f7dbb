import { createHmac, randomUUID } from "node:crypto"
import { createServer } from "node:http"
import { type Profiler, Session } from "node:inspector/promises"
import { setTimeout as sleep } from "node:timers/promises"
import { Console, Effect, Layer, Option, Redacted, Schema } from "effect"
import { request } from "undici"
import { EmbeddedDatabase, embeddedClientLayer, LocalProvider, TestService } from "../../../src/app/testing/index.ts"
import { connectionTo } from "../../harness/Connection.ts"
import { listening } from "../../harness/Listening.ts"
import { BenchFailed } from "../api/Processes.ts"
import type { Bench, Figure } from "../Bench.ts"
import { notificationOf } from "../inbound/Notification.ts"

/**
 * How much of the service's source one request enters, by V8's coverage of a running service: the files, and the
 * functions in them, that were called each time, without those that are called while nothing is asked.
 */

const Made = Schema.Struct({ id: Schema.String })

const rounds = 5
const idleMillis = 3000

/** Named by file and place, as `inbound/Inbound.ts 2513`. The emulator stands for the provider. */
const enteredIn = ({ result }: Profiler.TakePreciseCoverageReturnType): ReadonlySet<string> =>
  new Set(
    result.flatMap(({ functions, url }) => {
      const [, path = ""] = /\/src\/(.+)$/.exec(url) ?? []
      if (!url.startsWith("file:") || /^$|node_modules|^emulator\//.test(path)) return []
      return functions.flatMap(({ ranges: [range] }) => (range?.count ? [`${path} ${range.startOffset}`] : []))
    })
  )

const coverage = Effect.acquireRelease(
  Effect.promise(async () => {
    const session = new Session()
    session.connect()
    await session.post("Profiler.enable")
    await session.post("Profiler.startPreciseCoverage", { callCount: true, detailed: false })
    return { take: async () => enteredIn(await session.post("Profiler.takePreciseCoverage")), session }
  }),
  ({ session }) => Effect.sync(() => session.disconnect())
)

/** The requests, each of which ends when what it causes has ended. */
const startPaths = Effect.gen(function* () {
  const { accountId, apiKey, baseUrl, organizationId } = yield* TestService
  const { sandbox } = (yield* LocalProvider).options
  const [secret] = Option.getOrThrow(sandbox).webhookSecrets
  const database = yield* connectionTo((yield* EmbeddedDatabase).url)
  const ask = async (method: string, path: string, body?: unknown, headers: Readonly<Record<string, string>> = {}) => {
    const { body: answer, statusCode } = await request(`${baseUrl}${path}`, {
      method,
      headers: { "x-api-key": Redacted.value(apiKey), "content-type": "application/json", ...headers },
      ...(body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) })
    })
    const text = await answer.text()
    if (statusCode >= 300) throw new BenchFailed({ message: `${path} was answered ${statusCode}: ${text}` })
    return text
  }
  const organization = `/v2/organizations/${organizationId}`
  const write = (path: string, body: unknown) =>
    ask("POST", `${organization}${path}`, body, { "idempotency-key": randomUUID() })
  const url = `http://127.0.0.1:${yield* listening(createServer((_, response) => response.writeHead(204).end()))}/hook`
  const make = (path: string, body: unknown) =>
    Effect.promise(async () => Schema.decodeUnknownSync(Made)(JSON.parse(await write(path, body))))
  yield* make("/integrations/endpoints", { name: "Shop", url, events: ["payment.succeeded"] })
  const product = yield* make("/provider/products", { name: "Coffee" })
  const price = yield* make("/provider/prices", { product: product.id, currency: "brl", unit_amount: 1500 })
  const delivered = `
    SELECT 1 FROM payments.deliveries d JOIN payments.events e ON e.id = d.event_id
    WHERE e.provider_event_id = $1 AND d.state = 'delivered'`
  const paths: Readonly<Record<string, () => Promise<unknown>>> = {
    notification: async () => {
      const id = `evt_${randomUUID().replaceAll("-", "")}`
      const body = notificationOf(accountId, id)
      const time = Math.floor(Date.now() / 1000)
      const signature = createHmac("sha256", Redacted.value(secret)).update(`${time}.${body}`).digest("hex")
      await ask("POST", "/webhooks/provider", body, { "stripe-signature": `t=${time},v1=${signature}` })
      while ((await database.query(delivered, [id])).rowCount === 0) await sleep(5)
    },
    checkout: () =>
      write("/provider/checkout/sessions", { mode: "payment", line_items: [{ price: price.id, quantity: 1 }] }),
    "account read": () => ask("GET", `${organization}/provider/account`)
  }
  return paths
})

/** `npm run bench -- paths`. With `BENCH_LIST=1`, names the files. */
export const pathsBench: Bench = {
  name: "paths",
  about: "how many files and functions of the service one notification, one checkout and one read enter",
  run: Effect.gen(function* () {
    const paths = yield* startPaths
    const { take } = yield* coverage
    // The first of each fills caches
    for (const ask of Object.values(paths)) yield* Effect.promise(ask)
    yield* Effect.promise(take)
    yield* Effect.sleep(idleMillis)
    const idle = yield* Effect.promise(take)
    const measure = async (ask: () => Promise<unknown>) => {
      const entered: Array<ReadonlySet<string>> = []
      for (let round = 0; round < rounds; round += 1) {
        await take()
        await ask()
        entered.push(await take())
      }
      return [...(entered[0] ?? [])].filter((one) => !idle.has(one) && entered.every((round) => round.has(one)))
    }
    return yield* Effect.forEach(Object.entries(paths), ([name, ask]) =>
      Effect.gen(function* () {
        const entered = yield* Effect.promise(() => measure(ask))
        const files = new Set(entered.map((one) => one.split(" ")[0]))
        if (process.env["BENCH_LIST"] === "1") yield* Console.error(name, [...files].toSorted())
        const figure = (metric: string, value: number): Figure => ({
          bench: "paths",
          case: name,
          metric,
          value,
          unit: ""
        })
        return [figure("files", files.size), figure("functions", entered.length)]
      })
    ).pipe(Effect.map((figures) => figures.flat()))
  }).pipe(
    Effect.provide(
      TestService.layerOnDatabase().pipe(
        Layer.provideMerge(embeddedClientLayer),
        Layer.provideMerge(EmbeddedDatabase.layer)
      )
    )
  )
}
