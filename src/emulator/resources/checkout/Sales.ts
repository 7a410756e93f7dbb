import { Effect, Schema } from "effect"
import { lineAmount, maximumCharge, minimumCharge } from "../../Amounts.ts"
import * as Params from "../../api/Params.ts"
import type { RequestContext } from "../../api/Route.ts"
import { newId } from "../../Ids.ts"
import { type Check, invalid, type ProviderError, resourceMissing } from "../../ProviderError.ts"
import { given, type LineItem, nulls, type Order, type Price, type Product } from "../../Records.ts"

export interface ItemParams {
  readonly price: string
  readonly quantity: number
}

export interface Sold {
  readonly price: Price
  readonly product: Product
  readonly quantity: number
}

export const paymentIntentDataParams = {
  description: Params.optional(Params.text(1_000)),
  metadata: Params.optional(Params.metadata),
  statement_descriptor: Params.optional(Params.text(22)),
  statement_descriptor_suffix: Params.optional(Params.text(22))
}

const subscriptionDataParams = Schema.Struct({
  description: Params.optional(Params.text(500)),
  metadata: Params.optional(Params.metadata),
  trial_period_days: Params.optional(Params.integer(1, 730))
})

/** The parameters that a checkout session and a payment link have in common. */
export const saleParams = {
  allow_promotion_codes: Params.optional(Params.boolean),
  billing_address_collection: Params.optional(Params.oneOf("auto", "required")),
  currency: Params.optional(Params.currency),
  customer_creation: Params.optional(Params.oneOf("always", "if_required")),
  metadata: Params.optional(Params.metadata),
  submit_type: Params.optional(Params.oneOf("auto", "book", "donate", "pay", "subscribe")),
  subscription_data: Params.optional(subscriptionDataParams)
}

/** The price of a line item. Both the price and its product must exist and be active. */
const soldAt = (
  context: RequestContext,
  { price: id, quantity }: ItemParams,
  index: number
): Effect.Effect<Sold, ProviderError> => {
  const param = `line_items[${index}][price]`
  const price = context.objects.get("price", id)
  const product = price === undefined ? undefined : context.objects.get("product", price.product)
  if (price === undefined || product === undefined) return resourceMissing("price", id, param)
  if (!price.active) {
    return invalid(param, `The price specified is inactive. This field only accepts active prices.`)
  }
  return product.active
    ? Effect.succeed({ price, product, quantity })
    : invalid(param, `The product of price ${id} is not active.`, "product_inactive")
}

const checkCurrencies = (sold: ReadonlyArray<Sold>, expected: string): Check => {
  const other = sold.findIndex(({ price }) => price.currency !== expected)
  return other < 0
    ? Effect.void
    : invalid(
        `line_items[${other}][price]`,
        `The price specified only supports \`${sold[other]?.price.currency}\`. This doesn't match the expected currency: \`${expected}\`.`
      )
}

/** Checks that a price whose amount the payer chooses is the only item, with a quantity of 1. */
const checkChosenAmount = (sold: ReadonlyArray<Sold>): Check => {
  const index = sold.findIndex(({ price }) => price.custom_unit_amount !== null)
  return index < 0 || (sold.length === 1 && sold[0]?.quantity === 1)
    ? Effect.void
    : invalid(
        `line_items[${index}]`,
        "A price with `custom_unit_amount` must be the only line item, with a quantity of 1."
      )
}

/** Checks that all recurring prices have the same interval, since they are billed together. */
const checkIntervals = (sold: ReadonlyArray<Sold>): Check => {
  const [first, ...others] = sold.flatMap(({ price }) => (price.recurring === null ? [] : [price.recurring]))
  return others.every((one) => one.interval === first?.interval && one.interval_count === first.interval_count)
    ? Effect.void
    : invalid("line_items", "Checkout does not support multiple prices with different billing intervals.")
}

export const isRecurring = (sold: ReadonlyArray<Sold>): boolean => sold.some(({ price }) => price.recurring !== null)

