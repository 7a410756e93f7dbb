import { Effect, Schema, Struct } from "effect"
import * as Params from "../../api/Params.ts"
import type { RequestContext, Route } from "../../api/Route.ts"
import { newId } from "../../Ids.ts"
import { type Check, firstOf, invalid } from "../../ProviderError.ts"
import { type LineItem, nulls, type PaymentLink, type Session } from "../../Records.ts"
import { resource } from "../Resource.ts"
import {
  checkTotal,
  isRecurring,
  issuedBySelf,
  makeItem,
  makeOrder,
  makeSale,
  noInvoiceData,
  paymentIntentDataParams,
  type Sale,
  saleParams,
  soldItems,
  sumOf
} from "./Sales.ts"
import { makeSession } from "./SessionCreation.ts"

/** The provider's limits for an adjustable quantity, and the defaults. */
const largestQuantity = 999_999
const defaultMaximum = 99

const adjustableQuantity = Schema.Struct({
  enabled: Params.boolean,
  maximum: Params.optional(Params.integer(1, largestQuantity)),
  minimum: Params.optional(Params.integer(0, largestQuantity - 1))
})

const lineItem = Schema.Struct({
  adjustable_quantity: Params.optional(adjustableQuantity),
  price: Params.text(),
  quantity: Params.integer(1, largestQuantity)
})

type LineItemParams = typeof lineItem.Type

const afterCompletionParams = Schema.Struct({
  hosted_confirmation: Params.optional(Schema.Struct({ custom_message: Params.optional(Params.text(500)) })),
  redirect: Params.optional(Schema.Struct({ url: Params.url })),
  type: Params.oneOf("hosted_confirmation", "redirect")
})

const restrictionsParams = Schema.Struct({
  completed_sessions: Schema.Struct({ limit: Params.integer(1, 999_999) })
})

const paymentLinkParams = Schema.Struct({
  ...saleParams,
  after_completion: Params.optional(afterCompletionParams),
  inactive_message: Params.optional(Params.text(500)),
  line_items: Params.listOf(lineItem, 20),
  payment_intent_data: Params.optional(Schema.Struct(paymentIntentDataParams)),
  restrictions: Params.optional(restrictionsParams)
})

type LinkParams = typeof paymentLinkParams.Type

/** Checks that only the page named by `type` is described: the provider's or the shop's. */
const checkAfterCompletion = (params: typeof afterCompletionParams.Type | undefined): Check => {
  if (params === undefined) return Effect.void
  if (params.type === "redirect" && params.redirect === undefined) {
    return invalid(
      "after_completion[redirect]",
      "Missing required param: after_completion[redirect].",
      "parameter_missing"
    )
  }
  const other = params.type === "redirect" ? "hosted_confirmation" : "redirect"
  return params[other] === undefined
    ? Effect.void
    : invalid(`after_completion[${other}]`, `\`${other}\` cannot be set with the type \`${params.type}\`.`)
}

const checkQuantities = (items: ReadonlyArray<LineItemParams>): Check => {
  const wrong = items.findIndex(({ adjustable_quantity, quantity }) => {
    if (adjustable_quantity?.enabled !== true) return false
    const { maximum = Math.max(defaultMaximum, quantity), minimum = 0 } = adjustable_quantity
    return minimum > maximum || quantity < minimum || quantity > maximum
  })
  return wrong < 0
    ? Effect.void
    : invalid(
        `line_items[${wrong}][adjustable_quantity]`,
        "The quantity of a line item must lie between the `minimum` and the `maximum` of its `adjustable_quantity`."
      )
}

/** Checks that the data for payments is given for one-time prices only, that for subscriptions for recurring ones. */
const checkCarried = (
  recurs: boolean,
  data: { readonly payment_intent_data?: object; readonly subscription_data?: object }
): Check =>
  firstOf(
    !recurs &&
      data.subscription_data !== undefined &&
      invalid("subscription_data", "`subscription_data` can only be set for recurring prices."),
    recurs &&
      data.payment_intent_data !== undefined &&
      invalid("payment_intent_data", "`payment_intent_data` cannot be set for recurring prices.")
  )

const checkMode = Effect.fnUntraced(function* ({ sold }: Sale, params: LinkParams) {
  const chosen = sold.findIndex(({ price }) => price.custom_unit_amount !== null)
  if (chosen >= 0 && params.line_items[chosen]?.adjustable_quantity?.enabled === true) {
    return yield* invalid(
      `line_items[${chosen}][adjustable_quantity]`,
      "The quantity of a price with `custom_unit_amount` cannot be adjustable."
    )
  }
  yield* checkCarried(isRecurring(sold), params)
  if (isRecurring(sold) && params.customer_creation !== undefined) {
    yield* invalid("customer_creation", "`customer_creation` cannot be set for recurring prices.")
  }
})

