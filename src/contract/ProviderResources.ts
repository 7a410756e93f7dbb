/**
 * The provider's objects, field by field: those that integrations rely on (contract 4.1). The OpenAPI document
 * describes them, and the typed client reads them. The service itself passes an object through as the provider sends
 * it, unchecked, so that no change at the provider makes an answer fail. Hence only the id is required, every object is
 * open, and the client reads a field with an unexpected type as undefined.
 */
import { Effect, Option, Predicate, Schema, SchemaAST } from "effect"

type Document = Readonly<Record<string, unknown>>

/** A field as the client reads it, with its description in the document as an annotation. */
type Field<A> = Schema.optional<Schema.Schema<A | null | undefined>>

const field = <A>(schema: Schema.Schema<A>, jsonSchema: Document): Field<A> =>
  Schema.optional(
    Schema.asSchema(
      Schema.UndefinedOr(Schema.NullOr(schema)).annotations({
        jsonSchema,
        decodingFallback: () => Effect.succeed(undefined)
      })
    )
  )

const documentOf = ({ from }: Schema.optional<Schema.Schema.AnyNoContext>): Document => {
  const document = Option.getOrUndefined(SchemaAST.getJSONSchemaAnnotation(from.ast))
  return Predicate.isReadonlyRecord(document) ? document : {}
}

const AnyObject = Schema.Record({ key: Schema.String, value: Schema.Unknown })

const text = (description: string) => field(Schema.String, { type: "string", description })
const flag = (description: string) => field(Schema.Boolean, { type: "boolean", description })
const count = (description: string) => field(Schema.Int, { type: "integer", description })
const amount = (description: string) => count(`${description}, in the smallest currency unit`)
const unixSeconds = (description: string) => count(`${description}, in Unix seconds`)
const anyObject = (description: string) => field(AnyObject, { type: "object", description })

/** A field that may be null. Only the document makes this distinction: for the client, every field may be null. */
const orNull = <A>(of: Field<A>): Field<A> => {
  const document = documentOf(of)
  return Schema.optional(of.from.annotations({ jsonSchema: { ...document, type: [document["type"], "null"] } }))
}

/** An id, or the whole object if the provider expands it. */
const expandable = (description: string) =>
  field(Schema.Union(Schema.String, AnyObject), { type: ["string", "object", "null"], description })

const currency = text("Lowercase ISO 4217 code")
const created = unixSeconds("When it was created")
const livemode = flag("False in the sandbox")
const metadata = field(Schema.Record({ key: Schema.String, value: Schema.String }), {
  type: ["object", "null"],
  additionalProperties: { type: "string" },
  description: "Your own key-value pairs"
})
const active = flag("Whether it can be used")

type Fields = Readonly<Record<string, Schema.optional<Schema.Schema.AnyNoContext>>>

const properties = (fields: Fields): Document =>
  Object.fromEntries(Object.entries(fields).map(([name, of]) => [name, documentOf(of)]))

const kind = text("The kind of object")

/** An object with an id. */
const resource = <const F extends Fields>(name: string, description: string, fields: F) => ({
  name,
  document: {
    type: "object",
    description,
    required: ["id"],
    properties: {
      id: { type: "string", description: "The provider's object id" },
      ...properties({ object: kind, ...fields })
    }
  },
  schema: Schema.Struct({ id: Schema.String, object: kind, ...fields }, AnyObject)
})

/** An object without an id, of which an account has only one. */
const single = <const F extends Fields>(name: string, description: string, fields: F) => ({
  name,
  document: { type: "object", description, properties: properties(fields) },
  schema: Schema.Struct(fields, AnyObject)
})

const sums = (description: string) => {
  const sum = { amount: amount("The sum"), currency }
  return field(Schema.Array(Schema.Struct(sum, AnyObject)), {
    type: "array",
    items: { type: "object", properties: properties(sum) },
    description
  })
}

