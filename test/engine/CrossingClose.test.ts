import type { Socket } from "node:net"
import { Effect } from "effect"
import { expect, layer } from "../harness/Tests.ts"
import { type Consumer, post, tcpConsumer, transport } from "./TransportServers.ts"

const postTo = ({ port }: Consumer, path = "/") => post(`http://127.0.0.1:${port}${path}`)

layer(transport())("an attempt whose kept connection closes", (it) => {
  const empty = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"

  /**
   * A consumer that does something else with the second request on a connection than answer it, and with those on its third
   * connection and later ones.
   */
  const closingAtSecond = (atSecond: (socket: Socket) => void, onLater: (socket: Socket) => void) =>
    Effect.gen(function* () {
      const requests: Array<string> = []
      let connections = 0
      const consumer = yield* tcpConsumer((socket) => {
        const isLater = ++connections > 2
        let served = 0
        socket.on("data", (bytes) => {
          requests.push(bytes.toString("latin1"))
          if (isLater) onLater(socket)
          else if (served++ === 0) socket.write(empty)
          else atSecond(socket)
        })
      })
      // Two connections are kept open
      yield* Effect.all([postTo(consumer), postTo(consumer)], { concurrency: 2 })
      expect(consumer.sockets).toHaveLength(2)
      return { consumer, requests }
    })

  const closes: ReadonlyArray<{ readonly how: string; readonly close: (socket: Socket) => void }> = [
    { how: "resets", close: (socket) => socket.resetAndDestroy() },
    { how: "ends", close: (socket) => socket.end() }
  ]

  it.scoped.each(closes)(
    "is sent once more on a new connection if the consumer $how the kept one, with nothing answered",
    function* ({ close }) {
      const { consumer, requests } = yield* closingAtSecond(close, (socket) => socket.write(empty))
      expect(yield* postTo(consumer, "/again")).toMatchObject({ httpStatus: 200, errorCode: null })
      expect(consumer.sockets).toHaveLength(3)
      const [, , crossed, repeated, ...more] = requests
      expect(crossed).toContain("POST /again ")
      expect(repeated).toBe(crossed)
      expect(more).toEqual([])
    }
  )

  it.scoped.each(closes)(
    "is not sent a third time if the consumer $how that connection as well",
    function* ({ close }) {
      const { consumer, requests } = yield* closingAtSecond(close, close)
      expect(yield* postTo(consumer)).toMatchObject({ httpStatus: null, errorCode: "connection_reset" })
      expect(requests).toHaveLength(4)
      expect(consumer.sockets).toHaveLength(3)
    }
  )

  it.scoped.each(
    closes.flatMap(({ close, how }) => [
      { how, when: "in its answer", atSecond: (socket: Socket) => socket.write("HTTP/1.1 2", () => close(socket)) },
      { how, when: "after it was at work", atSecond: (socket: Socket) => setTimeout(() => close(socket), 1200) }
    ])
  )("is not sent again if the consumer $how the connection $when", function* ({ atSecond }) {
    const { consumer, requests } = yield* closingAtSecond(atSecond, (socket) => socket.write(empty))
    expect(yield* postTo(consumer)).toMatchObject({ httpStatus: null, errorCode: "connection_reset" })
    expect(requests).toHaveLength(3)
  })

  it.scoped("has one time limit, however often it is sent", () =>
    Effect.gen(function* () {
      const { consumer, requests } = yield* closingAtSecond(
        (socket) => socket.resetAndDestroy(),
        () => {}
      )
      const outcome = yield* postTo(consumer)
      expect(outcome).toMatchObject({ httpStatus: null, errorCode: "timeout" })
      expect(outcome.durationMs).toBeGreaterThanOrEqual(2000)
      expect(requests).toHaveLength(4)
    }).pipe(Effect.provide(transport({ timeout: "2 seconds" })))
  )
})