const adjustableOf = ({ adjustable_quantity, quantity }: LineItemParams): LineItem["adjustable_quantity"] =>
  adjustable_quantity?.enabled === true
    ? {
        enabled: true,
        maximum: adjustable_quantity.maximum ?? Math.max(defaultMaximum, quantity),
        minimum: adjustable_quantity.minimum ?? 0
      }
    : null

const afterCompletionOf = (params: typeof afterCompletionParams.Type | undefined): PaymentLink["after_completion"] =>
  params?.redirect === undefined
    ? {
        hosted_confirmation: { custom_message: params?.hosted_confirmation?.custom_message ?? null },
        type: "hosted_confirmation"
      }
    : { redirect: { url: params.redirect.url }, type: "redirect" }

const noLinkPaymentData: NonNullable<PaymentLink["payment_intent_data"]> = {
  ...nulls("capture_method description setup_future_usage statement_descriptor statement_descriptor_suffix"),
  ...nulls("transfer_group"),
  metadata: {}
}

const makeLink = (baseUrl: string, { currency, sold }: Sale, params: LinkParams): PaymentLink => {
  const id = newId("plink_")
  const recurring = isRecurring(sold)
  const { paymentIntentData, subscriptionData } = makeOrder([], params)
  return {
    id,
    object: "payment_link",
    active: true,
    after_completion: afterCompletionOf(params.after_completion),
    allow_promotion_codes: params.allow_promotion_codes ?? false,
    ...nulls("application application_fee_amount application_fee_percent consent_collection managed_payments"),
    ...nulls("on_behalf_of payment_method_options payment_method_types shipping_address_collection transfer_data"),
    automatic_tax: { enabled: false, liability: null },
    billing_address_collection: params.billing_address_collection ?? "auto",
    currency,
    custom_fields: [],
    custom_text: { after_submit: null, shipping_address: null, submit: null, terms_of_service_acceptance: null },
    customer_creation: recurring ? "always" : (params.customer_creation ?? "if_required"),
    inactive_message: params.inactive_message ?? null,
    invoice_creation: recurring ? null : { enabled: false, invoice_data: noInvoiceData },
    livemode: false,
    metadata: Params.patchMetadata({}, params.metadata),
    payment_intent_data:
      params.payment_intent_data === undefined
        ? null
        : {
            ...noLinkPaymentData,
            ...Struct.omit(paymentIntentData, "receipt_email")
          },
    payment_method_collection: recurring ? "always" : "if_required",
    phone_number_collection: { enabled: false },
    restrictions:
      params.restrictions === undefined
        ? null
        : { completed_sessions: { count: 0, limit: params.restrictions.completed_sessions.limit } },
    shipping_options: [],
    submit_type: params.submit_type ?? "auto",
    subscription_data: recurring
      ? {
          description: subscriptionData.description,
          invoice_settings: issuedBySelf,
          metadata: subscriptionData.metadata,
          trial_period_days: subscriptionData.trialPeriodDays,
          trial_settings: null
        }
      : null,
    tax_id_collection: { enabled: false, required: "never" },
    url: `${baseUrl}/b/${id}`
  }
}

/** Errors (400): as for a checkout session, each with `param`. */
const createPaymentLink = Effect.fnUntraced(function* (context: RequestContext, params: LinkParams) {
  const sale = yield* makeSale(context, params.line_items, params.currency)
  yield* checkMode(sale, params)
  yield* checkQuantities(params.line_items)
  yield* checkAfterCompletion(params.after_completion)
  const trial = params.subscription_data?.trial_period_days !== undefined
  const adjustable = params.line_items.map(adjustableOf)
  const items = sale.sold.map((one, index) => makeItem(one, trial, adjustable[index]))
  yield* checkTotal(items, "line_items")
  const link = makeLink(context.baseUrl, sale, params)
  context.objects.put("order", link.id, makeOrder(items, params))
  return context.save("payment_link", "payment_link.created", link)
})

const updateParams = Schema.Struct({
  active: Params.optional(Params.boolean),
  after_completion: Params.optional(afterCompletionParams),
  allow_promotion_codes: Params.optional(Params.boolean),
  inactive_message: Params.optional(Params.clearable(Params.text(500))),
  metadata: Params.optional(Params.metadata),
  payment_intent_data: Params.optional(Schema.Struct({ metadata: Params.optional(Params.metadata) })),
  restrictions: Params.optional(Params.clearable(restrictionsParams)),
  subscription_data: Params.optional(Schema.Struct({ metadata: Params.optional(Params.metadata) }))
})

