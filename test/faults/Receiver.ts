import { createServer } from "node:http"
import { Effect } from "effect"
import { listening } from "../harness/Listening.ts"
import type { Randomness } from "./Randomness.ts"

export interface Exchange {
  readonly deliveryId: string
  readonly eventId: string
  readonly path: string
  readonly startedAt: number
  /** When it was answered, or broke off; Infinity while it lasts. */
  endedAt: number
  /** Whether the 2xx was handed over to the network. */
  answered: boolean
}

export type Receiver = Effect.Effect.Success<ReturnType<typeof makeReceiver>>

/** Answers 204 after so many milliseconds at most. It ends with the scope. */
export const makeReceiver = (random: Randomness, slowest: number) =>
  Effect.gen(function* () {
    const exchanges: Array<Exchange> = []
    const server = createServer((request, response) => {
      const startedAt = performance.now()
      const chunks: Array<Buffer> = []
      request.on("data", (chunk: Buffer) => chunks.push(chunk))
      request.on("end", () => {
        const body: Record<string, unknown> = JSON.parse(Buffer.concat(chunks).toString())
        const exchange: Exchange = {
          deliveryId: String(request.headers["service-delivery-id"]),
          eventId: String(body["id"]),
          path: request.url ?? "",
          startedAt,
          endedAt: Number.POSITIVE_INFINITY,
          answered: false
        }
        exchanges.push(exchange)
        response.on("close", () => {
          exchange.endedAt = Math.min(exchange.endedAt, performance.now())
        })
        setTimeout(
          () => {
            if (response.destroyed) return
            // What is in the hands of the network counts as answered, whether the worker lives to read it or not
            exchange.answered = true
            exchange.endedAt = performance.now()
            response.writeHead(204).end()
          },
          random.between(0, slowest)
        )
      })
    })
    const port = yield* listening(server)
    return { url: (path: string) => `http://127.0.0.1:${port}/${path}`, exchanges }
  })
