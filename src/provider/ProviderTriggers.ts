import { Context, Effect, Layer, Option, Redacted, Schema } from "effect"
import type { EventType } from "../events/Catalog.ts"
import type { StripeProviderOptions } from "./stripe/StripeCall.ts"

/**
 * What can be made to happen at a provider that is an emulator: each event of the catalog that has a trigger there, and
 * the trigger's name. A real provider has none.
 */
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

/** How long an emulator may take: it answers at once or not at all. */
const timeoutMillis = 5000

const Triggered = Schema.parseJson(
  Schema.Struct({ type: Schema.String, account: Schema.String, events: Schema.Array(Schema.Unknown) })
)

/** Makes the provider do what leads to an event. Whether it did: only an emulator can. */
export class ProviderTriggers extends Context.Reference<ProviderTriggers>()(
  "connected-payments/provider/ProviderTriggers",
  {
    defaultValue:
      () =>
      (_accountId: string, _type: EventType): Effect.Effect<boolean> =>
        Effect.succeed(false)
  }
) {
  /** Asks the provider's address in the sandbox, if it was set: the provider's own is never asked. */
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
        // Something other than an emulator is at the address
        Effect.catchAll((error) => Effect.as(Effect.logDebug("The provider has no triggers", error), false))
      )
    })
}