type UpdateParams = typeof updateParams.Type

const links = resource("/v1/payment_links", "payment_link")

const change = (context: RequestContext, before: PaymentLink, link: PaymentLink): PaymentLink =>
  context.save("payment_link", "payment_link.updated", link, before)

const restrictionsOf = (before: PaymentLink, params: UpdateParams): PaymentLink["restrictions"] => {
  if (params.restrictions === undefined) return before.restrictions
  if (params.restrictions === null) return null
  const count = before.restrictions?.completed_sessions.count ?? 0
  return { completed_sessions: { count, limit: params.restrictions.completed_sessions.limit } }
}

/** The metadata for the link's payments or subscriptions. Unlike an object's own, it is replaced as a whole. */
const carriedOf = (params: UpdateParams): Record<string, string> | undefined => {
  const carried = params.payment_intent_data?.metadata ?? params.subscription_data?.metadata
  return carried === undefined ? undefined : Params.patchMetadata({}, carried)
}

/** Also in its order, from which sessions are created. */
const carrying = (context: RequestContext, link: PaymentLink, metadata: Record<string, string>): PaymentLink => {
  const order = context.objects.get("order", link.id)
  if (order !== undefined) {
    context.objects.put("order", link.id, {
      ...order,
      paymentIntentData: { ...order.paymentIntentData, metadata },
      subscriptionData: { ...order.subscriptionData, metadata }
    })
  }
  return link.subscription_data === null
    ? { ...link, payment_intent_data: { ...(link.payment_intent_data ?? noLinkPaymentData), metadata } }
    : { ...link, subscription_data: { ...link.subscription_data, metadata } }
}

const update = Effect.fnUntraced(function* (context: RequestContext, params: UpdateParams, before: PaymentLink) {
  yield* checkAfterCompletion(params.after_completion)
  yield* checkCarried(before.subscription_data !== null, params)
  const metadata = yield* Params.changedMetadata(before.metadata, params.metadata)
  const carried = carriedOf(params)
  return change(context, before, {
    ...(carried === undefined ? before : carrying(context, before, carried)),
    active: params.active ?? before.active,
    after_completion:
      params.after_completion === undefined ? before.after_completion : afterCompletionOf(params.after_completion),
    allow_promotion_codes: params.allow_promotion_codes ?? before.allow_promotion_codes,
    inactive_message: params.inactive_message === undefined ? before.inactive_message : params.inactive_message,
    metadata,
    restrictions: restrictionsOf(before, params)
  })
})

export const isOpen = ({ active, restrictions }: PaymentLink): boolean =>
  active && (restrictions === null || restrictions.completed_sessions.count < restrictions.completed_sessions.limit)

export const openPaymentLink = (context: RequestContext, link: PaymentLink): Session | undefined => {
  const order = context.objects.get("order", link.id)
  if (order === undefined) return undefined
  const items = order.items.map((item) => ({ ...item, id: newId("li_") }))
  const recurring = items.some(({ price }) => price.recurring !== null)
  const { after_completion, allow_promotion_codes, currency, metadata, submit_type } = link
  const session: Session = {
    ...makeSession(
      {
        baseUrl: context.baseUrl,
        currency,
        now: context.now,
        paymentLink: link.id,
        total: sumOf(items)
      },
      {
        allow_promotion_codes,
        metadata,
        mode: recurring ? "subscription" : "payment",
        ...(after_completion.redirect === undefined ? {} : { success_url: after_completion.redirect.url })
      }
    ),
    billing_address_collection: link.billing_address_collection,
    customer_creation: recurring ? null : link.customer_creation,
    submit_type
  }
  context.objects.put("checkout.session", session.id, session)
  context.objects.put("order", session.id, { ...order, items })
  return session
}

/** The last sale that the limit allows closes the link (`payment_link.updated`). */
export const countSale = (context: RequestContext, session: Session): void => {
  const link = session.payment_link === null ? undefined : context.objects.get("payment_link", session.payment_link)
  if (link === undefined || link.restrictions === null) return
  const { count, limit } = link.restrictions.completed_sessions
  const counted: PaymentLink = { ...link, restrictions: { completed_sessions: { count: count + 1, limit } } }
  if (count + 1 < limit) context.objects.put("payment_link", link.id, counted)
  else change(context, link, { ...counted, active: false })
}

export const paymentLinkRoutes: ReadonlyArray<Route> = [
  links.create(paymentLinkParams, createPaymentLink),
  links.list(Params.optionals({ active: Params.boolean })),
  links.get,
  links.update(updateParams, update),
  links.parts("line_items", "item", soldItems)
]
