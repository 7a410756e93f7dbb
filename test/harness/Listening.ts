import type { Server, Socket } from "node:net"
import { Effect, type Scope } from "effect"

/** Has a server of `node:http` or `node:net` listen on loopback, and answers its port. It ends with the scope, open connections included. */
export const listening = (server: Server, host = "127.0.0.1"): Effect.Effect<number, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.async<{ readonly port: number; readonly close: () => void }>((resume) => {
      const sockets = new Set<Socket>()
      server.on("connection", (socket) => {
        sockets.add(socket)
        socket.on("error", () => {}).on("close", () => sockets.delete(socket))
      })
      server.listen(0, host, () => {
        const address = server.address()
        const port = typeof address === "object" && address !== null ? address.port : 0
        const close = () => {
          server.close()
          for (const socket of sockets) socket.destroy()
        }
        resume(Effect.succeed({ port, close }))
      })
    }),
    ({ close }) => Effect.sync(close)
  ).pipe(Effect.map(({ port }) => port))
