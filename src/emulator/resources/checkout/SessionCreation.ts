import { Effect, Schema } from "effect"
import * as Params from "../../api/Params.ts"
import type { RequestContext } from "../../api/Route.ts"
import { checkCustomFields, collectionParams, customFieldsOf } from "../../checkout/CustomFields.ts"
import { newId } from "../../Ids.ts"
import { type Check, firstOf, invalid } from "../../ProviderError.ts"
import { given, nulls, type Session } from "../../Records.ts"
import {
  checkMinimum,
  checkTotal,
  isRecurring,
  makeItem,
  makeOrder,
  makeSale,
  noInvoiceData,
  paymentIntentDataParams,
  type Sold,
  saleParams,
  sumOf
} from "./Sales.ts"

const lineItem = Schema.Struct({ price: Params.text(), quantity: Params.integer(1, 999_999) })

const locale = Params.oneOfWords(
  "auto bg cs da de el en en-GB es es-419 et fi fil fr fr-CA hr hu id it ja ko lt lv ms mt nb nl pl pt pt-BR ro ru sk sl sv th tr vi zh zh-HK zh-TW"
)

export const sessionParams = Schema.Struct({
  ...saleParams,
  cancel_url: Params.optional(Params.url),
  client_reference_id: Params.optional(Params.text(200)),
  ...collectionParams,
  customer_email: Params.optional(Params.email),
  expires_at: Params.optional(Params.integer()),
  line_items: Params.listOf(lineItem),
  locale: Params.optional(locale),
  mode: Params.oneOf("payment", "subscription"),
  payment_intent_data: Params.optional(
    Schema.Struct({ ...paymentIntentDataParams, receipt_email: Params.optional(Params.email) })
  ),
  success_url: Params.url,
  ui_mode: Params.optional(Params.oneOf("hosted_page"))
})

type SessionParams = typeof sessionParams.Type

/** The shortest and longest lifetime of a session, in seconds; without `expires_at`, the longest applies. */
const shortestLife = 30 * 60
const longestLife = 24 * 60 * 60

const checkMode = (sold: ReadonlyArray<Sold>, params: SessionParams): Check =>
  params.mode === "payment"
    ? firstOf(
        isRecurring(sold) &&
          invalid(
            "mode",
            "You specified `payment` mode but passed a recurring price. Either switch to `subscription` mode or use only one-time prices."
          ),
        params.subscription_data !== undefined &&
          invalid("subscription_data", "You can not pass `subscription_data` in `payment` mode."),
        params.submit_type === "subscribe" &&
          invalid("submit_type", "You can not pass `submit_type` `subscribe` in `payment` mode.")
      )
    : firstOf(
        !isRecurring(sold) &&
          invalid("mode", "You must provide at least one recurring price in `subscription` mode when using prices."),
        params.payment_intent_data !== undefined &&
          invalid("payment_intent_data", "You can not pass `payment_intent_data` in `subscription` mode."),
        params.customer_creation !== undefined &&
          invalid("customer_creation", "`customer_creation` can only be used in `payment` mode.")
      )

/** The maximum number of lines: 100 in all, but in a subscription 20 recurring and 20 one-time ones. */
const checkLines = (sold: ReadonlyArray<Sold>, { mode }: SessionParams): Check => {
  const recurring = sold.filter((one) => isRecurring([one])).length
  const [most, maximum] = mode === "payment" ? [sold.length, 100] : [Math.max(recurring, sold.length - recurring), 20]
  return most <= maximum
    ? Effect.void
    : invalid(
        "line_items",
        `You may only specify up to ${maximum} line items with one-time prices, and 20 with recurring prices.`
      )
}

const checkExpiry = (now: number, expiresAt = now + longestLife): Check =>
  firstOf(
    expiresAt < now + shortestLife &&
      invalid("expires_at", "The `expires_at` timestamp must be at least 30 minutes from Checkout Session creation."),
    expiresAt > now + longestLife &&
      invalid("expires_at", "The `expires_at` timestamp must be less than 24 hours from Checkout Session creation.")
  )

export interface SessionTerms {
  readonly now: number
  readonly baseUrl: string
  readonly total: number
  readonly currency: string
  readonly paymentLink?: string
}

/** The parameters of a session; a payment link gives fewer of them than a request. */
export type SessionWishes = Pick<SessionParams, "mode"> & Partial<Omit<SessionParams, "line_items">>

export const makeSession = (
  { baseUrl, currency, now, paymentLink, total }: SessionTerms,
  params: SessionWishes
): Session => {
  const id = newId("cs_test_")
  const payment = params.mode === "payment"
  return {
    id,
    object: "checkout.session",
    adaptive_pricing: { enabled: false },
    ...nulls("after_expiration allowed_payment_method_types client_secret consent consent_collection"),
    ...nulls("currency_conversion customer customer_account customer_details integration_identifier invoice"),
    ...nulls("managed_payments origin_context payment_intent payment_method_configuration_details permissions"),
    ...nulls("recovered_from saved_payment_method_options setup_intent shipping_address_collection shipping_cost"),
    ...nulls("subscription wallet_options"),
    ...given(params, "allow_promotion_codes billing_address_collection cancel_url client_reference_id customer_email"),
    ...given(params, "locale submit_type success_url"),
    amount_subtotal: total,
    amount_total: total,
    automatic_tax: { enabled: false, liability: null, provider: null, status: null },
    collected_information: { business_name: null, individual_name: null, shipping_details: null },
    created: now,
    currency,
    custom_fields: customFieldsOf(params.custom_fields),
    custom_text: { after_submit: null, shipping_address: null, submit: null, terms_of_service_acceptance: null },
    customer_creation: payment ? (params.customer_creation ?? "if_required") : null,
    discounts: [],
    expires_at: params.expires_at ?? now + longestLife,
    invoice_creation: payment ? { enabled: false, invoice_data: noInvoiceData } : null,
    livemode: false,
    metadata: Params.patchMetadata({}, params.metadata),
    mode: params.mode,
    payment_link: paymentLink ?? null,
    payment_method_collection: payment ? "if_required" : "always",
    payment_method_options: { card: { request_three_d_secure: "automatic" } },
    payment_method_types: ["card"],
    payment_status: "unpaid",
    phone_number_collection: params.phone_number_collection ?? { enabled: false },
    shipping_options: [],
    status: "open",
    total_details: { amount_discount: 0, amount_shipping: 0, amount_tax: 0 },
    ui_mode: "hosted_page",
    url: `${baseUrl}/c/pay/${id}`
  }
}

/** Errors (400), each with `param`. */
export const createSession = Effect.fnUntraced(function* (context: RequestContext, params: SessionParams) {
  const { currency, sold } = yield* makeSale(context, params.line_items, params.currency)
  yield* checkMode(sold, params)
  yield* checkLines(sold, params)
  yield* checkCustomFields(params.custom_fields)
  yield* checkExpiry(context.now, params.expires_at)
  const trial = params.subscription_data?.trial_period_days !== undefined
  const items = sold.map((one) => makeItem(one, trial))
  yield* checkTotal(items, "line_items")
  // The provider collects a subscription's smaller amount with its next invoice
  if (params.mode === "payment") yield* checkMinimum(items, "line_items")
  const total = sumOf(items)
  const session = makeSession({ now: context.now, baseUrl: context.baseUrl, total, currency }, params)
  context.objects.put("checkout.session", session.id, session)
  context.objects.put("order", session.id, makeOrder(items, params))
  return session
})
