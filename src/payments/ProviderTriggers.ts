import { Context, Effect, Layer, Option, Redacted, Schema } from "effect"
import type { EventType } from "../events/Catalog.ts"
import type { StripeProviderOptions } from "./stripe/StripeCall.ts"

/** The emulator's trigger for each event of the catalog that has one. A real provider has no triggers. */
const triggers: { readonly [Type in EventType]?: string } = {
  "payment.succeeded": "payment_intent.succeeded",
  "payment.failed": "payment_intent.payment_failed",
  "payment.refunded": "charge.refunded",
  "dispute.created": "charge.dispute.created",
  "dispute.closed": "charge.dispute.closed",
  "checkout.completed": "checkout.session.completed",
  "checkout.payment_succeeded": "checkout.session.async_payment_succeeded",
  "checkout.payment_failed": "checkout.session.async_payment_failed",
  "subscription.created": "customer.subscription.created",
  "subscription.renewed": "invoice.paid",
  "subscription.canceled": "customer.subscription.deleted",
  "subscription.payment_failed": "invoice.payment_failed",
  "payout.created": "payout.created",
  "payout.updated": "payout.updated",
  "payout.paid": "payout.paid",
  "payout.failed": "payout.failed",
  "payout.canceled": "payout.canceled",
  "account.updated": "account.updated"
}

/** Timeout of a call to the emulator, which answers at once or not at all. */
const timeoutMillis = 5000

const Triggered = Schema.parseJson(
  Schema.Struct({ type: Schema.String, account: Schema.String, events: Schema.Array(Schema.Unknown) })
)

/** Makes an emulated provider cause an event. Returns whether it did, which only an emulator can. */
export class ProviderTriggers extends Context.Reference<ProviderTriggers>()(
  "connected-payments/payments/ProviderTriggers",
  {
    defaultValue:
      () =>
      (_accountId: string, _type: EventType): Effect.Effect<boolean> =>
        Effect.succeed(false)
  }
) {
  /** Does nothing without the configured `apiUrl`, so a real provider is never called. */
  static readonly layer = ({
    apiUrl,
    sandbox
  }: Pick<StripeProviderOptions, "apiUrl" | "sandbox">): Layer.Layer<ProviderTriggers> =>
    Layer.succeed(ProviderTriggers, (accountId, type) => {
      const trigger = triggers[type]
      if (Option.isNone(apiUrl) || Option.isNone(sandbox) || trigger === undefined) return Effect.succeed(false)
      return Effect.tryPromise(async (signal) => {
        const response = await fetch(new URL("/_emulator/trigger", apiUrl.value), {
          method: "POST",
          redirect: "error",
          body: JSON.stringify({ type: trigger, account: accountId }),
          headers: {
            authorization: `Bearer ${Redacted.value(sandbox.value.secretKey)}`,
            "content-type": "application/json"
          },
          signal: AbortSignal.any([signal, AbortSignal.timeout(timeoutMillis)])
        })
        const text = await response.text()
        return response.ok ? text : ""
      }).pipe(
        Effect.map((text) => Option.isSome(Schema.decodeOption(Triggered)(text))),
        // The server at this address is not an emulator
        Effect.catchAll((error) => Effect.as(Effect.logDebug("The provider has no triggers", error), false))
      )
    })
}
