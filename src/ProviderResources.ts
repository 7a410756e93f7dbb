/**
 * What the OpenAPI document says of the provider's objects, field by field: those that integrations rely on (contract,
 * Provider objects). For readers and for generators of clients alone. An object is passed through as the provider sends
 * it and held against nothing, so that a change at the provider fails no answer: hence no field is required but the id,
 * and every object is open.
 */

type Field = Readonly<Record<string, unknown>>

const text = (description: string): Field => ({ type: "string", description })
const orNull = ({ description, type, ...field }: Field): Field => ({ ...field, type: [type, "null"], description })
const flag = (description: string): Field => ({ type: "boolean", description })
const amount = (description: string): Field => ({
  type: "integer",
  description: `${description}, in the smallest currency unit`
})
const unixSeconds = (description: string): Field => ({
  type: "integer",
  description: `${description}, in Unix seconds`
})

/** Ids that the provider answers as the whole object where it expands them. */
const expandable = (description: string): Field => ({ type: ["string", "object", "null"], description })

const currency = text("Lowercase ISO 4217 code")
const created = unixSeconds("When it was created")
const livemode = flag("False in the sandbox")
const metadata: Field = {
  type: ["object", "null"],
  additionalProperties: { type: "string" },
  description: "Your own key-value pairs"
}
const active = flag("Whether it can be used")

const resource = (description: string, fields: Readonly<Record<string, Field>>): Field => ({
  type: "object",
  description,
  required: ["id"],
  properties: { id: text("The provider's object id"), object: text("The kind of object"), ...fields }
})

/** By the group of operations that answers it: the component's name, and its schema. */
export const providerResources: Readonly<Record<string, { readonly name: string; readonly schema: Field }>> = {
  products: {
    name: "Product",
    schema: resource("A product", {
      active,
      created,
      default_price: expandable("The price that it is sold at where none is named"),
      images: { type: "array", items: { type: "string" }, description: "URLs of its images" },
      livemode,
      metadata,
      name: text("What payers see"),
      url: orNull(text("Its page"))
    })
  },
  prices: {
    name: "Price",
    schema: resource("A price of a product", {
      active,
      created,
      currency,
      livemode,
      metadata,
      product: expandable("Its product"),
      type: text("`one_time` or `recurring`"),
      unit_amount: orNull(amount("What one costs; null where tiers or the payer decide"))
    })
  },
  checkoutSessions: {
    name: "CheckoutSession",
    schema: resource("A checkout session; confirmed only where `status` is `complete` and `payment_status` is `paid`", {
      amount_total: orNull(amount("The total after discounts and taxes")),
      client_reference_id: orNull(text("Your own reference of the order")),
      created,
      currency: orNull(currency),
      livemode,
      metadata,
      mode: text("`payment` or `subscription`"),
      payment_intent: expandable("The payment; compare it with the order"),
      payment_status: text("`paid` when paid"),
      status: orNull(text("`complete` when finished")),
      subscription: expandable("The subscription, in that mode"),
      url: orNull(text("The page that the payer opens: for the authorized payer alone, and not for logs"))
    })
  },
  promotionCodes: {
    name: "PromotionCode",
    schema: resource("A promotion code with its coupon", {
      active,
      code: text("What payers enter"),
      coupon: { type: ["object", "null"], description: "Its coupon" },
      created,
      expires_at: orNull(unixSeconds("When it expires")),
      livemode,
      max_redemptions: { type: ["integer", "null"], description: "How often it can be used" },
      metadata,
      times_redeemed: { type: "integer", description: "How often it was used" }
    })
  },
  paymentLinks: {
    name: "PaymentLink",
    schema: resource("A payment link", {
      active,
      currency,
      livemode,
      metadata,
      url: text("The page that payers open")
    })
  },
  paymentIntents: {
    name: "PaymentIntent",
    schema: resource("A payment", {
      amount: amount("What is to be paid"),
      amount_received: amount("What was received"),
      created,
      currency,
      latest_charge: expandable("Its last charge"),
      livemode,
      metadata,
      status: text("`succeeded` when paid")
    })
  },
  charges: {
    name: "Charge",
    schema: resource("A charge", {
      amount: amount("What was charged"),
      amount_refunded: amount("All that was refunded so far"),
      created,
      currency,
      livemode,
      metadata,
      paid: flag("Whether it was paid"),
      payment_intent: expandable("Its payment"),
      refunded: flag("Whether all of it was refunded"),
      status: text("`succeeded`, `pending` or `failed`")
    })
  },
  refunds: {
    name: "Refund",
    schema: resource("A refund", {
      amount: amount("What is refunded"),
      charge: expandable("The charge"),
      created,
      currency,
      metadata,
      payment_intent: expandable("The payment"),
      reason: orNull(text("Why")),
      status: orNull(text("`succeeded`, `pending` or `failed`"))
    })
  },
  subscriptions: {
    name: "Subscription",
    schema: resource("A subscription", {
      cancel_at_period_end: flag("Whether it ends with its period"),
      created,
      currency,
      customer: expandable("The customer"),
      livemode,
      metadata,
      status: text("Such as `active`, `past_due` or `canceled`")
    })
  },
  payouts: {
    name: "Payout",
    schema: resource("A payout", {
      amount: amount("What is paid out"),
      arrival_date: unixSeconds("When it is expected at the bank"),
      automatic: flag("Whether the schedule made it"),
      created,
      currency,
      failure_code: orNull(text("Why it failed")),
      livemode,
      metadata,
      status: text("Such as `paid`, `in_transit` or `failed`")
    })
  },
  balanceTransactions: {
    name: "BalanceTransaction",
    schema: resource("A movement of the account's balance", {
      amount: amount("What was moved"),
      created,
      currency,
      fee: amount("What the provider kept"),
      net: amount("What is left"),
      status: text("`available` or `pending`"),
      type: text("Such as `charge`, `refund` or `payout`")
    })
  }
}

/** A page of a resource, newest first. */
export const resourcePage = (name: string): Field => ({
  type: "object",
  description: "A page of objects, newest first",
  required: ["data", "has_more"],
  properties: {
    data: { type: "array", items: { $ref: `#/components/schemas/${name}` } },
    has_more: { type: "boolean" }
  }
})
