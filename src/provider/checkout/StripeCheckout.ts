import { Effect } from "effect"
import type Stripe from "stripe"
import type { ConnectedAccount } from "../ProviderCall.ts"
import { inOurNames } from "../RefusedFields.ts"
import {
  named,
  page,
  type StripeCall,
  type StripeProviderOptions,
  toJson,
  withoutSecrets
} from "../stripe/StripeCall.ts"
import { checkoutMarker } from "./Metadata.ts"
import type { CheckoutSessionsPort, NewCheckoutSession } from "./Port.ts"
import { allLines, everyLine, soldItemsOf } from "./StripeLineItems.ts"

type ReturnUrls = Pick<StripeProviderOptions, "checkoutSuccessUrl" | "checkoutCancelUrl">

/** The parameters of a new session. Return and cancel URLs are the operator's to set. */
export const sessionParams = (
  { trialPeriodDays, ...params }: NewCheckoutSession,
  options: ReturnUrls
): Stripe.Checkout.SessionCreateParams => {
  const { line_items, metadata, ...rest } = params
  const marked = { ...metadata, [checkoutMarker.key]: checkoutMarker.value }
  // Filters match the metadata of payments and subscriptions: they get a copy of what the caller gave
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

/** The callers' names of the parameters that the service adds to a session; null if callers have no such field. */
export const checkoutFieldNames = {
  "payment_intent_data.metadata": "metadata",
  "subscription_data.metadata": "metadata",
  "subscription_data.trial_period_days": "line_items",
  success_url: null,
  cancel_url: null
} as const

/** Checkout sessions at Stripe. */
export const stripeCheckoutSessions = (call: StripeCall, options: ReturnUrls): CheckoutSessionsPort => {
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
  }
}