export const sumOf = (
  items: ReadonlyArray<LineItem>,
  field: "amount_subtotal" | "amount_discount" | "amount_total" = "amount_total"
): number => items.reduce((total, item) => total + item[field], 0)

/** Refuses a total above the provider's bound for its currency (400 `amount_too_large`). */
export const checkTotal = (items: ReadonlyArray<LineItem>, param: string): Check => {
  const maximum = maximumCharge(items[0]?.currency ?? "")
  return sumOf(items) <= maximum
    ? Effect.void
    : invalid(param, `The Checkout Session's total amount must be no more than ${maximum}.`, "amount_too_large")
}

/** Refuses a total below the provider's bound for its currency (400 `amount_too_small`), unless it is 0. */
export const checkMinimum = (items: ReadonlyArray<LineItem>, param: string): Check => {
  const minimum = minimumCharge(items[0]?.currency ?? "")
  const total = sumOf(items)
  return total === 0 || total >= minimum
    ? Effect.void
    : invalid(param, `The Checkout Session's total amount must be at least ${minimum}.`, "amount_too_small")
}

export interface Sale {
  readonly sold: ReadonlyArray<Sold>
  readonly currency: string
}

/** Errors (400), each with `param`: no items, unknown or inactive ones, and those that can't be sold together. */
export const makeSale = Effect.fnUntraced(function* (
  context: RequestContext,
  items: ReadonlyArray<ItemParams>,
  currency: string | undefined
) {
  const sold = yield* Effect.forEach(items, (item, index) => soldAt(context, item, index))
  const [first] = sold
  if (first === undefined) {
    return yield* invalid("line_items", "Missing required param: line_items.", "parameter_missing")
  }
  const expected = currency ?? first.price.currency
  yield* checkCurrencies(sold, expected)
  yield* checkChosenAmount(sold)
  yield* checkIntervals(sold)
  return { sold, currency: expected }
})

/** The amount due now; in a trial, recurring prices cost nothing. */
export const dueNow = (price: Price, quantity: number, trial: boolean): number =>
  trial && price.recurring !== null ? 0 : lineAmount(price, quantity)

export const makeItem = (
  { price, product, quantity }: Omit<Sold, "product"> & { readonly product: { readonly name: string | null } },
  trial: boolean,
  adjustable: LineItem["adjustable_quantity"] = null
): LineItem => {
  const amount = dueNow(price, quantity, trial)
  return {
    id: newId("li_"),
    object: "item",
    adjustable_quantity: adjustable,
    amount_discount: 0,
    amount_subtotal: amount,
    amount_tax: 0,
    amount_total: amount,
    currency: price.currency,
    description: product.name,
    metadata: {},
    price,
    quantity
  }
}

const paymentIntentData = Schema.Struct({ ...paymentIntentDataParams, receipt_email: Params.optional(Params.text()) })

interface OrderParams {
  readonly payment_intent_data?: typeof paymentIntentData.Type
  readonly subscription_data?: typeof subscriptionDataParams.Type
}

export const makeOrder = (items: ReadonlyArray<LineItem>, params: OrderParams): Order => ({
  items,
  paymentIntentData: {
    ...given(
      params.payment_intent_data ?? {},
      "description receipt_email statement_descriptor statement_descriptor_suffix"
    ),
    metadata: Params.patchMetadata({}, params.payment_intent_data?.metadata)
  },
  subscriptionData: {
    metadata: Params.patchMetadata({}, params.subscription_data?.metadata),
    description: params.subscription_data?.description ?? null,
    trialPeriodDays: params.subscription_data?.trial_period_days ?? null
  }
})

export const issuedBySelf = {
  ...nulls("account_tax_ids custom_fields description footer"),
  issuer: { type: "self" }
} as const

export const noInvoiceData = {
  ...nulls("account_tax_ids custom_fields description footer issuer rendering_options"),
  metadata: {}
}

export const soldItems = ({ objects }: RequestContext, { id }: { readonly id: string }) => ({
  items: objects.get("order", id)?.items ?? [],
  noun: "item"
})
