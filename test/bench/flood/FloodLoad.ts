import { connect } from "node:net"

/**
 * Floods a server over so many connections, each with one request at a time, whatever is answered. Prints how many answers
 * of each status there were as one line of JSON when it is told to end.
 *
 * Arguments, as JSON: `{url, path, key, connections}`.
 */

interface Options {
  readonly url: string
  readonly path: string
  readonly key: string
  readonly connections: number
}

// Written by the bench that starts this process, in this form
const options: Options = JSON.parse(process.argv[2] ?? "")
const { hostname, port } = new URL(options.url)
const request = `GET ${options.path} HTTP/1.1\r\nhost: ${hostname}\r\nx-api-key: ${options.key}\r\n\r\n`
const answers: Record<string, number> = {}

for (let n = 0; n < options.connections; n++) {
  const socket = connect(Number(port), hostname).setNoDelay()
  socket.on("connect", () => socket.write(request))
  // An answer is one segment here: it is small
  socket.on("data", (chunk) => {
    const status = chunk.toString("latin1", 9, 12)
    answers[status] = (answers[status] ?? 0) + 1
    socket.write(request)
  })
  socket.on("error", () => socket.destroy())
}

process.stdout.write("flooding\n")
process.on("SIGTERM", () => process.stderr.write(`${JSON.stringify(answers)}\n`, () => process.exit(0)))
