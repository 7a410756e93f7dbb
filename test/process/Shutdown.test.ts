import { readFileSync, writeFileSync } from "node:fs"
import { Agent, request } from "node:http"
import { connect } from "node:net"
import { join } from "node:path"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Option, type Scope } from "effect"
import { makeConsumer } from "../harness/Consumer.ts"
import { eventually, eventuallyTrue } from "../harness/Eventually.ts"
import { program } from "../harness/Program.ts"
import { temporaryDirectory } from "../storage/fixtures/temporaryDirectory.ts"
import { integrator, payOn } from "./Integrator.ts"
import {
  databasePid,
  dataDirectory,
  groupIsAlive,
  isAlive,
  type LocalFile,
  startService,
  stop
} from "./ServiceProcess.ts"

/** A client that keeps its connection after an answer. */
const keptConnection = ({ baseUrl }: LocalFile) =>
  Effect.acquireRelease(
    Effect.async<Agent>((resume) => {
      const agent = new Agent({ keepAlive: true, maxSockets: 1 })
      request(`${baseUrl}/health/live`, { agent }, (response) => {
        response.resume().on("end", () => resume(Effect.succeed(agent)))
      }).end()
    }),
    (agent) => Effect.sync(() => agent.destroy())
  )

/** What one request of a busy client came to. */
interface Outcome {
  readonly path: string
  readonly status?: number
  /** What the answer says of its connection. */
  readonly connection?: string | undefined
  /** Why there was no answer: the code, and whether the connection had served before. */
  readonly error?: string
  readonly isReused?: boolean
}

const askOnce = (agent: Agent, { apiKey, baseUrl }: LocalFile, path: string): Promise<Outcome> =>
  new Promise((resolve) => {
    const asked = request(`${baseUrl}${path}`, { agent, headers: { "x-api-key": apiKey } }, (response) => {
      const { connection } = response.headers
      response.resume().on("end", () => resolve({ path, status: response.statusCode ?? 0, connection }))
    })
    asked.on("error", (error: NodeJS.ErrnoException) =>
      resolve({ path, error: error.code ?? error.message, isReused: asked.reusedSocket })
    )
    asked.end()
  })

/** Clients that ask again as soon as they are answered, each on a connection that it keeps, until there is no answer. */
const busyClients = (local: LocalFile, count: number) =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const outcomes: Array<Outcome> = []
      const agents = Array.from({ length: count }, () => new Agent({ keepAlive: true, maxSockets: 1 }))
      const paths = [`/v2/organizations/${local.organizationId}/provider/products?limit=1`, "/health/ready"]
      const clients = agents.map(async (agent) => {
        let outcome: Outcome | undefined
        for (let asked = 0; outcome?.error === undefined; asked++) {
          outcome = await askOnce(agent, local, paths[asked % 2] ?? "")
          outcomes.push(outcome)
        }
      })
      return { outcomes, agents, done: Promise.all(clients) }
    }),
    ({ agents }) =>
      Effect.sync(() => {
        for (const agent of agents) agent.destroy()
      })
  )

/** A client that never sends the rest of its request. */
const hangingRequest = ({ apiKey, baseUrl, organizationId }: LocalFile) =>
  Effect.acquireRelease(
    Effect.async<{ readonly destroy: () => void; readonly received: () => string }>((resume) => {
      let received = ""
      const socket = connect(Number(new URL(baseUrl).port), "127.0.0.1", () => {
        socket.write(
          [
            `POST /v2/organizations/${organizationId}/provider/products HTTP/1.1`,
            "host: 127.0.0.1",
            `x-api-key: ${apiKey}`,
            "content-type: application/json",
            "idempotency-key: never-complete",
            "content-length: 1000",
            "",
            '{"name":'
          ].join("\r\n"),
          () => resume(Effect.succeed({ destroy: () => socket.destroy(), received: () => received }))
        )
      })
      socket.on("data", (chunk: Buffer) => {
        received += chunk.toString()
      })
      socket.on("error", () => {})
    }),
    ({ destroy }) => Effect.sync(destroy)
  )

const refusesConnections = ({ baseUrl }: LocalFile) =>
  Effect.async<Option.Option<true>>((resume) => {
    const socket = connect(Number(new URL(baseUrl).port), "127.0.0.1")
    const answer = (refused: boolean) => {
      socket.destroy()
      resume(Effect.succeed(refused ? Option.some(true) : Option.none()))
    }
    socket.once("connect", () => answer(false)).once("error", () => answer(true))
  })

type Command = readonly [string, ...ReadonlyArray<string>]

/** What the project declares as its start, from its sources. */
const npmStart: Command = ["npm", "start", "--silent"]

