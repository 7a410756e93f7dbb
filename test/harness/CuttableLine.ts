import { connect, createServer, type Socket } from "node:net"
import { Effect, type Scope } from "effect"
import { listening } from "./Listening.ts"

export interface CuttableLine {
  readonly url: string
  readonly open: () => number
  readonly cut: () => void
  readonly mend: () => void
  /** Passes nothing on any more, and closes nothing: whoever waits for an answer hears nothing. */
  readonly stall: () => void
}

/** Listens on loopback and passes everything on to the server; it ends with the scope. */
export const cuttableLine = (target: string): Effect.Effect<CuttableLine, never, Scope.Scope> =>
  Effect.gen(function* () {
    const sockets = new Set<Socket>()
    const stalls = new Set<() => void>()
    let isCut = false
    let isStalled = false
    const server = createServer((client) => {
      if (isCut) {
        client.destroy()
        return
      }
      const { hostname, port } = new URL(target)
      const onward = connect({ host: hostname, port: Number(port) })
      sockets.add(client)
      const end = () => {
        sockets.delete(client)
        stalls.delete(stall)
        client.destroy()
        onward.destroy()
      }
      client.on("error", end).on("close", end)
      onward.on("error", end).on("close", end)
      const stall = () => {
        client.unpipe(onward).pause()
        onward.unpipe(client).pause()
      }
      client.pipe(onward)
      onward.pipe(client)
      stalls.add(stall)
      if (isStalled) stall()
    })
    return {
      url: `http://127.0.0.1:${yield* listening(server)}`,
      open: () => sockets.size,
      cut: () => {
        isCut = true
        for (const socket of sockets) socket.destroy()
      },
      mend: () => {
        isCut = false
      },
      stall: () => {
        isStalled = true
        for (const stall of stalls) stall()
      }
    }
  })
