import { randomUUID } from "node:crypto"
import { readFile } from "node:fs/promises"
import { join } from "node:path"
import { performance } from "node:perf_hooks"
import { Console, Effect, Schema } from "effect"
import Stripe from "stripe"
import { Agent, request } from "undici"
import {
  BenchFailed,
  builtService,
  directoryOfItsOwn,
  firstLine,
  serviceNodeArgs,
  startScript
} from "../api/Processes.ts"
import { type Bench, type Figure, median } from "../Bench.ts"

/**
 * What the service adds to a call to the provider: `GET P/products/{id}` beside the bare `stripe` package, both asking
 * the same emulator in the same run, in turns. Service, emulator and caller are a process each.
 */

const secretKey = "sk_test_benchplatformkey"
const webhookSecret = "whsec_bench"
const callsPerRound = 1200
const rounds = 5
const concurrencies = [1, 8]

const LocalFile = Schema.parseJson(
  Schema.Struct({ baseUrl: Schema.String, organizationId: Schema.String, apiKey: Schema.String })
)

const Account = Schema.Struct({ id: Schema.String })

const startEmulator = Effect.gen(function* () {
  const url = yield* Effect.flatMap(
    startScript("../../../src/emulator/main.ts", {
      env: { EMULATOR_SECRET_KEY: secretKey, EMULATOR_WEBHOOK_SECRET: webhookSecret }
    }),
    firstLine
  )
  const made = yield* Effect.promise(async () =>
    (
      await request(`${url}/_emulator/accounts`, {
        method: "POST",
        headers: { authorization: `Bearer ${secretKey}` }
      })
    ).body.json()
  )
  const { id: account } = yield* Schema.decodeUnknown(Account)(made)
  return { url, account }
})

const startService = Effect.fnUntraced(function* (emulator: { readonly url: string; readonly account: string }) {
  const directory = yield* directoryOfItsOwn
  const started = yield* startScript(yield* builtService, {
    nodeArgs: serviceNodeArgs,
    env: {
      HOST: "127.0.0.1",
      PORT: "0",
      ROLES: "api",
      DATA_DIR: directory,
      RATE_LIMIT_PER_MINUTE: "100000000",
      PROVIDER_SANDBOX_SECRET_KEY: secretKey,
      PROVIDER_SANDBOX_WEBHOOK_SECRETS: webhookSecret,
      PROVIDER_API_URL: emulator.url,
      LOCAL_ACCOUNT_ID: emulator.account
    }
  })
  yield* firstLine(started)
  started.child.stdout?.resume()
  return yield* Effect.flatMap(
    Effect.promise(() => readFile(join(directory, "local.json"), "utf8")),
    Schema.decode(LocalFile)
  )
})

/** The two ways to read one product. */
const makeCalls = Effect.fnUntraced(function* (
  local: typeof LocalFile.Type,
  emulator: { readonly url: string; readonly account: string }
) {
  const { hostname, port } = new URL(emulator.url)
  const stripe = new Stripe(secretKey, {
    host: hostname,
    port,
    protocol: "http",
    telemetry: false,
    maxNetworkRetries: 0
  })
  const scope = { stripeAccount: emulator.account }
  const product = yield* Effect.promise(() =>
    stripe.products.create({ name: "Coffee" }, { ...scope, idempotencyKey: randomUUID() })
  )
  const dispatcher = yield* Effect.acquireRelease(
    Effect.sync(() => new Agent({ connections: 64 })),
    (agent) => Effect.promise(() => agent.close())
  )
  const url = `${local.baseUrl}/v2/organizations/${local.organizationId}/provider/products/${product.id}`
  return {
    service: async () => {
      const { body, statusCode } = await request(url, { dispatcher, headers: { "x-api-key": local.apiKey } })
      await body.dump()
      if (statusCode !== 200) throw new BenchFailed({ message: `The service answers ${statusCode}` })
    },
    bare: async () => {
      await stripe.products.retrieve(product.id, { expand: ["default_price"] }, scope)
    }
  }
})

/** So many calls, so many of them at once: milliseconds at p50 and p99, calls per second. */
const measure = (call: () => Promise<void>, concurrency: number) =>
  Effect.tryPromise({
    try: async () => {
      const durations: Array<number> = []
      let left = callsPerRound
      const caller = async () => {
        while (left > 0) {
          left -= 1
          const before = performance.now()
          await call()
          durations.push(performance.now() - before)
        }
      }
      const before = performance.now()
      await Promise.all(Array.from({ length: concurrency }, caller))
      const seconds = (performance.now() - before) / 1000
      const sorted = durations.toSorted((a, b) => a - b)
      const at = (share: number) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN
      return { p50: at(0.5), p99: at(0.99), rate: sorted.length / seconds }
    },
    catch: (cause) => (cause instanceof BenchFailed ? cause : new BenchFailed({ message: String(cause) }))
  })

/** `npm run bench -- provider`. */
export const providerBench: Bench = {
  name: "provider",
  about: "a read through the service, against the bare stripe package",
  run: Effect.gen(function* () {
    yield* Console.error("Starting the emulator and the service…")
    const emulator = yield* startEmulator
    const calls = yield* makeCalls(yield* startService(emulator), emulator)
    const figures: Array<Figure> = []
    for (const concurrency of concurrencies) {
      yield* Console.error(`${concurrency} at once`)
      yield* measure(calls.service, concurrency)
      yield* measure(calls.bare, concurrency)
      const ours: Array<Effect.Effect.Success<ReturnType<typeof measure>>> = []
      const theirs: typeof ours = []
      for (let round = 0; round < rounds; round += 1) {
        ours.push(yield* measure(calls.service, concurrency))
        theirs.push(yield* measure(calls.bare, concurrency))
      }
      const middle = (of: typeof ours, metric: "p50" | "p99" | "rate") => median(of.map((one) => one[metric]))
      // Each round by itself: what else the machine does changes from one to the next
      const added = (metric: "p50" | "p99") =>
        median(ours.map((one, round) => one[metric] - (theirs[round]?.[metric] ?? Number.NaN)))
      const of = (name: string, metric: string, value: number, unit: string): Figure => ({
        bench: "provider",
        case: `${name}, ${concurrency} at once`,
        metric,
        value,
        unit
      })
      for (const [name, measured] of [
        ["service", ours],
        ["bare", theirs]
      ] as const) {
        figures.push(of(name, "p50_ms", middle(measured, "p50"), "ms"))
        figures.push(of(name, "p99_ms", middle(measured, "p99"), "ms"))
        figures.push(of(name, "rate", middle(measured, "rate"), "requests/s"))
      }
      figures.push(of("service", "added_p50_ms", added("p50"), "ms"))
      figures.push(of("service", "added_p99_ms", added("p99"), "ms"))
    }
    return figures
  })
}
