import { createServer } from "node:http"
import { nodeWebhookHandler } from "connected-payments-webhooks"

const receive = nodeWebhookHandler({
  secret: process.env.WEBHOOK_SECRET ?? "", // the endpoint's signingSecret; a list of two while one is rotated
  organizationId: process.env.ORGANIZATION ?? "",
  livemode: false, // the sandbox; true in production
  onEvent: async (event) => {
    if (event.test === true) return // a synthetic event proves nothing
    if (event.type === "payment.succeeded") {
      // Your effect goes here, stored before this returns: see "Matching an order"
      console.log("paid", event.data.payment_id, event.data.amount_received, event.data.currency)
    }
  }
})

createServer((request, response) => {
  if (request.url === "/webhooks") void receive(request, response)
  else response.writeHead(404).end()
}).listen(9000, "127.0.0.1")
