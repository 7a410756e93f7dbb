/** Deliveries for tests of the consumer kit, signed by the service's own code. */
import { Redacted } from "effect"
import { signatureHeaders } from "../../src/engine/attempts/Signing.ts"
import { signatureHeaderName } from "../../src/events/DeliveryHeaders.ts"
import { type Envelope, encodeEnvelope, makeEnvelope } from "../../src/events/Envelope.ts"

export const organizationId = "0199c0de-0000-7000-8000-000000000001"

export const secret = `whsec_${"A".repeat(43)}`
export const previousSecret = `whsec_${"b".repeat(43)}`

export const timestamp = 1_760_000_000

/** The time of signing, or so many seconds after it. */
export const later = (seconds = 0): Date => new Date((timestamp + seconds) * 1000)

export const envelope: Envelope = makeEnvelope({
  provider: "stripe",
  environment: "sandbox",
  organizationId,
  providerEventId: "evt_1Q0",
  created: timestamp - 2,
  type: "payment.succeeded",
  data: { payment_id: "pi_1", amount_received: 1500, currency: "brl" }
})

export const body = encodeEnvelope(envelope)

const header = (text: string | Uint8Array, at: number, first: string, ...others: ReadonlyArray<string>): string =>
  signatureHeaders({
    eventId: envelope.id,
    timestamp: at,
    body: text,
    secrets: [Redacted.make(first), ...others.map((other) => Redacted.make(other))]
  })[signatureHeaderName]

/** The header of a body under one secret or more. */
export const sign = (text: string | Uint8Array, first = secret, ...others: ReadonlyArray<string>): string =>
  header(text, timestamp, first, ...others)

/** The header of a body that is signed now, or so many seconds off. */
export const signNow = (text: string | Uint8Array, key = secret, offsetSeconds = 0): string =>
  header(text, Math.floor(Date.now() / 1000) + offsetSeconds, key)
