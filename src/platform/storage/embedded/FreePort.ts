import { randomInt } from "node:crypto"
import { createServer } from "node:net"
import { Effect } from "effect"

/**
 * Below the ports that Linux (from 32768) and macOS (from 49152) choose for a program that asks for any: outgoing
 * connections get those, too, and one could take the port before the server listens.
 */
const [first, last] = [20_000, 32_767]

const isInUse = (cause: Error): boolean => "code" in cause && cause.code === "EADDRINUSE"

/** Listens for a moment; 0 leaves the choice to the system. */
const probe = (host: string, wanted: number) =>
  Effect.async<number, Error>((resume) => {
    const server = createServer()
    server.once("error", (cause) => resume(Effect.fail(cause)))
    server.listen(wanted, host, () => {
      const address = server.address()
      const port = typeof address === "object" && address !== null ? address.port : 0
      server.close(() => resume(Effect.succeed(port)))
    })
  })

/**
 * Returns a port that is free on a host now, for callers that need the address before the server listens. Another
 * process that chose the same one may still take it in the meantime.
 *
 * Error: the system's own, if it has no such address or no port left.
 */
export const freePort = (host: string): Effect.Effect<number, Error> =>
  Effect.suspend(() => probe(host, randomInt(first, last + 1))).pipe(
    Effect.retry({ times: 20, while: isInUse }),
    Effect.catchIf(isInUse, () => probe(host, 0))
  )
