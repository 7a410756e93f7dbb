import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import { Effect } from "effect"
import { nodeWebhookHandler, type WebhookEvent } from "../../src/webhooks/index.ts"
import { listening } from "../harness/Listening.ts"

/** A shop's receiver as its developers write one: with the kit, and with what the console shows of the destination. */
export interface Shop {
  readonly url: string
  /** The events that it took, each verified, oldest first. */
  readonly events: ReadonlyArray<WebhookEvent>
  readonly failures: () => number
  /** Gives it the destination's secret and the organization. Before, it answers 500. */
  readonly setUp: (secret: string, organizationId: string) => void
  readonly setBroken: (broken: boolean) => void
}

export const makeShop = Effect.gen(function* () {
  const events: Array<WebhookEvent> = []
  let receive: ((request: IncomingMessage, response: ServerResponse) => Promise<void>) | undefined
  let isBroken = false
  let failures = 0
  const port = yield* listening(
    createServer((request, response) => {
      if (receive !== undefined && !isBroken) {
        void receive(request, response)
        return
      }
      failures += 1
      request.resume().on("end", () => response.writeHead(500).end())
    })
  )
  const shop: Shop = {
    url: `http://127.0.0.1:${port}/webhooks`,
    events,
    failures: () => failures,
    setUp: (secret, organizationId) => {
      receive = nodeWebhookHandler({
        secret,
        organizationId,
        livemode: false,
        onEvent: (event) => {
          events.push(event)
        }
      })
    },
    setBroken: (broken) => {
      isBroken = broken
    }
  }
  return shop
})
