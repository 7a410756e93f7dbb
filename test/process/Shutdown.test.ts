import { Agent, request } from "node:http"
import { connect } from "node:net"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Option } from "effect"
import { makeConsumer } from "../harness/Consumer.ts"
import { eventually, eventuallyTrue } from "../harness/Eventually.ts"
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

/** A client that never sends the rest of its request. */
const hangingRequest = ({ apiKey, baseUrl, organizationId }: LocalFile) =>
  Effect.acquireRelease(
    Effect.async<{ readonly destroy: () => void }>((resume) => {
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
          () => resume(Effect.succeed(socket))
        )
      })
      socket.on("error", () => {})
    }),
    (socket) => Effect.sync(() => socket.destroy())
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

const npmStart = ["npm", "start", "--silent"] as const
const cases: ReadonlyArray<{
  readonly what: string
  readonly signal: NodeJS.Signals
  readonly to: "process" | "group"
  readonly command?: typeof npmStart
  readonly isRepeated?: boolean
}> = [
  { what: "SIGTERM to the process", signal: "SIGTERM", to: "process" },
  { what: "SIGINT, twice, to the terminal's group", signal: "SIGINT", to: "group", isRepeated: true },
  { what: "SIGINT to npm start alone", signal: "SIGINT", to: "process", command: npmStart },
  { what: "SIGINT to npm start's group", signal: "SIGINT", to: "group", command: npmStart }
]

describe("a busy service", () => {
  for (const { command, isRepeated, signal, to, what } of cases) {
    it.scopedLive(
      `ends within 10 seconds on ${what}, and leaves nothing behind`,
      () =>
        Effect.gen(function* () {
          const directory = yield* dataDirectory
          const consumer = yield* makeConsumer
          consumer.hold()
          const settings = {
            DELIVERY_TIMEOUT: "60 seconds",
            ...(signal === "SIGTERM" ? {} : { SHUTDOWN_TIMEOUT: "1 second" })
          }
          const service = yield* startService(directory, settings, command)
          const backend = integrator(service.local)
          yield* backend.subscribe(consumer.url)
          yield* payOn((yield* backend.openCheckout).url)
          yield* eventuallyTrue("an attempt in flight", () => consumer.received.length === 1)
          yield* keptConnection(service.local)
          yield* hangingRequest(service.local)
          const database = yield* databasePid(directory)
          expect(yield* isAlive(database)).toBe(true)

          if (isRepeated === true) {
            // Two at once would be one: the second comes when the shutdown has begun
            process.kill(-service.pid, signal)
            yield* eventually("the end of listening", refusesConnections(service.local))
          }
          const { millis } = yield* stop(service, signal, to)
          expect(millis).toBeLessThan(10_000)
          expect(yield* isAlive(database)).toBe(false)
          expect(yield* isAlive(service.pid)).toBe(false)
          // The others of its group (npm, its shell, the loader's helper) end with it
          yield* eventuallyTrue("the end of its group", () => !groupIsAlive(service), 5000)
          expect(service.output.stderr).not.toContain("defect")
        }),
      60_000
    )
  }
})
