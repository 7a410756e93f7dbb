import { createServer } from "node:net"
import { Effect } from "effect"

/**
 * Returns a port that is free on a host now, for callers that need the address before the server listens. Another
 * process may take it in the meantime.
 *
 * Error: the system's own, if it has no such address or no port left.
 */
export const freePort = (host: string): Effect.Effect<number, Error> =>
  Effect.async((resume) => {
    const probe = createServer()
    probe.once("error", (cause) => resume(Effect.fail(cause)))
    probe.listen(0, host, () => {
      const address = probe.address()
      const port = typeof address === "object" && address !== null ? address.port : 0
      probe.close(() => resume(Effect.succeed(port)))
    })
  })
