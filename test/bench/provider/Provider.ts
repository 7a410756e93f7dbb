import { randomUUID } from "node:crypto"
import { performance } from "node:perf_hooks"
import { Console, Effect, Schema } from "effect"
import Stripe from "stripe"
import { Agent, request } from "undici"
import { temporaryDirectory } from "../../platform/storage/fixtures/temporaryDirectory.ts"
import { BenchFailed, firstLine, type Local, localOf, startBuilt, startScript } from "../api/Processes.ts"
import { type Bench, figuresOf, inRounds, percentile } from "../Bench.ts"

/**
 * What the service adds to a call to the provider: `GET P/products/{id}` beside the bare `stripe` package, both asking
 * the same emulator in the same run, in turns. Service, emulator and caller are a process each.
 */

const secretKey = "sk_test_benchplatformkey"
const webhookSecret = "whsec_bench"
const callsPerRound = 1200
const rounds = 5
const concurrencies = [1, 8]

const Account = Schema.Struct({ id: Schema.String })

const startEmulator = Effect.gen(function* () {
  const url = yield* Effect.flatMap(
    startScript(new URL("../../../src/emulator/main.ts", import.meta.url), {
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
  const DATA_DIR = yield* temporaryDirectory
  yield* startBuilt("api", {
    DATA_DIR,
    PROVIDER_SANDBOX_SECRET_KEY: secretKey,
    PROVIDER_SANDBOX_WEBHOOK_SECRETS: webhookSecret,
    PROVIDER_API_URL: emulator.url,
    LOCAL_ACCOUNT_ID: emulator.account
  })
  return yield* localOf(DATA_DIR)
})

/** The two ways to read one product. */
const makeCalls = Effect.fnUntraced(function* (
  local: Local,
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
      return { p50: percentile(durations, 0.5), p99: percentile(durations, 0.99), rate: durations.length / seconds }
    },
    catch: (cause) => (cause instanceof BenchFailed ? cause : new BenchFailed({ message: String(cause) }))
  })

export const providerBench: Bench = {
  name: "provider",
  about: "a read through the service, against the bare stripe package",
  run: Effect.gen(function* () {
    yield* Console.error("Starting the emulator and the service…")
    const emulator = yield* startEmulator
    const calls = yield* makeCalls(yield* startService(emulator), emulator)
    return yield* Effect.map(
      Effect.forEach(concurrencies, (concurrency) =>
        Effect.gen(function* () {
          yield* Console.error(`${concurrency} at once`)
          const both = Effect.all({
            service: measure(calls.service, concurrency),
            bare: measure(calls.bare, concurrency)
          })
          yield* both
          const figure = figuresOf("provider", yield* inRounds(rounds, () => both))
          const name = (server: string) => `${server}, ${concurrency} at once`
          return [
            ...(["service", "bare"] as const).flatMap((server) => [
              figure(name(server), "p50_ms", "ms", (round) => round[server].p50),
              figure(name(server), "p99_ms", "ms", (round) => round[server].p99),
              figure(name(server), "rate", "requests/s", (round) => round[server].rate)
            ]),
            // Each round by itself: what else the machine does changes from one to the next
            figure(name("service"), "added_p50_ms", "ms", ({ bare, service }) => service.p50 - bare.p50),
            figure(name("service"), "added_p99_ms", "ms", ({ bare, service }) => service.p99 - bare.p99)
          ]
        })
      ),
      (figures) => figures.flat()
    )
  })
}
