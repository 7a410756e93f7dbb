import { Effect, Schema } from "effect"
import { newestFirst, page, pageParams } from "../../api/Lists.ts"
import * as Params from "../../api/Params.ts"
import { type RequestContext, type Route, route } from "../../api/Route.ts"
import { newClientSecret, newId } from "../../Ids.ts"
import { invalid } from "../../ProviderError.ts"
import { nulls, type PaymentIntent, type PaymentIntentData } from "../../Records.ts"
import { resource } from "../Resource.ts"

interface PaymentTerms {
  readonly amount: number
  readonly currency: string
  readonly customer?: string
  readonly data?: Partial<PaymentIntentData>
}

export const createPaymentIntent = (
  context: RequestContext,
  { amount, currency, customer, data = {} }: PaymentTerms
): PaymentIntent => {
  const id = newId("pi_")
  return context.save("payment_intent", "payment_intent.created", {
    id,
    object: "payment_intent",
    ...nulls("allowed_payment_method_types application application_fee_amount automatic_payment_methods canceled_at"),
    ...nulls("cancellation_reason customer_account excluded_payment_method_types last_payment_error latest_charge"),
    ...nulls("managed_payments next_action on_behalf_of payment_method payment_method_configuration_details"),
    ...nulls("payment_record processing review setup_future_usage shipping source transfer_data transfer_group"),
    amount,
    amount_capturable: 0,
    amount_details: { tip: {} },
    amount_received: 0,
    capture_method: "automatic_async",
    client_secret: newClientSecret(id),
    confirmation_method: "automatic",
    created: context.now,
    currency,
    customer: customer ?? null,
    ...nulls("description receipt_email statement_descriptor statement_descriptor_suffix"),
    livemode: false,
    metadata: {},
    payment_method_options: {
      card: { installments: null, mandate_options: null, network: null, request_three_d_secure: "automatic" }
    },
    payment_method_types: ["card"],
    status: "requires_payment_method",
    ...data
  })
}

const intents = resource("/v1/payment_intents", "payment_intent")

/** The searches that the service makes; the provider's language has more. */
const searchQuery = /^amount:(\d{1,15})(?: AND currency:"([a-z]{3})")?$/

const searchParams = Schema.extend(Schema.Struct({ query: Params.text() }), pageParams.pipe(Schema.pick("limit")))

/** Finds by amount, at once; the provider finds a new payment after about a minute. */
const search = route({
  method: "GET",
  path: "/v1/payment_intents/search",
  answers: { listOf: "payment_intent" },
  params: searchParams,
  run: ({ objects }, { limit, query }) => {
    const [, amount, currency] = searchQuery.exec(query) ?? []
    if (amount === undefined) return invalid("query", "We were unable to parse your search query.")
    const items = newestFirst(objects.all("payment_intent"))
    const matches = (intent: PaymentIntent) =>
      intent.amount === Number(amount) && (currency === undefined || intent.currency === currency)
    const found = page(
      { items, matches, noun: "payment_intent", url: "/v1/payment_intents/search" },
      limit === undefined ? {} : { limit }
    )
    return Effect.map(found, (list) => ({ ...list, object: "search_result", next_page: null }))
  }
})

export const paymentIntentRoutes: ReadonlyArray<Route> = [
  search,
  intents.list(Params.optionals({ created: Params.range })),
  intents.get
]
