import { Agent, request } from "node:http"
import { Effect } from "effect"
import { eventuallyTrue } from "../harness/Eventually.ts"
import { describe, expect, it } from "../harness/Tests.ts"
import { dataDirectory, keptConnection, type LocalFile, startService, stop } from "./ServiceProcess.ts"

interface Outcome {
  readonly path: string
  readonly status?: number
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

describe("a service with clients that keep their connections", () => {
  it.scopedLive(
    "says that it is not ready, answers what they ask, closes without a reset, and does not wait for its timeout",
    function* () {
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
    }
  )
})
