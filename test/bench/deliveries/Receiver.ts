import { createServer, type Socket } from "node:net"

/**
 * A consumer that costs as little as one can in Node: it reads requests to their end and answers 204. It listens on many
 * ports, so that each stands for an endpoint's own server. What it costs is taken from the same processors as what is
 * measured, in all cases alike.
 *
 * Arguments: how many ports; of these, how many never answer. It writes `{ports, viewPort}`; a connection to the view's
 * port reads `{received, connections, latencies}`. Latencies are of requests since the last view, in milliseconds from
 * the Unix time that stands in the body after `_at_`, where one does.
 */

const ports = Number(process.argv[2] ?? "1")
const silent = Number(process.argv[3] ?? "0")
const answer = Buffer.from("HTTP/1.1 204 No Content\r\n\r\n", "latin1")
const endOfHead = Buffer.from("\r\n\r\n")
const lengthHeader = Buffer.from("content-length: ")
const sentAtMark = Buffer.from("_at_")

let received = 0
let connections = 0
let latencies: Array<number> = []

const numberAt = (bytes: Buffer, start: number): number => {
  let number = 0
  for (let at = start; at < bytes.length; at++) {
    const digit = (bytes[at] ?? 0) - 48
    if (digit < 0 || digit > 9) break
    number = number * 10 + digit
  }
  return number
}

const note = (request: Buffer): void => {
  received++
  const mark = request.indexOf(sentAtMark)
  if (mark > 0) latencies.push(performance.timeOrigin + performance.now() - numberAt(request, mark + 4))
}

const serve = (socket: Socket, answers: boolean): void => {
  connections++
  let pending: Buffer | null = null
  socket.setNoDelay()
  socket.on("error", () => {})
  socket.on("close", () => {
    connections--
  })
  socket.on("data", (chunk: Buffer) => {
    let bytes = pending === null ? chunk : Buffer.concat([pending, chunk])
    pending = null
    while (bytes.length > 0) {
      const head = bytes.indexOf(endOfHead)
      const length = head < 0 ? -1 : bytes.indexOf(lengthHeader)
      const end = head < 0 || length < 0 ? -1 : head + 4 + numberAt(bytes, length + lengthHeader.length)
      if (end < 0 || bytes.length < end) {
        pending = bytes
        return
      }
      note(end === bytes.length ? bytes : bytes.subarray(0, end))
      if (answers) socket.write(answer)
      bytes = bytes.subarray(end)
    }
  })
}

const listen = (answers: boolean) =>
  new Promise<number>((resolve) => {
    const server = createServer((socket) => serve(socket, answers))
    server.listen({ port: 0, host: "127.0.0.1", backlog: 1024 }, () => {
      const address = server.address()
      resolve(typeof address === "object" && address !== null ? address.port : 0)
    })
  })

const numbers: Array<number> = []
for (let index = 0; index < ports; index++) numbers.push(await listen(index >= silent))

// The bench's own view: whoever connects here gets what was seen, and is done
const view = createServer((socket) => {
  socket.on("error", () => {})
  socket.end(JSON.stringify({ received, connections, latencies }))
  latencies = []
})
view.listen(0, "127.0.0.1", () => {
  const address = view.address()
  const viewPort = typeof address === "object" && address !== null ? address.port : 0
  process.stdout.write(`${JSON.stringify({ ports: numbers, viewPort })}\n`)
})
