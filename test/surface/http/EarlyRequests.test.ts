import { BlockList, connect } from "node:net"
import { expect, it } from "@effect/vitest"
import { Duration, Effect } from "effect"
import { listen, stoppingLayer } from "../../../src/server/Server.ts"
import { eventuallyTrue } from "../../harness/Eventually.ts"

const options = {
  host: "127.0.0.1",
  port: 0,
  connectionLimit: 8,
  requestTimeout: Duration.seconds(10),
  answerTimeout: Duration.seconds(10),
  keepAliveTimeout: Duration.seconds(5),
  shutdownDelay: Duration.zero,
  shutdownTimeout: Duration.seconds(1),
  trustedProxies: new BlockList()
}

/** Opens a connection, sends this text at once, and collects what comes back. */
const send = (port: number, text: string) =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const got = { text: "", closed: false }
      const socket = connect(port, "127.0.0.1", () => socket.write(text))
      socket.on("data", (chunk) => {
        got.text += chunk.toString("latin1")
      })
      socket.on("error", () => {})
      socket.on("close", () => {
        got.closed = true
      })
      return { got, socket }
    }),
    ({ socket }) => Effect.sync(() => socket.destroy())
  )

const request = "GET /early HTTP/1.1\r\nhost: a\r\n\r\n"
const answersIn = (text: string): number => text.split("HTTP/1.1 200").length - 1

it.scopedLive(
  "one request of each connection that comes before a starting process serves is answered once it does",
  () =>
    Effect.gen(function* () {
      const server = yield* listen(options)
      if (server.address._tag !== "TcpAddress") return yield* Effect.dieMessage("It does not listen on a port")
      const { port } = server.address
      const first = yield* send(port, request)
      yield* eventuallyTrue("the connection", () => server.connections() === 1)
      // One that sends more is closed, and costs the others nothing
      const greedy = yield* send(port, request.repeat(20))
      yield* eventuallyTrue("its end", () => greedy.got.closed)
      const second = yield* send(port, request)
      yield* eventuallyTrue("the second connection", () => server.connections() === 2)
      expect(first.got.text).toBe("")
      const seen: Array<string> = []
      yield* server.serve((message, response) => {
        seen.push(message.url ?? "")
        response.writeHead(200, { "content-length": "2" }).end("ok")
      })
      yield* eventuallyTrue("the answers", () => [first, second].every(({ got }) => answersIn(got.text) === 1))
      const later = yield* send(port, request)
      yield* eventuallyTrue("the answer to a later one", () => answersIn(later.got.text) === 1)
      expect(seen).toEqual(["/early", "/early", "/early"])
    }).pipe(Effect.provide(stoppingLayer))
)
