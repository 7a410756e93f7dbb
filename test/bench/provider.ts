import { type ChildProcess, spawn } from "node:child_process"
import { randomUUID } from "node:crypto"
import { once } from "node:events"
import { mkdtemp, readFile, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { performance } from "node:perf_hooks"
import { fileURLToPath } from "node:url"
import Stripe from "stripe"
import { Agent, request } from "undici"

/**
 * What the service adds to a call to the provider: `GET P/products/{id}` beside the bare `stripe` package, both asking
 * the same emulator in the same run, in turns. Service, emulator and caller are a process each.
 *
 * Writes one line of JSON per concurrency: milliseconds at p50 and p99 and requests per second of both, and what is
 * added. `node --import tsx test/bench/provider.ts`
 */

const secretKey = "sk_test_benchplatformkey"
const webhookSecret = "whsec_bench"
const requestsPerRound = 600
const rounds = 5
const concurrencies = [1, 8]

const source = (path: string) => fileURLToPath(new URL(`../../src/${path}`, import.meta.url))

const start = (script: string, variables: Readonly<Record<string, string>>): ChildProcess =>
  spawn(process.execPath, ["--import", "tsx", source(script)], {
    env: { PATH: process.env["PATH"] ?? "", ...variables },
    stdio: ["ignore", "pipe", "inherit"]
  })

const firstLine = async ({ stdout }: ChildProcess): Promise<string> => {
  let text = ""
  for await (const chunk of stdout ?? []) {
    text += String(chunk)
    if (text.includes("\n")) break
  }
  return text.trim()
}

const stop = async (child: ChildProcess): Promise<void> => {
  if (child.exitCode === null) {
    const ended = once(child, "exit")
    child.kill("SIGTERM")
    await ended
  }
}

interface Local {
  readonly baseUrl: string
  readonly organizationId: string
  readonly apiKey: string
}

/** The service serves once it has written what a caller needs. */
const served = async (directory: string, service: ChildProcess): Promise<Local> => {
  for (;;) {
    const text = await readFile(join(directory, "local.json"), "utf8").catch(() => undefined)
    if (text !== undefined) return JSON.parse(text)
    if (service.exitCode !== null) throw new Error("The service did not start")
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}

interface Measured {
  readonly durations: ReadonlyArray<number>
  readonly seconds: number
}

/** So many calls, so many of them at once. */
const measure = async (call: () => Promise<void>, concurrency: number): Promise<Measured> => {
  const durations: Array<number> = []
  let left = requestsPerRound
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
  return { durations, seconds: (performance.now() - before) / 1000 }
}

const summary = (measured: ReadonlyArray<Measured>) => {
  const sorted = measured.flatMap(({ durations }) => durations).toSorted((a, b) => a - b)
  const at = (share: number) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN
  const seconds = measured.reduce((sum, one) => sum + one.seconds, 0)
  return { p50: at(0.5), p99: at(0.99), perSecond: sorted.length / seconds }
}

const rounded = (values: Readonly<Record<string, number>>) =>
  Object.fromEntries(Object.entries(values).map(([name, value]) => [name, Math.round(value * 100) / 100]))

const compare = async (local: Local, emulatorUrl: string, accountId: string): Promise<void> => {
  const url = new URL(emulatorUrl)
  const stripe = new Stripe(secretKey, {
    host: url.hostname,
    port: Number(url.port),
    protocol: "http",
    telemetry: false,
    maxNetworkRetries: 0
  })
  const scope = { stripeAccount: accountId }
  const product = await stripe.products.create({ name: "Coffee" }, { ...scope, idempotencyKey: randomUUID() })
  const path = `/v2/organizations/${local.organizationId}/provider/products/${product.id}`
  const dispatcher = new Agent({ connections: 64 })
  const service = async () => {
    const { body, statusCode } = await request(`${local.baseUrl}${path}`, {
      dispatcher,
      headers: { "x-api-key": local.apiKey }
    })
    await body.dump()
    if (statusCode !== 200) throw new Error(`The service answers ${statusCode}`)
  }
  const bare = async () => {
    await stripe.products.retrieve(product.id, { expand: ["default_price"] }, scope)
  }
  for (const concurrency of concurrencies) {
    await measure(service, concurrency)
    await measure(bare, concurrency)
    const measured: { readonly service: Array<Measured>; readonly bare: Array<Measured> } = { service: [], bare: [] }
    for (let round = 0; round < rounds; round += 1) {
      measured.service.push(await measure(service, concurrency))
      measured.bare.push(await measure(bare, concurrency))
    }
    const [ours, theirs] = [summary(measured.service), summary(measured.bare)]
    const added = rounded({ p50: ours.p50 - theirs.p50, p99: ours.p99 - theirs.p99 })
    process.stdout.write(`${JSON.stringify({ concurrency, service: rounded(ours), bare: rounded(theirs), added })}\n`)
  }
  await dispatcher.close()
}

const directory = await mkdtemp(join(tmpdir(), "connected-payments-bench-"))
const emulator = start("emulator/main.ts", {
  EMULATOR_SECRET_KEY: secretKey,
  EMULATOR_WEBHOOK_SECRET: webhookSecret
})
try {
  const emulatorUrl = await firstLine(emulator)
  const made = await request(`${emulatorUrl}/_emulator/accounts`, {
    method: "POST",
    headers: { authorization: `Bearer ${secretKey}` }
  })
  const { id } = Object(await made.body.json())
  const service = start("main.ts", {
    PORT: "0",
    DATA_DIR: directory,
    RATE_LIMIT_PER_MINUTE: "100000000",
    PROVIDER_SANDBOX_SECRET_KEY: secretKey,
    PROVIDER_SANDBOX_WEBHOOK_SECRETS: webhookSecret,
    PROVIDER_API_URL: emulatorUrl,
    LOCAL_ACCOUNT_ID: String(id)
  })
  service.stdout?.resume()
  try {
    await compare(await served(directory, service), emulatorUrl, String(id))
  } finally {
    await stop(service)
  }
} finally {
  await stop(emulator)
  await rm(directory, { recursive: true, force: true })
}
