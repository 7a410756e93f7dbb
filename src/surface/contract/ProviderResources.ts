/**
 * The provider's objects, field by field: those that integrations rely on (contract 4.1). The OpenAPI document
 * describes them, and the typed client reads them. The service itself passes an object through as the provider sends
 * it, unchecked, so that no change at the provider makes an answer fail. Hence only the id is required, every object is
 * open, and the client reads a field with an unexpected type as undefined.
 */
import { Effect, JSONSchema, Schema, type SchemaAST } from "effect"
import { described, hasMore } from "../../platform/kit/Request.ts"

type Document = Readonly<Record<string, unknown>>

const prefix = "#/components/schemas/"

/** The components of the document that the fields refer to. */
export const definitions: Record<string, JSONSchema.JsonSchema7> = {}

/** A schema in the document: a reference if it has a name. */
const documentOf = ({ ast }: { readonly ast: SchemaAST.AST }): Document => ({
  ...JSONSchema.fromAST(ast, { definitions, definitionPath: prefix, target: "openApi3.1" })
})

/** A field as the client reads it, with its description in the document as an annotation. */
type Field<A> = Schema.optional<Schema.Schema<A | null | undefined>>

const field = <A>(schema: Schema.Schema<A>, description: string): Field<A> =>
  Schema.optional(
    Schema.asSchema(
      Schema.UndefinedOr(Schema.NullOr(schema)).annotations({
        jsonSchema: { ...documentOf(schema), description },
        decodingFallback: () => Effect.succeed(undefined)
      })
    )
  )

const Unknowns = Schema.Record({ key: Schema.String, value: Schema.Unknown })
const AnyObject = Unknowns.annotations({ identifier: "AnyObject", description: "Fields as the provider sends them" })
const Metadata = Schema.Record({ key: Schema.String, value: Schema.String }).annotations({ identifier: "Metadata" })

const text = (description: string) => field(Schema.String, description)
const flag = (description: string) => field(Schema.Boolean, description)
const count = (description: string) => field(Schema.Number.pipe(Schema.int()), description)
const amount = (description: string) => count(`${description}, in the smallest currency unit`)
const unixSeconds = (description: string) => count(`${description}, in Unix seconds`)
const anyObject = (description: string) => field(AnyObject, description)

/** A field that may be null. Only the document makes this distinction: for the client, every field may be null. */
const orNull = <A>(of: Field<A>): Field<A> => {
  const { description, ...document } = documentOf(of.from)
  return Schema.optional(
    of.from.annotations({
      jsonSchema:
        "$ref" in document
          ? { anyOf: [document, { type: "null" }], description }
          : { ...document, type: [document["type"], "null"], description }
    })
  )
}

/** The id of another object; the service never expands these (contract 4.13). */
const idOf = (of: string) => orNull(text(`The provider's id of ${of}; null if there is none`))

const currency = text("Lowercase ISO 4217 code")
const created = unixSeconds("When it was created")
const livemode = flag("False in the sandbox")
const metadata = orNull(
  field(Metadata, "Your own key-value pairs, up to 50; the provider stores them and shows them to no payer")
)

type Fields = Readonly<Record<string, Schema.optional<Schema.Schema.AnyNoContext>>>

const kind = text("The provider's name for the type of object")

/** An object with an id, and the page of a list of such objects. */
const resource = <const F extends Fields>(
  name: string,
  description: string,
  fields: F,
  [order, items] = ["A page of objects, newest first", "The items of this page"]
) => {
  const id = described(Schema.String, "The provider's id of the object, with a prefix for its kind")
  const schema = Schema.Struct({ id, object: kind, ...fields }, Unknowns).annotations({ identifier: name, description })
  const data = described(Schema.Array(schema), items)
  const page = Schema.Struct({ data, has_more: described(Schema.Boolean, hasMore) }, Unknowns).annotations({
    identifier: `${name}Page`,
    description: order
  })
  documentOf(page)
  return { name, schema, page }
}

