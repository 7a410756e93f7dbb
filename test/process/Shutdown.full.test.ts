import { readFileSync, writeFileSync } from "node:fs"
import { connect } from "node:net"
import { join } from "node:path"
import { Effect, Option, type Scope } from "effect"
import { makeConsumer } from "../harness/Consumer.ts"
import { eventually, eventuallyTrue } from "../harness/Eventually.ts"
import { program } from "../harness/Program.ts"
import { describe, expect, it } from "../harness/Tests.ts"
import { temporaryDirectory } from "../platform/storage/fixtures/temporaryDirectory.ts"
import { integrator, payOn } from "./Integrator.ts"
import {
  databasePid,
  dataDirectory,
  groupIsAlive,
  isAlive,
  keptConnection,
  type LocalFile,
  startService,
  stop
} from "./ServiceProcess.ts"

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
  const fromSources = "--import tsx src/app/main.ts"
  expect(scripts.start).toContain(fromSources)
  const build = program("src/app/main.ts").map((word) => `'${word}'`)
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
    it.scopedLive(`ends on ${what} without waiting for what hangs, and leaves nothing behind`, function* () {
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
      // What was sent before these are answered has been read: a connection without a request is just closed
      for (let n = 0; n < 3; n++) yield* Effect.promise(() => fetch(`${service.local.baseUrl}/health/live`))
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
      // It was written before the process ended, and may still be on its way to this one
      yield* eventuallyTrue("the refusal of what hangs", () => hanging.received() !== "")
      expect(hanging.received()).toMatch(/^HTTP\/1\.1 503 .*"code":"service_unavailable"/s)
    })
  }
})