/** The same start, with the run's build in the place of the sources and their loader, which take seconds to load. */
const npmStartOfBuild = Effect.map(temporaryDirectory, (directory): Command => {
  const { scripts } = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8"))
  const fromSources = "--import tsx src/main.ts"
  expect(scripts.start).toContain(fromSources)
  const build = program("src/main.ts").map((word) => `'${word}'`)
  const start = scripts.start.replace(fromSources, build.join(" "))
  writeFileSync(join(directory, "package.json"), JSON.stringify({ private: true, scripts: { start } }))
  return ["npm", "start", "--silent", "--prefix", directory]
})

const cases: ReadonlyArray<{
  readonly what: string
  readonly signal: NodeJS.Signals
  readonly to: "process" | "group"
  readonly command?: Effect.Effect<Command, never, Scope.Scope>
  readonly isRepeated?: boolean
}> = [
  { what: "SIGTERM to the process", signal: "SIGTERM", to: "process" },
  { what: "SIGINT, twice, to the terminal's group", signal: "SIGINT", to: "group", isRepeated: true },
  { what: "SIGINT to npm start alone", signal: "SIGINT", to: "process", command: npmStartOfBuild },
  { what: "SIGINT to npm start's group", signal: "SIGINT", to: "group", command: Effect.succeed(npmStart) }
]

describe.concurrent("a busy service", () => {
  for (const { command, isRepeated, signal, to, what } of cases) {
    it.scopedLive(
      `ends on ${what} without waiting for what hangs, and leaves nothing behind`,
      () =>
        Effect.gen(function* () {
          const directory = yield* dataDirectory
          const consumer = yield* makeConsumer
          consumer.hold()
          const settings = {
            DELIVERY_TIMEOUT: "10 minutes",
            ...(signal === "SIGTERM" ? {} : { SHUTDOWN_TIMEOUT: "1 second" })
          }
          const service = yield* startService(directory, settings, command && (yield* command))
          const backend = integrator(service.local)
          yield* backend.subscribe(consumer.url)
          yield* payOn((yield* backend.openCheckout).url)
          yield* eventuallyTrue("an attempt in flight", () => consumer.received.length === 1)
          yield* keptConnection(service.local)
          const hanging = yield* hangingRequest(service.local)
          const database = yield* databasePid(directory)
          expect(yield* isAlive(database)).toBe(true)

          if (isRepeated === true) {
            // Two at once would be one: the second comes when the shutdown has begun
            process.kill(-service.pid, signal)
            yield* eventually("the end of listening", refusesConnections(service.local))
          }
          yield* stop(service, signal, to)
          expect(yield* isAlive(database)).toBe(false)
          expect(yield* isAlive(service.pid)).toBe(false)
          // The others of its group (npm, its shell, the loader's helper) end with it
          yield* eventuallyTrue("the end of its group", () => !groupIsAlive(service))
          expect(service.output.stderr).not.toContain("defect")
          expect(hanging.received()).toMatch(/^HTTP\/1\.1 503 .*"code":"service_unavailable"/s)
        }),
      240_000
    )
  }
})

describe("a service with clients that keep their connections", () => {
  it.scopedLive(
    "says that it is not ready, answers what they ask, closes without a reset, and does not wait for its time-out",
    () =>
      Effect.gen(function* () {
        const directory = yield* dataDirectory
        const service = yield* startService(directory, { SHUTDOWN_DELAY: "1 second", SHUTDOWN_TIMEOUT: "60 seconds" })
        yield* keptConnection(service.local)
        const { done, outcomes } = yield* busyClients(service.local, 3)
        yield* eventuallyTrue("busy clients", () => outcomes.length >= 12)
        expect(outcomes.every(({ status }) => status === 200)).toBe(true)

        const { code } = yield* stop(service, "SIGTERM")
        yield* Effect.promise(() => done)
        expect(code).toBe(0)
        // After their last answers they connect anew, which is refused; no request is lost on a kept connection
        const errors = outcomes.filter(({ error }) => error !== undefined)
        expect(errors).toEqual(errors.map(({ path }) => ({ path, error: "ECONNREFUSED", isReused: false })))
        const last = outcomes.filter(({ connection }) => connection === "close")
        expect(last.filter(({ path, status }) => path !== "/health/ready" && status !== 200)).toEqual([])
        // Whoever balances load is told while everything else is still served
        const readiness = outcomes.filter(({ path }) => path === "/health/ready").map(({ status }) => status)
        expect(readiness).toContain(503)
        expect(last.filter(({ path, status }) => path === "/health/ready" && status !== 503)).toEqual([])
        const steps = [...service.output.stderr.matchAll(/Shutdown: ([a-z ]+)/g)].map(([, step = ""]) => step)
        expect(steps.filter((step) => !step.includes("attempt"))).toEqual([
          "begun",
          "no longer ready",
          "accepts no more connections",
          "every request is answered",
          "done"
        ])
      }),
    240_000
  )
})
