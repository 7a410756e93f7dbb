// Reads cases as lines of JSON, and writes for each whether the provider's library takes its delivery for genuine.
import { createInterface } from "node:readline"
import Stripe from "stripe"

for await (const line of createInterface({ input: process.stdin })) {
  const delivery = JSON.parse(line)
  const body = Buffer.from(delivery.body, "base64")
  const { header } = delivery
  const [secret] = delivery.secrets
  try {
    console.log(Stripe.webhooks.signature.verifyHeader(body, header, secret, 300))
    Stripe.webhooks.constructEvent(body, header, secret)
  } catch (error) {
    if (!(error instanceof Stripe.errors.StripeSignatureVerificationError)) throw error
    console.log(false)
  }
}
