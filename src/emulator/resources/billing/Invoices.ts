import { storedList } from "../../api/Lists.ts"
import * as Params from "../../api/Params.ts"
import type { RequestContext, Route } from "../../api/Route.ts"
import { newId } from "../../Ids.ts"
import {
  type Customer,
  type Invoice,
  type InvoiceLine,
  type InvoicePayment,
  type LineItem,
  nulls,
  type Subscription
} from "../../Records.ts"
import { sumOf } from "../checkout/Sales.ts"
import { resource } from "../Resource.ts"

const filters = Params.optionals({
  collection_method: Params.oneOf("charge_automatically", "send_invoice"),
  created: Params.range,
  customer: Params.text(),
  status: Params.oneOf("draft", "open", "paid", "uncollectible", "void"),
  subscription: Params.text()
})

const invoices = resource("/v1/invoices", "invoice")

export const invoiceRoutes: ReadonlyArray<Route> = [
  invoices.list(filters, {
    matches: {
      subscription: ({ parent: { subscription_details: details } }, asked = details.subscription) =>
        details.subscription === asked
    }
  }),
  invoices.get,
  invoices.parts("lines", "line_item", (_, { lines }) => ({ items: lines.data, noun: "line item" }))
]

interface InvoiceTerms {
  readonly customer: Customer
  readonly subscription: Subscription
  readonly items: ReadonlyArray<LineItem>
  readonly reason: "subscription_create" | "subscription_cycle"
  /** The discount, which is already deducted from the items' amounts. */
  readonly discount: string | undefined
  /** Null if there was nothing to pay. */
  readonly paymentIntent: string | null
  readonly paid: boolean
}

/** The parent of a line: its subscription item if it recurs, otherwise an invoice item of its own. */
const parentOf = ({ price }: LineItem, subscription: Subscription): InvoiceLine["parent"] => {
  const item = subscription.items.data.find((candidate) => candidate.price.id === price.id)
  return item === undefined
    ? {
        invoice_item_details: {
          invoice_item: newId("ii_"),
          proration: false,
          proration_details: { credited_items: null },
          subscription: subscription.id
        },
        subscription_item_details: null,
        type: "invoice_item_details"
      }
    : {
        invoice_item_details: null,
        subscription_item_details: {
          invoice_item: null,
          proration: false,
          proration_details: { credited_items: null },
          subscription: subscription.id,
          subscription_item: item.id
        },
        type: "subscription_item_details"
      }
}

const makeLine = (invoice: string, item: LineItem, terms: InvoiceTerms): InvoiceLine => {
  const { discount, subscription } = terms
  const period = subscription.items.data.find(({ price }) => price.id === item.price.id)
  return {
    id: newId("il_"),
    object: "line_item",
    amount: item.amount_subtotal,
    currency: item.currency,
    description: `${item.quantity} × ${item.description ?? item.price.id}`,
    discount_amounts: discount === undefined ? [] : [{ amount: item.amount_discount, discount }],
    discountable: true,
    discounts: discount === undefined ? [] : [discount],
    invoice,
    livemode: false,
    metadata: subscription.metadata,
    parent: parentOf(item, subscription),
    period: {
      end: period?.current_period_end ?? subscription.start_date,
      start: period?.current_period_start ?? subscription.start_date
    },
    pretax_credit_amounts: [],
    pricing: {
      price_details: { price: item.price.id, product: item.price.product },
      type: "price_details",
      unit_amount_decimal: item.price.unit_amount_decimal
    },
    quantity: item.quantity,
    quantity_decimal: String(item.quantity),
    subscription: subscription.id,
    subtotal: item.amount_subtotal,
    taxes: []
  }
}

const makePayment = (
  { now }: RequestContext,
  invoice: string,
  total: number,
  { paid, paymentIntent, subscription }: InvoiceTerms
): ReadonlyArray<InvoicePayment> =>
  paymentIntent === null
    ? []
    : [
        {
          id: newId("inpay_"),
          object: "invoice_payment",
          amount_paid: paid ? total : null,
          amount_requested: total,
          created: now,
          currency: subscription.currency,
          invoice,
          is_default: true,
          livemode: false,
          payment: { payment_intent: paymentIntent, type: "payment_intent" },
          status: paid ? "paid" : "open",
          status_transitions: { canceled_at: null, paid_at: paid ? now : null }
        }
      ]

