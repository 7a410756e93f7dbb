import { createServer } from "node:http"

/** A cell that answers at once, so that what is measured is the way to it. */
const body = JSON.stringify({ id: "0198c3a2-5c4e-7b1f-9d3a-2f6e8b7c1d40", filler: "x".repeat(600) })

const server = createServer((request, response) => {
  request.resume()
  response.writeHead(200, { "content-type": "application/json", "content-length": Buffer.byteLength(body) }).end(body)
})
// A connection that the router keeps must not end under a request
server.keepAliveTimeout = 60_000
server.listen(0, "127.0.0.1", () => {
  const address = server.address()
  process.stdout.write(`http://127.0.0.1:${typeof address === "object" && address !== null ? address.port : 0}\n`)
})
process.on("SIGTERM", () => process.exit(0))
