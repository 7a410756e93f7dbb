import { connect, type Socket } from "node:net"
import { Effect, type Scope } from "effect"
import { TestService } from "../../harness/TestService.ts"

export interface Wire {
  readonly socket: Socket
  readonly received: () => string
  readonly closed: () => boolean
}

/**
 * Opens a connection that sends bytes as they are; it ends with the scope.
 *
 * @param localAddress the client's address
 */
export const open = (
  bytes: string | Buffer = "",
  localAddress = "127.0.0.1"
): Effect.Effect<Wire, never, TestService | Scope.Scope> =>
  Effect.flatMap(TestService, ({ baseUrl }) =>
    Effect.acquireRelease(
      Effect.async<Wire>((resume) => {
        const chunks: Array<Buffer> = []
        let closed = false
        const socket = connect({ port: Number(new URL(baseUrl).port), host: "127.0.0.1", localAddress }, () => {
          socket.write(bytes)
          resume(
            Effect.succeed({ socket, received: () => Buffer.concat(chunks).toString("latin1"), closed: () => closed })
          )
        })
        socket
          .on("data", (chunk: Buffer) => chunks.push(chunk))
          // A reset is one way of closing
          .on("error", () => {})
          .on("close", () => {
            closed = true
          })
      }),
      ({ socket }) => Effect.sync(() => socket.destroy())
    )
  )

export const statusesIn = (received: string) =>
  [...received.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => status)

export const lastBody = ({ received }: Wire): Record<string, unknown> =>
  Object(JSON.parse(received().split("\r\n\r\n").at(-1) ?? ""))