/** The resources by the group or the operation that returns them: the component's name, its document and its schema. */
export const providerResources = {
  products: resource("Product", "A product", {
    active,
    created,
    default_price: expandable("The price that it is sold at if none is named"),
    images: field(Schema.Array(Schema.String), {
      type: "array",
      items: { type: "string" },
      description: "URLs of its images"
    }),
    livemode,
    metadata,
    name: text("What payers see"),
    url: orNull(text("The URL of its page"))
  }),
  prices: resource("Price", "A price of a product", {
    active,
    created,
    currency,
    livemode,
    metadata,
    product: expandable("Its product"),
    type: text("`one_time` or `recurring`"),
    unit_amount: orNull(amount("The price of one unit; null if tiers or the payer decide"))
  }),
  checkoutSessions: resource(
    "CheckoutSession",
    "A checkout session; confirmed only if `status` is `complete` and `payment_status` is `paid`",
    {
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
      url: orNull(text("The page that the payer opens: only for the authorized payer, and not for logs"))
    }
  ),
  promotionCodes: resource("PromotionCode", "A promotion code with its coupon", {
    active,
    code: text("What payers enter"),
    coupon: orNull(anyObject("Its coupon")),
    created,
    expires_at: orNull(unixSeconds("When it expires")),
    livemode,
    max_redemptions: orNull(count("How often it can be used")),
    metadata,
    times_redeemed: count("How often it was used")
  }),
  paymentLinks: resource("PaymentLink", "A payment link", {
    active,
    currency,
    livemode,
    metadata,
    url: text("The page that payers open")
  }),
  paymentIntents: resource("PaymentIntent", "A payment", {
    amount: amount("What is to be paid"),
    amount_received: amount("What was received"),
    created,
    currency,
    latest_charge: expandable("Its last charge"),
    livemode,
    metadata,
    status: text("`succeeded` when paid")
  }),
  charges: resource("Charge", "A charge", {
    amount: amount("What was charged"),
    amount_refunded: amount("How much has been refunded so far"),
    created,
    currency,
    livemode,
    metadata,
    paid: flag("Whether it was paid"),
    payment_intent: expandable("Its payment"),
    refunded: flag("Whether the full amount was refunded"),
    status: text("`succeeded`, `pending` or `failed`")
  }),
  refunds: resource("Refund", "A refund", {
    amount: amount("What is refunded"),
    charge: expandable("The charge"),
    created,
    currency,
    metadata,
    payment_intent: expandable("The payment"),
    reason: orNull(text("Why")),
    status: orNull(text("`succeeded`, `pending` or `failed`"))
  }),
  subscriptions: resource("Subscription", "A subscription", {
    cancel_at_period_end: flag("Whether it ends with its period"),
    created,
    currency,
    customer: expandable("The customer"),
    livemode,
    metadata,
    status: text("Such as `active`, `past_due` or `canceled`")
  }),
  payouts: resource("Payout", "A payout", {
    amount: amount("What is paid out"),
    arrival_date: unixSeconds("When it is expected at the bank"),
    automatic: flag("Whether the payout schedule created it"),
    created,
    currency,
    failure_code: orNull(text("Why it failed")),
    livemode,
    metadata,
    status: text("Such as `paid`, `in_transit` or `failed`")
  }),
  balanceTransactions: resource("BalanceTransaction", "A movement of the account's balance", {
    amount: amount("What was moved"),
    created,
    currency,
    fee: amount("What the provider kept"),
    net: amount("What is left"),
    status: text("`available` or `pending`"),
    type: text("Such as `charge`, `refund` or `payout`")
  }),
  "account.get": resource("Account", "The connected account", {
    capabilities: anyObject("What it can do: each `active`, `inactive` or `pending`"),
    charges_enabled: flag("Whether it can accept payments"),
    country: text("Two-letter ISO 3166-1 code"),
    created,
    default_currency: orNull(currency),
    details_submitted: flag("Whether its owner has submitted the details that the provider requires"),
    metadata,
    payouts_enabled: flag("Whether it receives payouts"),
    requirements: orNull(anyObject("What the provider still requires of its owner")),
    type: text("How it is connected")
  }),
  "account.balance": single("Balance", "The account's balance by currency", {
    available: sums("What can be paid out"),
    livemode,
    object: kind,
    pending: sums("What is not available yet")
  })
}

/** The resource of an operation, for the document and the client. */
export interface ProviderResource {
  readonly name: string
  readonly document: Document
  readonly schema: Schema.Schema.AnyNoContext
}

const byPlace: Readonly<Record<string, ProviderResource>> = providerResources

/** The resource that an operation returns, by itself or as a page; undefined if it returns no known provider object. */
export const resourceOf = (group: string, operation: string): ProviderResource | undefined =>
  byPlace[`${group}.${operation}`] ?? byPlace[group]

/** A page of a resource, newest first. */
export const resourcePage = (name: string): Document => ({
  type: "object",
  description: "A page of objects, newest first",
  required: ["data", "has_more"],
  properties: {
    data: { type: "array", items: { $ref: `#/components/schemas/${name}` } },
    has_more: { type: "boolean" }
  }
})
