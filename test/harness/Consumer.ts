import { createServer, type IncomingHttpHeaders } from "node:http"
import { Effect, Option } from "effect"
import { eventually } from "./Eventually.ts"
import { listening } from "./Listening.ts"

export interface ReceivedRequest {
  readonly path: string
  readonly headers: IncomingHttpHeaders
  readonly body: Buffer
}

export type Consumer = Effect.Effect.Success<typeof makeConsumer>

export const makeConsumer = Effect.gen(function* () {
  const received: Array<ReceivedRequest> = []
  let reply: { readonly status: number; readonly headers: Readonly<Record<string, string>> } = {
    status: 204,
    headers: {}
  }
  let gate: Promise<void> = Promise.resolve()
  const server = createServer((request, response) => {
    const chunks: Array<Buffer> = []
    request.on("data", (chunk: Buffer) => chunks.push(chunk))
    request.on("end", () => {
      received.push({ path: request.url ?? "", headers: request.headers, body: Buffer.concat(chunks) })
      void gate.then(() => response.writeHead(reply.status, reply.headers).end())
    })
  })
  return {
    url: `http://127.0.0.1:${yield* listening(server)}/hook`,
    received,
    answer: (status: number, headers: Readonly<Record<string, string>> = {}) => {
      reply = { status, headers }
    },
    hold: () => {
      let release = () => {}
      gate = new Promise((open) => {
        release = open
      })
      return release
    }
  }
})

/** The first request, once it has come. */
export const firstOf = ({ received }: Consumer) =>
  eventually(
    "the first request",
    Effect.sync(() => Option.fromNullable(received[0]))
  )
