import { Server as HttpServer } from "node:http"
import type { Server } from "node:net"
import { Effect, type Scope } from "effect"

/** Listens on a free port, which it answers, until the scope ends; the connections of HTTP end with it. */
export const listening = (server: Server, host = "127.0.0.1"): Effect.Effect<number, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.async<number>((resume) => {
      server.listen(0, host, () => {
        const address = server.address()
        resume(Effect.succeed(typeof address === "object" && address !== null ? address.port : 0))
      })
    }),
    () =>
      Effect.sync(() => {
        if (server instanceof HttpServer) server.closeAllConnections()
        server.close()
      })
  )
