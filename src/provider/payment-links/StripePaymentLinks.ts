import { Effect } from "effect"
import type Stripe from "stripe"
import { checkoutFieldNames } from "../checkout/StripeCheckout.ts"
import type { ConnectedAccount, NewPaymentLink, Provider } from "../Provider.ts"
import { inOurNames } from "../RefusedFields.ts"
import { checkoutMarker } from "../Schemas.ts"
import { named, page, type StripeCall, toJson, withoutSecrets } from "../stripe/StripeCall.ts"
import { allLines, everyLine, soldItemsOf } from "../stripe/StripeLineItems.ts"

/** Payment links at Stripe. */

const expandedLink = { expand: ["line_items"] }

/**
 * The parameters of a new payment link. Its metadata goes to its sessions by itself, and to the payment or subscription
 * by our copy.
 */
export const paymentLinkParams = (params: NewPaymentLink): Stripe.PaymentLinkCreateParams => {
  const { line_items, metadata, mode, trialPeriodDays, ...rest } = params
  const carried = { metadata: { ...metadata } }
  const trial = trialPeriodDays === null ? {} : { trial_period_days: trialPeriodDays }
  return {
    ...rest,
    line_items: line_items.map((item) => ({ ...item })),
    metadata: { ...metadata, [checkoutMarker.key]: checkoutMarker.value },
    ...(mode === "payment" ? { payment_intent_data: carried } : { subscription_data: { ...carried, ...trial } }),
    ...expandedLink
  }
}

/** The operations of `Provider` on payment links. */
export const stripePaymentLinks = (call: StripeCall) => {
  const linesOf = (account: ConnectedAccount, id: string) =>
    call("paymentLinks.listLineItems", account, (client, scope) =>
      client.paymentLinks.listLineItems(id, everyLine, scope)
    )
  return {
    createPaymentLink: (account, params, { idempotencyKey }) =>
      Effect.gen(function* () {
        const link = yield* call("paymentLinks.create", account, (client, scope) =>
          client.paymentLinks.create(paymentLinkParams(params), { ...scope, idempotencyKey })
        )
        const lines = yield* allLines(link.line_items, linesOf(account, link.id))
        return { link: withoutSecrets(toJson(link)), soldItems: soldItemsOf(lines) }
      }).pipe(Effect.mapError(inOurNames(checkoutFieldNames))),
    updatePaymentLink: (account, id, { active }, { idempotencyKey }) =>
      named(
        call("paymentLinks.update", account, (client, scope) =>
          client.paymentLinks.update(id, { active, ...expandedLink }, { ...scope, idempotencyKey })
        )
      ),
    retrievePaymentLink: (account, id) =>
      named(
        call("paymentLinks.retrieve", account, (client, scope) => client.paymentLinks.retrieve(id, expandedLink, scope))
      ),
    listPaymentLinks: (account, params) =>
      page(
        call("paymentLinks.list", account, (client, scope) =>
          client.paymentLinks.list({ ...params, expand: ["data.line_items"] }, scope)
        )
      )
  } satisfies Partial<Provider["Type"]>
}
