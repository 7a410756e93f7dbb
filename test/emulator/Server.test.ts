import { connect } from "node:net"
import { Effect } from "effect"
import { describe, expect, it } from "../harness/Tests.ts"
import { raw, startEmulator } from "./Harness.ts"

describe("the server", () => {
  it.live("closes without waiting for open keep-alive connections and half-sent requests", function* () {
    const sockets = yield* Effect.scoped(
      Effect.gen(function* () {
        const emulator = yield* startEmulator()
        const port = Number(new URL(emulator.url).port)
        const idle = connect(port, "127.0.0.1")
        const half = connect(port, "127.0.0.1")
        half.write("POST /v1/products HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\nname=")
        yield* raw(emulator.url, "/v1/account")
        return [idle, half] as const
      })
    )
    // That it closed is the point: neither connection had ended
    expect(sockets.map(({ writableEnded }) => writableEnded)).toEqual([false, false])
    sockets[0].destroy()
    sockets[1].destroy()
  })

  it.scopedLive("says what is wrong where it cannot listen", function* () {
    const emulator = yield* startEmulator()
    const error = yield* Effect.flip(startEmulator({ port: Number(new URL(emulator.url).port) }))
    expect(error).toMatchObject({ _tag: "EmulatorError", reason: "CannotListen" })
  })
})