const sums = (description: string) => {
  const sum = { amount: amount("The sum"), currency }
  return field(Schema.Array(Schema.Struct(sum, Unknowns).annotations({ identifier: "BalanceSum" })), description)
}

const Balance = Schema.Struct(
  {
    available: sums("The amounts that can be paid out"),
    livemode,
    object: kind,
    pending: sums("The amounts that are not available yet")
  },
  Unknowns
).annotations({ identifier: "Balance", description: "The account's balance by currency" })
documentOf(Balance)

const lineItem = resource(
  "LineItem",
  "A line of what a checkout session or a payment link sells",
  {
    amount_subtotal: amount("Before discounts and taxes"),
    amount_total: amount("After discounts and taxes"),
    currency,
    description: orNull(text("The product's name")),
    price: orNull(anyObject("Its price, with the product's id as `product`")),
    quantity: orNull(count("How many units are sold; null if the provider does not count them"))
  },
  ["A page of lines, in the order of the sale", "The lines, in the order of the sale"]
)

/** The resources by the group or the operation that returns them: the component's name, its document and its schema. */
export const providerResources = {
  products: resource("Product", "A product", {
    active: flag("False once it was taken off sale; its past sales are unchanged"),
    created,
    default_price: orNull(anyObject("The default price, without tiers")),
    description: orNull(text("The text beneath the name")),
    images: field(Schema.Array(Schema.String), "URLs of its images"),
    livemode,
    metadata,
    name: text("The name that payers see"),
    updated: unixSeconds("When it was changed last"),
    url: orNull(text("The URL of its page"))
  }),
  prices: resource("Price", "A price of a product", {
    active: flag("False once nothing more can be sold at it; existing subscriptions continue"),
    billing_scheme: text("`per_unit`, or `tiered` for a price with tiers"),
    created,
    currency,
    livemode,
    lookup_key: orNull(text("Your own name for it, by which it can be listed")),
    metadata,
    nickname: orNull(text("A note about it, which payers don't see")),
    product: idOf("its product"),
    recurring: orNull(anyObject("The billing interval; null if it is charged once")),
    tiers: field(Schema.Array(AnyObject), "The tiers of a price that has them"),
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
      payment_intent: idOf("the payment, to compare with your order"),
      payment_status: text("`unpaid`, `paid`, or `no_payment_required`"),
      status: orNull(text("`open`, `complete` when the payer has finished, or `expired`")),
      subscription: idOf("the subscription that the session began"),
      url: orNull(text("The URL that the payer opens: only for the authorized payer, and not for logs"))
    }
  ),
  "checkoutSessions.lineItems": lineItem,
  promotionCodes: resource("PromotionCode", "A promotion code with its coupon", {
    active: flag("False if payers can't use it: switched off, expired or used up"),
    code: text("The code that payers enter"),
    coupon: orNull(anyObject("The discount, its duration, and the products that it applies to")),
    created,
    expires_at: orNull(unixSeconds("When it expires")),
    livemode,
    max_redemptions: orNull(count("The number of times it can be used")),
    metadata,
    times_redeemed: count("The number of times it was used")
  }),
  "paymentLinks.lineItems": lineItem,
  paymentLinks: resource("PaymentLink", "A payment link", {
    active: flag("False if the link is closed; payers then see its message"),
    currency,
    line_items: anyObject("Everything that it sells: a list with the lines in `data`"),
    livemode,
    metadata,
    url: text("The URL that payers open; it can be paid many times and given to anybody")
  }),
  paymentIntents: resource("PaymentIntent", "A payment", {
    amount: amount("The amount to be paid"),
    amount_received: amount("The amount received"),
    created,
    currency,
    latest_charge: idOf("its last charge"),
    livemode,
    metadata,
    status: text("`succeeded` once paid; before that what it waits for, such as `requires_payment_method`")
  }),
  charges: resource("Charge", "A charge", {
    amount: amount("The amount charged"),
    amount_refunded: amount("How much has been refunded so far"),
    created,
    currency,
    livemode,
    metadata,
    paid: flag("True if it succeeded, or was authorized to be captured later"),
    payment_intent: idOf("its payment"),
    refunded: flag("Whether the full amount was refunded"),
    status: text("`succeeded`, `pending` or `failed`")
  }),
  refunds: resource("Refund", "A refund", {
    amount: amount("The amount refunded"),
    charge: idOf("the charge"),
    created,
    currency,
    metadata,
    payment_intent: idOf("the payment"),
    reason: orNull(text("`duplicate`, `fraudulent` or `requested_by_customer`; null if none was given")),
    status: orNull(
      text(
        "`pending`, `requires_action` (the payer has to say where the money goes), `succeeded` (it can still fail later), `failed` or `canceled` (the payer gets nothing)"
      )
    )
  }),
  disputes: resource("Dispute", "A dispute of a payment", {
    amount: amount("The disputed amount"),
    charge: idOf("the charge"),
    created,
    currency,
    evidence: orNull(anyObject("The evidence that was submitted; only with the permission `customers:read`")),
    evidence_details: orNull(anyObject("Until when evidence is accepted (`due_by`, Unix seconds), and its state")),
    livemode,
    metadata,
    payment_intent: idOf("the payment"),
    reason: text("Such as `fraudulent` or `product_not_received`"),
    status: text("Such as `needs_response`, `under_review`, `won` or `lost`")
  }),
  customers: resource("Customer", "A customer; all fields that name a person need the permission `customers:read`", {
    created,
    currency: orNull(currency),
    deleted: flag("True if it was deleted at the provider; absent otherwise"),
    delinquent: orNull(flag("Whether its latest invoice is unpaid")),
    email: orNull(text("Only with the permission `customers:read`")),
    livemode,
    metadata,
    name: orNull(text("Only with the permission `customers:read`"))
  }),
  subscriptions: resource("Subscription", "A subscription", {
    cancel_at: orNull(unixSeconds("When it ends, if it was canceled at the end of its period")),
    cancel_at_period_end: flag("Whether it ends with its period"),
    created,
    currency,
    customer: idOf("the customer"),
    livemode,
    metadata,
    status: text("Such as `active`, `past_due` or `canceled`")
  }),
  payouts: resource("Payout", "A payout", {
    amount: amount("The amount paid out"),
    arrival_date: unixSeconds("When it is expected at the bank"),
    automatic: flag("Whether the payout schedule created it"),
    created,
    currency,
    failure_code: orNull(text("The provider's code for the failure; null if it did not fail")),
    livemode,
    metadata,
    status: text("Such as `paid`, `in_transit` or `failed`")
  }),
  balanceTransactions: resource("BalanceTransaction", "A movement of the account's balance", {
    amount: amount("The gross amount"),
    created,
    currency,
    fee: amount("The provider's fee"),
    net: amount("The net amount"),
    status: text("`available` or `pending`"),
    type: text("Such as `charge`, `refund` or `payout`")
  }),
  "account.get": resource("Account", "The connected account", {
    capabilities: anyObject("Its capabilities, each `active`, `inactive` or `pending`"),
    charges_enabled: flag("Whether it can accept payments"),
    country: text("Two-letter ISO 3166-1 code"),
    created,
    default_currency: orNull(currency),
    details_submitted: flag("Whether its owner has submitted the details that the provider requires"),
    metadata,
    payouts_enabled: flag("Whether it receives payouts"),
    requirements: orNull(anyObject("The information that the provider still requires from its owner")),
    type: text("The provider's type of the account, such as `standard`, `express` or `custom`")
  }),
  "account.balance": { name: "Balance", schema: Balance }
}

/** The resource of an operation, for the document and the client. */
export interface ProviderResource {
  readonly name: string
  readonly schema: Schema.Schema.AnyNoContext
  /** Undefined if there is only one. */
  readonly page?: Schema.Schema.AnyNoContext
}

const byPlace: Readonly<Record<string, ProviderResource>> = providerResources

/** The resource that an operation returns, alone or in a page; undefined if it returns no known provider object. */
export const resourceOf = (group: string, operation: string): ProviderResource | undefined =>
  byPlace[`${group}.${operation}`] ?? byPlace[group]