/** The fields that are the same for every invoice. */
const sameForAll = {
  object: "invoice",
  ...nulls("account_tax_ids application automatically_finalizes_at custom_fields customer_account"),
  ...nulls("customer_address customer_name customer_phone customer_shipping default_payment_method default_source"),
  ...nulls("description due_date footer from_invoice hosted_invoice_url invoice_pdf last_finalization_error"),
  ...nulls("latest_revision on_behalf_of receipt_number rendering shipping_cost shipping_details"),
  ...nulls("statement_descriptor test_clock webhooks_delivered_at"),
  amount_overpaid: 0,
  amount_shipping: 0,
  attempted: true,
  automatic_tax: { disabled_reason: null, enabled: false, liability: null, provider: null, status: null },
  collection_method: "charge_automatically",
  customer_tax_exempt: "none",
  customer_tax_ids: [],
  default_tax_rates: [],
  ending_balance: 0,
  issuer: { type: "self" },
  livemode: false,
  metadata: {},
  payment_settings: { default_mandate: null, payment_method_options: null, payment_method_types: null },
  post_payment_credit_notes_amount: 0,
  pre_payment_credit_notes_amount: 0,
  starting_balance: 0,
  total_pretax_credit_amounts: [],
  total_taxes: []
} as const

const amountsOf = ({ discount, items, paid }: InvoiceTerms) => {
  const subtotal = sumOf(items, "amount_subtotal")
  const total = sumOf(items)
  return {
    amount_due: total,
    amount_paid: paid ? total : 0,
    amount_remaining: paid ? 0 : total,
    subtotal,
    subtotal_excluding_tax: subtotal,
    total,
    total_discount_amounts: discount === undefined ? [] : [{ amount: sumOf(items, "amount_discount"), discount }],
    total_excluding_tax: total
  }
}

export const makeInvoice = (context: RequestContext, terms: InvoiceTerms): Invoice => {
  const { customer, discount, items, paid, paymentIntent, reason, subscription } = terms
  const { now } = context
  const id = newId("in_")
  const amounts = amountsOf(terms)
  const account = context.platform.objects.get("account", context.account)
  const sequence = String(customer.next_invoice_sequence ?? 1).padStart(4, "0")
  return {
    ...sameForAll,
    ...amounts,
    id,
    account_country: account?.country ?? null,
    account_name: account?.business_profile?.name ?? null,
    attempt_count: paymentIntent === null ? 0 : 1,
    auto_advance: !paid,
    billing_reason: reason,
    created: now,
    currency: subscription.currency,
    customer: customer.id,
    customer_email: customer.email,
    discounts: discount === undefined ? [] : [discount],
    effective_at: now,
    lines: storedList(
      items.map((item) => makeLine(id, item, terms)),
      `/v1/invoices/${id}/lines`
    ),
    next_payment_attempt: paid ? null : now + 3 * 24 * 60 * 60,
    number: `${customer.invoice_prefix ?? customer.id}-${sequence}`,
    parent: {
      quote_details: null,
      subscription_details: { metadata: subscription.metadata, subscription: subscription.id },
      type: "subscription_details"
    },
    payments: storedList(makePayment(context, id, amounts.total, terms), `/v1/invoice_payments?invoice=${id}`),
    period_end: now,
    period_start: now,
    status: paid ? "paid" : "open",
    status_transitions: {
      finalized_at: now,
      marked_uncollectible_at: null,
      paid_at: paid ? now : null,
      voided_at: null
    }
  }
}

/** Stores an invoice. Events: that it was created and finalized, and that it is paid or that its payment failed. */
export const issue = ({ emit, objects }: RequestContext, invoice: Invoice): void => {
  objects.put("invoice", invoice.id, invoice)
  const outcome =
    invoice.status === "paid"
      ? (["invoice.paid", "invoice.payment_succeeded"] as const)
      : (["invoice.payment_failed"] as const)
  for (const type of ["invoice.created", "invoice.finalized", ...outcome] as const) {
    emit({ type, shape: "invoice", object: invoice })
  }
}
