import { once } from "node:events"
import { connect } from "node:net"
import { Effect, Redacted } from "effect"
import { cuttingProxy } from "../harness/CuttingProxy.ts"
import { eventuallyIs } from "../harness/Eventually.ts"
import { program } from "../harness/Program.ts"
import { createMigratedDatabase } from "../harness/TestDatabase.ts"
import { describe, expect, it } from "../harness/Tests.ts"
import { emptyDataDirectory, startService, stop } from "./ServiceProcess.ts"

interface Health {
  readonly status: number
  readonly body: Record<string, unknown>
}

const ask = (baseUrl: string, path: string, init: RequestInit = {}): Effect.Effect<Health> =>
  Effect.promise(async () => {
    const response = await fetch(`${baseUrl}${path}`, init)
    return { status: response.status, body: (await response.json()) as Record<string, unknown> }
  })

const until = (baseUrl: string, path: string, expected: (health: Health) => boolean) =>
  eventuallyIs(path, ask(baseUrl, path), (health) => expected(health))

/**
 * A driver that, from SIGUSR2 on, never answers a claim, not even when its time limit is over; two minutes pass at once.
 */
const swallowingClaims = `data:text/javascript,${encodeURIComponent(`
  import { createRequire } from "node:module"
  import { performance } from "node:perf_hooks"
  const { Client } = createRequire(${JSON.stringify(import.meta.url)})("pg")
  let swallows = false
  process.on("SIGUSR2", () => { swallows = true })
  const { query } = Client.prototype
  const now = performance.now.bind(performance)
  Client.prototype.query = function (...args) {
    const text = String(args[0]?.text ?? args[0])
    if (!swallows || !text.includes("INSERT INTO payments.unconfirmed_claims")) return query.apply(this, args)
    performance.now = () => now() + 120_000
  }`)}`

describe("a process that is only a worker", () => {
  it.scopedLive("fails its check if its claims no longer turn, and answers none if it stands still", function* () {
    const { url } = yield* createMigratedDatabase
    const worker = yield* startService(
      yield* emptyDataDirectory,
      { ROLES: "worker", DATABASE_URL: Redacted.value(url) },
      // The sources: the driver is bundled otherwise
      [process.execPath, "--import", swallowingClaims, "--import", "tsx", "src/app/main.ts"]
    )
    const { baseUrl } = worker.local
    yield* until(baseUrl, "/health/ready", ({ status }) => status === 200)
    worker.child.kill("SIGUSR2")
    const stuck = yield* until(baseUrl, "/health/live", ({ status }) => status === 503)
    expect(stuck.body).toEqual({ status: "stuck", worker: "makes no progress: it claims" })
    expect(yield* ask(baseUrl, "/health/ready")).toEqual({
      status: 503,
      body: { status: "not_ready", reason: "the worker makes no progress: it claims" }
    })

    worker.child.kill("SIGSTOP")
    const silence = yield* Effect.promise(() =>
      fetch(`${baseUrl}/health/live`, { signal: AbortSignal.timeout(1500) }).then(
        () => "an answer",
        (error: unknown) => (error instanceof Error ? error.name : "")
      )
    )
    expect(silence).toBe("TimeoutError")
  })

  it.scopedLive("serves its health alone: ready while it claims, alive but not ready without a database", function* () {
    const { url } = yield* createMigratedDatabase
    const line = yield* cuttingProxy(Redacted.value(url))
    const through = new URL(Redacted.value(url))
    through.port = new URL(line.url).port
    const worker = yield* startService(
      yield* emptyDataDirectory,
      { ROLES: "worker", DATABASE_URL: through.href, SHUTDOWN_TIMEOUT: "10 seconds" },
      [process.execPath, ...program("src/app/cli/main.ts"), "serve"]
    )
    const { baseUrl } = worker.local
    const claiming = yield* until(baseUrl, "/health/ready", ({ status }) => status === 200)
    expect(claiming.body).toEqual({ status: "ready", worker: expect.any(String) })
    // It says where that is, once, and offers no API
    const { stderr, stdout } = worker.output
    expect(stderr.split("\n").filter((line) => line.includes("The worker's health"))).toHaveLength(1)
    expect(stdout).toContain(`${baseUrl}/health/ready`)
    expect(stdout).not.toMatch(/curl|API key|console/)
    expect(yield* ask(baseUrl, "/health/live?verbose=1")).toEqual({
      status: 200,
      body: { status: "live", worker: expect.stringMatching(/^(claims|waits for deliveries that come due)/) }
    })

    // No other path, no other method, nobody's body
    for (const path of ["/", "/v2/organizations", "/health", "/health/live/", "/webhooks/provider", "/metrics"]) {
      expect([path, (yield* ask(baseUrl, path)).status]).toEqual([path, 404])
    }
    const posted = yield* ask(baseUrl, "/health/live", { method: "POST", body: "x".repeat(100_000) })
    expect(posted.status).toBe(405)

    // Who opens connections and says nothing keeps no check out
    const silent = yield* Effect.acquireRelease(
      Effect.promise(async () => {
        const sockets = Array.from({ length: 200 }, () => connect(Number(new URL(baseUrl).port), "127.0.0.1"))
        for (const socket of sockets) socket.on("error", () => {})
        await Promise.all(sockets.map((socket) => once(socket, "connect")))
        return sockets
      }),
      (sockets) => Effect.sync(() => sockets.forEach((socket) => void socket.destroy()))
    )
    expect((yield* ask(baseUrl, "/health/live")).status).toBe(200)
    expect(silent.length).toBe(200)

    line.cut()
    const away = yield* until(baseUrl, "/health/ready", ({ status }) => status === 503)
    expect(away.body).toEqual({ status: "not_ready", reason: "the database does not answer" })
    const alive = yield* until(baseUrl, "/health/live", ({ body }) => /does not answer/.test(String(body["worker"])))
    expect(alive).toEqual({
      status: 200,
      body: { status: "live", worker: "can't claim: the database does not answer" }
    })
    line.mend()
    yield* until(baseUrl, "/health/ready", ({ status }) => status === 200)
    yield* until(baseUrl, "/health/live", ({ body }) => /^(claims|waits)/.test(String(body["worker"])))

    expect((yield* stop(worker, "SIGTERM")).code).toBe(0)
  })
})
