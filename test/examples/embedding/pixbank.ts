/**
 * Another provider: a small bank that receives and returns Pix payments, and can do nothing else. `providerOf` answers
 * everything that is not here: 501 `provider_operation_unsupported`.
 */
import { createHmac, timingSafeEqual } from "node:crypto"
import { Provider, ProviderObjectNotFound, ProviderUnavailable, providerOf, SignatureInvalid } from "connected-payments"
import { Clock, Effect, Layer, Redacted, Schema } from "effect"

export interface PixbankOptions {
  readonly apiUrl: string
  readonly apiKey: Redacted.Redacted
  readonly secret: Redacted.Redacted
}

/** The bank's notifications: a payer has paid, or has got money back. */
const Notification = Schema.parseJson(
  Schema.Struct({
    notification: Schema.String,
    kind: Schema.String,
    merchant: Schema.String,
    sent: Schema.Int.pipe(Schema.between(0, 4_102_444_800)),
    pix: Schema.Record({ key: Schema.String, value: Schema.Unknown })
  })
)

const Pix = Schema.Struct({ id: Schema.NonEmptyString, cents: Schema.Int, returned: Schema.Int })

const Returned = Schema.Struct({ id: Schema.NonEmptyString, cents: Schema.Int })

const tolerance = 300

/** `x-pixbank-signature`: the HMAC-SHA256 of the body, in hex. The body has the time. */
const isSigned = (secret: Redacted.Redacted, body: Uint8Array, signature: string): boolean => {
  const expected = createHmac("sha256", Redacted.value(secret)).update(body).digest()
  const given = Buffer.from(signature, "hex")
  return given.length === expected.length && timingSafeEqual(given, expected)
}

const refused = () => new SignatureInvalid()

export const pixbankLayer = ({ apiKey, apiUrl, secret }: PixbankOptions): Layer.Layer<Provider> =>
  Layer.succeed(
    Provider,
    providerOf({
      name: "pixbank",

      notifications: {
        signatureHeader: "x-pixbank-signature",
        verify: (body, signature) =>
          Effect.gen(function* () {
            if (!isSigned(secret, body, signature)) return yield* refused()
            const text = Buffer.from(body).toString("utf8")
            const { kind, merchant, notification, pix, sent } = yield* Effect.mapError(
              Schema.decode(Notification)(text),
              refused
            )
            const now = (yield* Clock.currentTimeMillis) / 1000
            if (Math.abs(now - sent) > tolerance) return yield* refused()
            const event = { id: notification, type: kind, created: sent, livemode: false, account: merchant }
            return { environment: "sandbox" as const, event: { ...event, data: { object: pix } } }
          }),
        translate: ({ data: { object }, type }) => {
          if (type !== "PIX_RECEIVED" && type !== "PIX_RETURNED") return []
          const { cents, id, returned } = Schema.decodeUnknownSync(Pix)(object)
          return type === "PIX_RECEIVED"
            ? [{ type: "payment.succeeded", data: { payment_id: id, amount_received: cents, currency: "brl" } }]
            : [
                {
                  type: "payment.refunded",
                  data: {
                    charge_id: id,
                    payment_id: id,
                    amount_refunded: returned,
                    currency: "brl",
                    fully_refunded: returned === cents
                  }
                }
              ]
        }
      },

      createRefund: ({ accountId }, { amount, charge, payment_intent }, { idempotencyKey }) =>
        Effect.gen(function* () {
          const pix = payment_intent ?? charge ?? ""
          const answer = yield* Effect.tryPromise({
            try: (signal) =>
              fetch(`${apiUrl}/merchants/${accountId}/pix/${pix}/returns`, {
                method: "POST",
                body: JSON.stringify({ cents: amount ?? null }),
                headers: { authorization: `Bearer ${Redacted.value(apiKey)}`, "idempotency-key": idempotencyKey },
                signal: AbortSignal.any([signal, AbortSignal.timeout(10_000)])
              }),
            catch: (cause) => new ProviderUnavailable({ cause })
          })
          if (answer.status === 404) return yield* new ProviderObjectNotFound()
          if (!answer.ok) return yield* new ProviderUnavailable({ cause: `The bank answered ${answer.status}` })
          const json = yield* Effect.tryPromise({
            try: () => answer.json(),
            catch: (cause) => new ProviderUnavailable({ cause })
          })
          const { cents, id } = yield* Effect.mapError(
            Schema.decodeUnknown(Returned)(json),
            (cause) => new ProviderUnavailable({ cause })
          )
          return { id, object: "refund", payment_intent: pix, amount: cents, currency: "brl", status: "succeeded" }
        })
    })
  )
