import { createServer, type IncomingMessage } from "node:http"
import pg from "pg"

/** What the bare servers stand on, which benches start as processes of their own. */

export const pool = new pg.Pool({
  connectionString: process.env["DATABASE_URL"],
  max: Number(process.env["DATABASE_POOL_SIZE"])
})

/** Listens on loopback, and writes where. */
export const serve = (answer: (request: IncomingMessage) => Promise<readonly [status: number, json: string]>): void => {
  const server = createServer((request, response) => {
    void answer(request)
      .catch((error: unknown) => [500, String(error)] as const)
      .then(([status, text]) =>
        response
          .writeHead(status, { "content-type": "application/json", "content-length": Buffer.byteLength(text) })
          .end(text)
      )
  })
  server.listen(0, "127.0.0.1", () => {
    const address = server.address()
    process.stdout.write(`http://127.0.0.1:${typeof address === "object" && address !== null ? address.port : 0}\n`)
  })
}
