import { writeFileSync } from "node:fs"
import { Agent, request } from "node:http"
import { connect } from "node:net"
import { Effect } from "effect"
import { afterAll } from "vitest"
import { type Consumer, post, tcpConsumer, transport } from "../engine/TransportServers.ts"
import { eventually } from "../harness/Eventually.ts"
import { freePort } from "../harness/FreePort.ts"
import { startInstalled } from "../harness/Installed.ts"
import { describe, expect, it } from "../harness/Tests.ts"
import { type Path, type RealServer, type Recorded, recorded, recordedIn, servers } from "./Servers.ts"

/** Why a server can't run on this machine; undefined if it can. */
const missing = ({ prepare }: RealServer): string | undefined => {
  try {
    prepare()
    return undefined
  } catch (error) {
    return String(error).split("\n").slice(0, 2).join(": ")
  }
}

const listening = (port: number) =>
  eventually(
    "it listens",
    Effect.option(
      Effect.async<void, Error>((resume) => {
        const socket = connect(port, "127.0.0.1")
        socket.on("error", (error) => resume(Effect.fail(error)))
        socket.on("connect", () => {
          socket.destroy()
          resume(Effect.void)
        })
      })
    ),
    30_000
  )

const started = (server: RealServer, behind: number) =>
  Effect.gen(function* () {
    const port = yield* freePort
    const [program, ...parameters] = server.command(port, behind)
    const written = yield* startInstalled(program, parameters)
    yield* listening(port).pipe(Effect.tapError(() => Effect.logError(written())))
    return port
  })

/** Passes on to a server, and keeps what the server sends. */
const recorder = (port: number) => {
  const sent: Array<Buffer> = []
  return Effect.map(
    tcpConsumer((socket) => {
      const server = connect(port, "127.0.0.1")
      server.on("data", (bytes) => sent.push(bytes)).on("error", () => socket.destroy())
      socket.on("close", () => server.destroy())
      socket.pipe(server).pipe(socket)
    }),
    (consumer) => ({ consumer, sent: () => Buffer.concat(sent).toString("latin1") })
  )
}

const urlOf = ({ port }: Consumer, path: Path) => `http://127.0.0.1:${port}${path}`

/** Whether Node's own client uses the connection again after this answer. */
const reusedByNode = (port: number, path: Path) =>
  Effect.gen(function* () {
    const { consumer } = yield* recorder(port)
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    const ask = Effect.async<void, Error>((resume) => {
      request(urlOf(consumer, path), { method: "POST", agent }, (response) => {
        response.resume().on("end", () => resume(Effect.void))
      })
        .on("error", (error) => resume(Effect.fail(error)))
        .end("{}")
    })
    yield* Effect.zipRight(ask, ask)
    agent.destroy()
    return consumer.sockets.length === 1
  })

/** Makes an attempt twice, and then one to another path, which would find what the first two left. */
const attempted = (port: number, path: Path) =>
  Effect.gen(function* () {
    const { consumer, sent } = yield* recorder(port)
    const first = yield* post(urlOf(consumer, path))
    const answer = sent()
    const second = yield* post(urlOf(consumer, path))
    const isReused = consumer.sockets.length === 1
    const third = yield* post(urlOf(consumer, "/200"))
    return { statuses: [first, second, third].map(({ httpStatus }) => httpStatus), isReused, answer }
  }).pipe(Effect.provide(transport()))

/** Without what differs from run to run. */
const lasting = (answer: string): string =>
  answer
    .replace(/^(date): .*(?=\r$)/gim, "$1: Sun, 22 Nov 2026 22:00:00 GMT")
    .replaceAll(/127\.0\.0\.1:\d+/g, "127.0.0.1")

const found: Record<string, Recorded> = { ...recorded }

afterAll(() => writeFileSync(recordedIn, `${JSON.stringify(found, null, 2)}\n`))

describe("what a real server answers is read as it was meant", () => {
  for (const server of servers) {
    const why = missing(server)
    if (why !== undefined) it.skip(`${server.name}: not installed (${why})`)
    else {
      it.scopedLive(server.name, function* () {
        const port = yield* started(server, yield* started(servers[0], 0))
        const answers: Recorded = { reused: {}, closed: {} }
        for (const path of server.paths) {
          const status = path.startsWith("/204") ? 204 : 200
          const { answer, isReused, statuses } = yield* attempted(port, path)
          expect(statuses, path).toEqual([status, status, 200])
          // An early hint makes an answer unusual, and unusual ones are the last on their connections
          expect(isReused, path).toBe(path !== "/103" && (yield* reusedByNode(port, path)))
          answers[isReused ? "reused" : "closed"][path] = lasting(answer)
        }
        found[server.name] = answers
      })
    }
  }
})
