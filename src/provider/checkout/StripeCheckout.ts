import { Effect } from "effect"
import type Stripe from "stripe"
import type { ConnectedAccount, NewCheckoutSession, Provider } from "../Provider.ts"
import { inOurNames } from "../RefusedFields.ts"
import { checkoutMarker } from "../Schemas.ts"
import {
  named,
  page,
  type StripeCall,
  type StripeProviderOptions,
  toJson,
  withoutSecrets
} from "../stripe/StripeCall.ts"
import { allLines, everyLine, soldItemsOf } from "../stripe/StripeLineItems.ts"

/** Checkout at Stripe. */

type ReturnUrls = Pick<StripeProviderOptions, "checkoutSuccessUrl" | "checkoutCancelUrl">

/** The parameters of a new session. Return and cancel URLs are the operator's alone. */
export const sessionParams = (
  { trialPeriodDays, ...params }: NewCheckoutSession,
  options: ReturnUrls
): Stripe.Checkout.SessionCreateParams => {
  const { line_items, metadata, ...rest } = params
  const marked = { ...metadata, [checkoutMarker.key]: checkoutMarker.value }
  // Filters on metadata look at the payment or subscription for their events: it gets a copy of what the caller gave
  const carried = { metadata: { ...metadata } }
  const trial = trialPeriodDays === null ? {} : { trial_period_days: trialPeriodDays }
  return {
    ...rest,
    line_items: line_items.map((item) => ({ ...item })),
    metadata: marked,
    ...(params.mode === "payment" ? { payment_intent_data: carried } : { subscription_data: { ...carried, ...trial } }),
    success_url: options.checkoutSuccessUrl,
    cancel_url: options.checkoutCancelUrl,
    expand: ["line_items"]
  }
}

/** What the service adds to a session under other names than the caller's. */
export const checkoutFieldNames = {
  "payment_intent_data.metadata": "metadata",
  "subscription_data.metadata": "metadata",
  "subscription_data.trial_period_days": "line_items",
  success_url: null,
  cancel_url: null
} as const

/** The operations of `Provider` on checkout sessions. */
export const stripeCheckout = (call: StripeCall, options: StripeProviderOptions) => {
  const linesOf = (account: ConnectedAccount, id: string) =>
    call("checkout.sessions.listLineItems", account, (client, scope) =>
      client.checkout.sessions.listLineItems(id, everyLine, scope)
    )
  return {
    createCheckoutSession: (account, params, { idempotencyKey }) =>
      Effect.gen(function* () {
        const session = yield* call("checkout.sessions.create", account, (client, scope) =>
          client.checkout.sessions.create(sessionParams(params, options), { ...scope, idempotencyKey })
        )
        const lines = yield* allLines(session.line_items, linesOf(account, session.id))
        return { session: withoutSecrets(toJson(session)), soldItems: soldItemsOf(lines) }
      }).pipe(Effect.mapError(inOurNames(checkoutFieldNames))),
    retrieveCheckoutSession: (account, id) =>
      named(
        call("checkout.sessions.retrieve", account, (client, scope) => client.checkout.sessions.retrieve(id, {}, scope))
      ),
    listCheckoutSessions: (account, params) =>
      page(call("checkout.sessions.list", account, (client, scope) => client.checkout.sessions.list(params, scope))),
    listSessionItems: (account, id) => Effect.map(linesOf(account, id), ({ data }) => soldItemsOf(data))
  } satisfies Partial<Provider["Type"]>
}
