import { randomUUID } from "node:crypto"
import { expect } from "@effect/vitest"
import { Context, Effect, Layer, Option, type Schema, SchemaAST } from "effect"
import { type Operation, operationKey, takesBody } from "../../../src/surface/contract/Operations.ts"
import { someOf } from "../../harness/Corpus.ts"
import { onSharedService, TestService } from "../../harness/TestService.ts"
import { expectFailure, sendBytes } from "./Refusals.ts"
import {
  attemptsThatChangeNothing,
  authenticatedOperations,
  changesNothing,
  isProviderOperation,
  makeThings,
  optionsOf,
  pathOf,
  sampleOf,
  type Things
} from "./Samples.ts"

class Fixture extends Context.Tag("test/BadInput/Fixture")<Fixture, { readonly things: Things }>() {
  static readonly layer = Layer.effect(
    Fixture,
    Effect.gen(function* () {
      const service = yield* TestService
      const { id: organizationId, testKey: key } = service.organization
      return { things: yield* makeThings(service, { organizationId, key }) }
    })
  )
}

type Kind = "string" | "number" | "boolean" | "array" | "object"

const valuesOfKinds: Readonly<Record<Kind, unknown>> = {
  string: "text",
  number: 12_345,
  boolean: true,
  array: ["text"],
  object: { key: "value" }
}

const kindOf = (ast: SchemaAST.AST): Kind => {
  switch (ast._tag) {
    case "StringKeyword":
      return "string"
    case "NumberKeyword":
      return "number"
    case "BooleanKeyword":
      return "boolean"
    case "TupleType":
      return "array"
    case "TypeLiteral":
    // Such as filters, which are judged after the rest of the body
    case "Declaration":
      return "object"
    case "Literal":
      return kindOf(typeof ast.literal === "string" ? SchemaAST.stringKeyword : SchemaAST.numberKeyword)
    case "Refinement":
      return kindOf(ast.from)
    case "Union":
      return kindOf(ast.types[0] ?? SchemaAST.neverKeyword)
    default:
      throw new Error(`What JSON is a ${ast._tag}? Say so in kindOf`)
  }
}

interface Field {
  readonly name: string
  readonly kind: Kind
  readonly nullable: boolean
  readonly required: boolean
}

/** The fields of a body or a query, as they are on the wire. */
const fieldsOf = (schema: Schema.Schema.All): ReadonlyArray<Field> =>
  SchemaAST.getPropertySignatures(SchemaAST.encodedAST(schema.ast)).map(({ isOptional, name, type }) => ({
    name: String(name),
    kind: kindOf(type),
    nullable:
      SchemaAST.isUnion(type) && type.types.some((member) => SchemaAST.isLiteral(member) && member.literal === null),
    required: !isOptional
  }))

const sendBody = (operation: Operation, body: unknown) =>
  Effect.gen(function* () {
    const { organization, request } = yield* TestService
    const { things } = yield* Fixture
    const { headers } = optionsOf(operation, things)
    const key = organization.testKey
    return yield* request(operation.method, pathOf(operation, organization.id, things), { key, headers, body })
  })

const get = (path: string) =>
  Effect.flatMap(TestService, ({ organization, request }) =>
    request("GET", `/v2/organizations/${organization.id}${path}`, { key: organization.testKey })
  )

const refused = (fields: ReadonlyArray<string>) => ({ status: 422, code: "validation_failed", fields })

/** Refused requests don't mind each other: some of them are sent at once. */
const eachOf = <A, E, R>(
  attempts: ReadonlyArray<A>,
  send: (attempt: A) => Effect.Effect<unknown, E, R>,
  turn?: number
) => Effect.forEach(someOf(attempts, turn), send, { concurrency: 8, discard: true })

const unsupported = { status: 415, code: "unsupported_media_type", fields: [] }

/** What an operation without a body refuses as one; media types other than JSON's are given. */
const unreadBodies: ReadonlyArray<
  Parameters<typeof expectFailure>[1] & { readonly raw: string; readonly type?: Readonly<Record<string, string>> }
> = [
  { raw: '{"at_period_end":true,"foo":1}', ...refused(["at_period_end", "foo"]) },
  ...["{", "[]", "7", '"text"', "[{}]", "\0"].map((raw) => ({ raw, ...refused([]) })),
  { raw: "{}", type: {}, ...unsupported },
  { raw: "a=b", type: { "content-type": "text/plain" }, ...unsupported },
  { raw: `{"a":"${"x".repeat(300_000)}"}`, status: 413, code: "payload_too_large" },
  {
    raw: JSON.stringify(Object.fromEntries(Array.from({ length: 20_000 }, (_, index) => [`k${index}`, 1]))),
    status: 422,
    code: "validation_failed"
  }
]

/** Values out of bounds for each body field with bounds: what is put over the good body, and what is named. */
const outOfBounds: Readonly<
  Record<string, ReadonlyArray<readonly [change: Readonly<Record<string, unknown>>, fields: ReadonlyArray<string>]>>
> = {
  "POST /v2/organizations/:organizationId/provider/products": [
    [{ name: "" }, ["name"]],
    [{ name: "a".repeat(251) }, ["name"]],
    [{ images: Array.from({ length: 9 }, (_, index) => `https://shop.example/${index}.png`) }, ["images"]],
    [{ images: ["http://shop.example/a.png"] }, ["images.0"]],
    [{ images: ["https://shop.example/a\n.png", "https://shop.example/\u0000"] }, ["images.0", "images.1"]],
    [{ url: "https://shop.example/a b" }, ["url"]],
    [{ name: "😀".repeat(251) }, ["name"]],
    [{ description: "" }, ["description"]],
    [{ description: "a".repeat(40_001) }, ["description"]],
    [{ images: ["https://shop.example/a.png", "nonsense"] }, ["images.1"]],
    [{ url: "http://shop.example" }, ["url"]],
    [{ url: "javascript:alert(1)" }, ["url"]],
    [{ statement_descriptor: "12345" }, ["statement_descriptor"]],
    [{ statement_descriptor: "A".repeat(23) }, ["statement_descriptor"]],
    [{ statement_descriptor: "<SHOP>" }, ["statement_descriptor"]],
    [{ unit_label: "a".repeat(13) }, ["unit_label"]],
    [{ marketing_features: Array.from({ length: 16 }, () => ({ name: "x" })) }, ["marketing_features"]],
    [{ marketing_features: [{ name: "a".repeat(81) }] }, ["marketing_features.0.name"]],
    [{ marketing_features: [{ name: "x", extra: 1 }] }, ["marketing_features.0.extra"]],
    [{ metadata: Object.fromEntries(Array.from({ length: 51 }, (_, index) => [`k${index}`, "v"])) }, ["metadata"]],
    [{ metadata: { key: "a".repeat(501) } }, ["metadata.key"]],
    [{ metadata: { key: 1 } }, ["metadata.key"]]
  ],
  "PATCH /v2/organizations/:organizationId/provider/products/:id": [
    [{ name: "" }, ["name"]],
    [{ name: "a".repeat(251) }, ["name"]],
    [{ images: Array.from({ length: 9 }, (_, index) => `https://shop.example/${index}.png`) }, ["images"]],
    [{ images: ["ftp://shop.example/a.png"] }, ["images.0"]],
    [{ url: "http://shop.example" }, ["url"]],
    [{ url: " " }, ["url"]],
    [{ statement_descriptor: "" }, ["statement_descriptor"]],
    [{ unit_label: "a".repeat(13) }, ["unit_label"]],
    [{ description: "a".repeat(40_001) }, ["description"]],
    [{ description: ["a"] }, ["description"]],
    [{ default_price: "ab" }, ["default_price"]],
    [{ default_price_data: { unit_amount: 5 } }, ["default_price_data.currency"]],
    [{ default_price_data: { currency: "brl", unit_amount: -1 } }, ["default_price_data.unit_amount"]],
    [{ metadata: { "a[b]": "c" } }, ["metadata.a[b]"]],
    [{ id: "prod_123" }, ["id"]]
  ],
  "POST /v2/organizations/:organizationId/provider/promotion-codes": [
    [{ code: "AB" }, ["code"]],
    [{ code: "A".repeat(41) }, ["code"]],
    [{ code: "SUMMER-25" }, ["code"]],
    [{ code: "VERÃO" }, ["code"]],
    [{ discount: {} }, ["discount"]],
    [{ discount: { percent_off: 0 } }, ["discount.percent_off"]],
    [{ discount: { percent_off: 101 } }, ["discount.percent_off"]],
    [{ discount: { amount_off: 0, currency: "brl" } }, ["discount.amount_off"]],
    [{ discount: { amount_off: 1_000_000_000_000, currency: "brl" } }, ["discount.amount_off"]],
    [{ discount: { amount_off: 5, currency: "BRL" } }, ["discount.currency"]],
    [{ discount: { amount_off: 5 } }, ["discount.currency"]],
    [{ discount: { percent_off: 5, amount_off: 5, currency: "brl" } }, ["discount.amount_off"]],
    [{ duration: "monthly" }, ["duration"]],
    [{ duration: "once" }, ["duration_in_months"]],
    [{ duration_in_months: 0 }, ["duration_in_months"]],
    [{ duration_in_months: 37 }, ["duration_in_months"]],
    [{ max_redemptions: 0 }, ["max_redemptions"]],
    [{ max_redemptions: 1_000_001 }, ["max_redemptions"]],
    [{ expires_at: -1 }, ["expires_at"]],
    [{ expires_at: 4_102_444_801 }, ["expires_at"]],
    [{ expires_at: 1.5 }, ["expires_at"]],
    [{ products: [] }, ["products"]],
    [{ products: ["price_123"] }, ["products.0"]],
    [{ products: Array.from({ length: 101 }, (_, index) => `prod_${index}`) }, ["products"]]
  ],
  "PATCH /v2/organizations/:organizationId/provider/promotion-codes/:id": [
    [{ code: "OTHER" }, ["code"]],
    [{ active: null }, ["active"]],
    [{ metadata: { svc_source: "mine" } }, ["metadata.svc_source"]],
    [{ metadata: "" }, ["metadata"]]
  ],
  "POST /v2/organizations/:organizationId/provider/payment-links": [
    [{ line_items: [] }, ["line_items"]],
    [{ line_items: Array.from({ length: 21 }, () => ({ price: "price_123", quantity: 1 })) }, ["line_items"]],
    [{ line_items: [{ price: "price_123" }] }, ["line_items.0.quantity"]],
    [{ line_items: [{ price: "price_123", quantity: 0 }] }, ["line_items.0.quantity"]],
    [
      { line_items: [{ price: "price_123", quantity: 1, adjustable_quantity: {} }] },
      ["line_items.0.adjustable_quantity.enabled"]
    ],
    [{ restrictions: {} }, ["restrictions.completed_sessions"]],
    [{ restrictions: { completed_sessions: { limit: 1_000_000 } } }, ["restrictions.completed_sessions.limit"]],
    [{ inactive_message: "" }, ["inactive_message"]],
    [{ inactive_message: "a".repeat(501) }, ["inactive_message"]],
    [{ after_completion: { type: "redirect" } }, ["after_completion.type"]],
    [{ metadata: { svc_source: "mine" } }, ["metadata.svc_source"]],
    [{ payment_intent_data: { application_fee_amount: 1 } }, ["payment_intent_data"]],
    [{ on_behalf_of: "acct_1" }, ["on_behalf_of"]]
  ],
  "PATCH /v2/organizations/:organizationId/provider/payment-links/:id": [
    [{ line_items: [] }, ["line_items"]],
    [{ payment_intent_data: { metadata: {} } }, ["payment_intent_data"]],
    [{ metadata: null }, ["metadata"]],
    [{ metadata: { svc_checkout_page: null } }, ["metadata.svc_checkout_page"]],
    [{ metadata: { campaign: "a".repeat(501) } }, ["metadata.campaign"]],
    [{ metadata: { campaign: { name: "summer" } } }, ["metadata.campaign"]],
    [{ metadata: Object.fromEntries(Array.from({ length: 50 }, (_, index) => [`k${index}`, "v"])) }, ["metadata"]]
  ],
  "POST /v2/organizations/:organizationId/provider/checkout-pages": [
    [{ title: " " }, ["title"]],
    [{ title: "a".repeat(121) }, ["title"]],
    [{ title: "line\nbreak" }, ["title"]],
    [{ text: "" }, ["text"]],
    [{ text: " \n " }, ["text"]],
    [{ text: "a".repeat(2001) }, ["text"]],
    [{ text: "\u0000" }, ["text"]],
    [{ imageUrl: "https://shop.example/a.png" }, ["imageUrl"]],
    [{ imageAlt: "a".repeat(201) }, ["imageAlt"]],
    [{ items: [] }, ["items"]],
    [{ items: Array.from({ length: 21 }, (_, index) => ({ price: `price_${index}`, quantity: 1 })) }, ["items"]],
    [{ items: [{ price: "price_123" }] }, ["items.0.quantity"]],
    [{ items: [{ price: "price_123", quantity: 10_000 }] }, ["items.0.quantity"]],
    [{ items: [{ price: "p-1", quantity: 1.5 }] }, ["items.0.price", "items.0.quantity"]],
    [
      { items: [{ price: "price_123", quantity: 1, adjustableQuantity: { minimum: -1, maximum: 10_000 } }] },
      ["items.0.adjustableQuantity.minimum", "items.0.adjustableQuantity.maximum"]
    ],
    [
      { items: [{ price: "price_123", quantity: 1, adjustableQuantity: { minimum: 3, maximum: 2 } }] },
      ["items.0.adjustableQuantity.minimum"]
    ],
    [{ items: [{ price: "price_123", quantity: 1, name: "Free" }] }, ["items.0.name"]],
    [{ collect: { email: true } }, ["collect.email"]],
    [
      { collect: { customFields: Array.from({ length: 4 }, (_, n) => ({ key: `k${n}`, label: "L", type: "text" })) } },
      ["collect.customFields"]
    ],
    [{ collect: { customFields: [{ key: "a b", label: "L", type: "text" }] } }, ["collect.customFields.0.key"]],
    [{ collect: { customFields: [{ key: "a", label: "L", type: "dropdown" }] } }, ["collect.customFields.0.options"]],
    [
      { collect: { customFields: ["a", "a"].map((key) => ({ key, label: "L", type: "numeric" })) } },
      ["collect.customFields.1.key"]
    ],
    [{ successText: "a".repeat(1001) }, ["successText"]],
    [{ slug: "mine", url: "https://evil.example" }, ["slug", "url"]],
    [{ metadata: { svc_checkout_page: "mine" } }, ["metadata"]]
  ],
  "PATCH /v2/organizations/:organizationId/provider/checkout-pages/:id": [
    [{ title: "" }, ["title"]],
    [{ text: "a".repeat(2001) }, ["text"]],
    [{ items: [] }, ["items"]],
    [{ imageUrl: "javascript:alert(1)" }, ["imageUrl"]],
    [{ slug: "mine", environment: "production" }, ["environment", "slug"]]
  ],
  "PATCH /v2/organizations/:organizationId/provider/prices/:id": [
    [{ nickname: "" }, ["nickname"]],
    [{ nickname: "a".repeat(251) }, ["nickname"]],
    [{ lookup_key: "" }, ["lookup_key"]],
    [{ lookup_key: "a".repeat(201) }, ["lookup_key"]],
    [{ transfer_lookup_key: true }, ["transfer_lookup_key"]],
    [{ lookup_key: null, transfer_lookup_key: true }, ["transfer_lookup_key"]],
    [{ lookup_key: "beans", transfer_lookup_key: "yes" }, ["transfer_lookup_key"]],
    [{ active: "false" }, ["active"]],
    [{ metadata: { "a[b]": null } }, ["metadata.a[b]"]],
    [{ metadata: Object.fromEntries(Array.from({ length: 51 }, (_, index) => [`k${index}`, null])) }, ["metadata"]],
    [{ unit_amount: 5, currency: "brl", recurring: {} }, ["unit_amount", "currency", "recurring"]]
  ],
  "POST /v2/organizations/:organizationId/provider/prices": [
    [{ product: "ab" }, ["product"]],
    [{ product: "a".repeat(256) }, ["product"]],
    [{ product: "prod-123" }, ["product"]],
    [{ currency: "BRL" }, ["currency"]],
    [{ currency: "br" }, ["currency"]],
    [{ currency: "real" }, ["currency"]],
    [{ unit_amount: -1 }, ["unit_amount"]],
    [{ unit_amount: 15.5 }, ["unit_amount"]],
    [{ unit_amount: 1_000_000_000_000 }, ["unit_amount"]],
    [{ recurring: {} }, ["recurring.interval"]],
    [{ recurring: { interval: "hour" } }, ["recurring.interval"]],
    [{ recurring: { interval: "month", interval_count: 0 } }, ["recurring.interval_count"]],
    [{ recurring: { interval: "month", usage_type: "tiered" } }, ["recurring.usage_type"]],
    [{ nickname: "" }, ["nickname"]],
    [{ lookup_key: "a".repeat(201) }, ["lookup_key"]],
    [{ transfer_lookup_key: true }, ["transfer_lookup_key"]],
    [{ tax_behavior: "none" }, ["tax_behavior"]]
  ],
  "POST /v2/organizations/:organizationId/provider/checkout/sessions": [
    [{ mode: "setup" }, ["mode"]],
    [{ line_items: [] }, ["line_items"]],
    [{ line_items: [{ price: "price_123" }] }, ["line_items.0.quantity"]],
    [{ line_items: [{ quantity: 1 }] }, ["line_items.0.price"]],
    [{ line_items: [{ price: "price_123", quantity: 0 }] }, ["line_items.0.quantity"]],
    [{ line_items: [{ price: "price_123", quantity: 1.5 }] }, ["line_items.0.quantity"]],
    [{ line_items: [{ price: "price_123", quantity: 1, amount: 5 }] }, ["line_items.0.amount"]],
    [{ line_items: [{ price: "p-1", quantity: "1" }] }, ["line_items.0.price", "line_items.0.quantity"]],
    [{ line_items: Array.from({ length: 101 }, () => ({ price: "price_123", quantity: 1 })) }, ["line_items"]],
    [{ client_reference_id: "" }, ["client_reference_id"]],
    [{ client_reference_id: "a".repeat(201) }, ["client_reference_id"]],
    [{ success_url: "https://evil.example" }, ["success_url"]],
    [{ cancel_url: "https://evil.example" }, ["cancel_url"]],
    [{ return_url: "https://evil.example", url: "https://evil.example" }, ["return_url", "url"]],
    [{ payment_intent_data: { application_fee_amount: 1 } }, ["payment_intent_data"]]
  ],
  "POST /v2/organizations/:organizationId/provider/refunds": [
    [{ amount: 0 }, ["amount"]],
    [{ amount: -5 }, ["amount"]],
    [{ amount: 1.5 }, ["amount"]],
    [{ amount: 1_000_000_000_000 }, ["amount"]],
    [{ reason: "other" }, ["reason"]],
    [{ payment_intent: "pi-123" }, ["payment_intent"]],
    [{ charge: "ch" }, ["charge"]],
    [{ charge: "ch_123" }, ["charge"]],
    [{ metadata: { key: 1 } }, ["metadata.key"]],
    [
      { currency: "brl", refund_application_fee: true, reverse_transfer: true },
      ["currency", "refund_application_fee", "reverse_transfer"]
    ]
  ],
  "PATCH /v2/organizations/:organizationId/provider/subscriptions/:id": [
    [{ cancel_at_period_end: null }, ["cancel_at_period_end"]],
    [{ cancel_at: 1 }, ["cancel_at"]],
    [{ proration_behavior: "none", items: [] }, ["items", "proration_behavior"]]
  ],
  "POST /v2/organizations/:organizationId/integrations/endpoints": [
    [{ name: "" }, ["name"]],
    [{ name: "   " }, ["name"]],
    [{ name: "a".repeat(101) }, ["name"]],
    [{ name: "line\nbreak" }, ["name"]],
    [{ url: "" }, ["url"]],
    [{ url: `https://shop.example/${"a".repeat(2048)}` }, ["url"]],
    [{ events: [] }, ["events"]],
    [{ events: ["payment.succeeded", "payment.succeeded"] }, ["events"]],
    [{ events: ["payment.succeeded", "payment_intent.succeeded"] }, ["events.1"]],
    [{ events: ["*"] }, ["events.0"]],
    [{ events: ["payment.succeeded", null] }, ["events.1"]],
    [{ events: Array.from({ length: 20 }, () => "payment.succeeded") }, ["events"]],
    [{ active: false }, ["active"]],
    [{ signingSecret: `whsec_${"A".repeat(43)}` }, ["signingSecret"]]
  ],
  "POST /v2/organizations/:organizationId/integrations/event-triggers": [
    [{ type: "" }, ["type"]],
    [{ type: "payment" }, ["type"]],
    [{ type: "payment_intent.succeeded" }, ["type"]],
    [{ type: ["payment.succeeded"] }, ["type"]],
    [{ account: "acct_1", livemode: true }, ["account", "livemode"]]
  ],
  "POST /v2/organizations/:organizationId/integrations/endpoints/:id/test": [
    [{ type: "" }, ["type"]],
    [{ type: "*" }, ["type"]],
    [{ type: "payment_intent.succeeded" }, ["type"]],
    [{ type: "payment.succeeded\u0000" }, ["type"]],
    [{ data: { payment_id: "pi_mine" } }, ["data"]],
    [{ test: false, livemode: true }, ["livemode", "test"]]
  ],
  "POST /v2/organizations/:organizationId/integrations/endpoints/:id/replay": [
    [{ since: "" }, ["since"]],
    [{ since: null }, ["since"]],
    [{ since: "2026-02-31T00:00:00Z" }, ["since"]],
    [{ since: new Date(Date.now() + 3_600_000).toISOString() }, ["since"]],
    [{ until: new Date(Date.now() + 3_600_000).toISOString() }, ["until"]],
    [{ until: "now" }, ["until"]],
    [{ until: new Date(Date.now() - 3_700_000).toISOString() }, ["since", "until"]],
    [{ types: [] }, ["types"]],
    [{ types: "payment.succeeded" }, ["types"]],
    [{ types: ["payment.succeeded", "payment.succeeded"] }, ["types"]],
    [{ types: ["payment.succeeded", "*"] }, ["types.1"]],
    [{ types: Array.from({ length: 20 }, () => "payment.succeeded") }, ["types"]],
    [{ filters: {} }, ["filters"]]
  ],
  "POST /v2/organizations/:organizationId/integrations/endpoints/:id/recover": [
    [{ since: "" }, ["since"]],
    [{ since: "yesterday" }, ["since"]],
    [{ since: "2026-02-31T00:00:00Z" }, ["since"]],
    [{ since: "9999-12-31T23:59:59-00:01" }, ["since"]],
    [{ since: String(Math.floor(Date.now() / 1000)) }, ["since"]],
    [{ since: new Date().toISOString().slice(0, 10) }, ["since"]],
    [{ since: new Date().toISOString().slice(0, 19) }, ["since"]],
    [{ since: `${new Date().toISOString().slice(0, 11)}25:00:00Z` }, ["since"]],
    [{ since: `${new Date().toISOString()}\n` }, ["since"]],
    [{ since: new Date(Date.now() - 73 * 3_600_000).toISOString() }, ["since"]],
    [{ since: new Date(Date.now() + 3_600_000).toISOString() }, ["since"]],
    [{ until: new Date().toISOString() }, ["until"]]
  ],
  "PATCH /v2/organizations/:organizationId/integrations/endpoints/:id": [
    [{ name: "" }, ["name"]],
    [{ name: "a".repeat(101) }, ["name"]],
    [{ events: [] }, ["events"]],
    [{ events: ["nonsense"] }, ["events.0"]],
    [{ url: "https://other.example/hook" }, ["url"]],
    [{ id: randomUUID() }, ["id"]],
    [{ environment: "production" }, ["environment"]],
    [{ signingSecret: "x" }, ["signingSecret"]]
  ]
}

/** Values that a query parameter does not take. A parameter that is missing here fails the suite. */
const badQuery: Readonly<Record<string, ReadonlyArray<string>>> = {
  limit: ["", "0", "101", "-1", "1.5", "ten", "1e1", "0x10", " 5", "+5", "NaN", "99999999999999999999"],
  starting_after: ["", "ab", "a".repeat(256), "prod-123", "prod 123", "pröd_123"],
  active: ["", "1", "TRUE", "yes"],
  charge: ["", "ab", "ch-123"],
  product: ["", "ab", "prod-123"],
  lookup_keys: ["", "a".repeat(201)],
  payment_intent: ["", "ab", "pi-123"],
  payment_id: ["", "ab", "pi-123", "a".repeat(256)],
  payout: ["", "ab", "po-123"],
  status: ["", "done", "PAID"],
  state: ["", "pending", "QUEUED"],
  types: ["", ",", "payment.succeeded,", "payment.succeeded, payment.failed", "payment.invented", "a".repeat(2001)],
  after: ["", "-1", "1.5", "1e9", "9".repeat(17)],
  follow: ["", "1", "TRUE", "no"],
  type: ["", "payment", "payment_intent.succeeded"],
  endpoint_id: ["", "ab", "0199c0de-0000-7000-8000", "0199c0de-0000-7000-8000-00000000000g"],
  event_id: ["", "evt_1", `svc_evt_${"0".repeat(63)}`, `svc_evt_${"g".repeat(64)}`, "a".repeat(129)],
  action: ["", "Created", "endpoint.", "endpoint created", "a".repeat(65)],
  author_id: ["", "\u0000", "a\nb", "a".repeat(256)],
  target_type: ["", "Endpoint", "a b", "a".repeat(65)],
  target_id: ["", "\u0000", "\u007f", "a".repeat(256)],
  days: ["", "0", "91", "-1", "1.5", "ten", "1e1", " 5"],
  created_gte: ["", "-1", "4102444801", "1.5", "yesterday", "2024-01-01"],
  created_lte: ["", "-1", "4102444801", "1.5", "1e9"]
}

/** Where a name means something else than it does elsewhere. */
const badQueryOf: Readonly<Record<string, ReadonlyArray<string>>> = {
  "GET /v2/organizations/:organizationId/provider/balance-transactions type": [
    "",
    "Charge",
    "charge.refund",
    "a".repeat(65)
  ]
}

/** `fetch` sends no body with GET. */
const sendWithBody = (method: string, path: string, headers: Readonly<Record<string, string>>, raw: string) =>
  Effect.flatMap(TestService, ({ baseUrl }) => {
    const lines = Object.entries({ ...headers, "content-length": String(Buffer.byteLength(raw)) })
    const head = [
      `${method} ${path} HTTP/1.1`,
      "connection: close",
      ...lines.map(([name, value]) => `${name}: ${value}`)
    ]
    return sendBytes(baseUrl, `${head.join("\r\n")}\r\n\r\n${raw}`)
  })

const queryFields = (operation: Operation): ReadonlyArray<string> =>
  Option.match(operation.endpoint.urlParamsSchema, {
    onNone: () => [],
    onSome: (schema) => fieldsOf(schema).map(({ name }) => name)
  })

onSharedService("bad input", (it) => {
  it.layer(Fixture.layer, { timeout: "4 minutes" })("to every operation", (it) => {
    for (const [turn, operation] of authenticatedOperations.entries()) {
      const name = operationKey(operation.method, operation.path)
      const { attempt, expectNoChange } = attemptsThatChangeNothing()
      const payload = Option.getOrUndefined(operation.endpoint.payloadSchema)
      const goodBody = Effect.map(Fixture, ({ things }) => sampleOf(operation).body?.(things) ?? {})

      if (payload !== undefined) {
        it.effect(`${name} refuses every field of the wrong kind, or null or missing where it may not be`, () =>
          attempt(function* () {
            const good = yield* goodBody
            const fields = fieldsOf(payload)
            expect(fields.length).toBeGreaterThan(0)
            const attempts = fields.flatMap(({ kind, name, nullable, required }) => {
              const wrong = Object.entries(valuesOfKinds).filter(([other]) => other !== kind)
              const { [name]: _, ...rest } = Object(good)
              return [
                ...[...wrong, ...(nullable ? [] : [["null", null] as const])].map(
                  ([, value]) => [name, { ...good, [name]: value }, `${name}: ${JSON.stringify(value)}`] as const
                ),
                ...(required ? [[name, rest, `without ${name}`] as const] : [])
              ]
            })
            yield* eachOf(attempts, ([name, body, what]) =>
              Effect.map(sendBody(operation, body), (answer) => expectFailure(answer, refused([name]), what))
            )
          })
        )

        it.effect(`${name} refuses values out of bounds`, () =>
          attempt(function* () {
            const cases = outOfBounds[name]
            expect(cases, `${name} has no values out of bounds: add them`).toBeDefined()
            const good = yield* goodBody
            yield* eachOf(cases ?? [], ([change, fields]) =>
              Effect.map(sendBody(operation, { ...good, ...change }), (answer) =>
                expectFailure(answer, refused(fields), JSON.stringify(change).slice(0, 100))
              )
            )
          })
        )
      }

      if (!takesBody(operation)) {
        it.effect(`${name} refuses a body, which it would not read, and changes nothing`, () =>
          attempt(function* () {
            const { organization } = yield* TestService
            const { things } = yield* Fixture
            const path = pathOf(operation, organization.id, things)
            const { headers } = optionsOf(operation, things)
            yield* eachOf(
              unreadBodies,
              ({ raw, type = { "content-type": "application/json" }, ...refusal }) =>
                Effect.map(
                  sendWithBody(operation.method, path, { "x-api-key": organization.testKey, ...headers, ...type }, raw),
                  (answer) => {
                    expectFailure(answer, refusal, raw.slice(0, 100))
                    expect(answer.text.length).toBeLessThan(2000)
                  }
                ),
              turn
            )
          })
        )
      }

      for (const parameter of ["organizationId", "id"].filter((name) => operation.path.includes(`:${name}/`))) {
        it.effect(`${name} refuses an empty ${parameter}`, function* () {
          const { organization, request } = yield* TestService
          const { things } = yield* Fixture
          const { headers, ...rest } = optionsOf(operation, things)
          const empty = operation.path.replace(`:${parameter}/`, "/")
          const path = pathOf({ ...operation, path: operation.path }, organization.id, things)
          const filled = empty
            .replace(":organizationId", organization.id)
            .replace(":id", path.split("/").at(operation.path.split("/").indexOf(":id")) ?? "")
            .replace(":recoveryId", things.recoveryId)
            .replace(":replayId", things.replayId)
          const answer = yield* request(operation.method, filled, { ...rest, headers, key: organization.testKey })
          expectFailure(answer, refused([parameter]), filled)
        })
      }

      if (queryFields(operation).length > 0) {
        it.effect(`${name} refuses each query parameter where it is wrong, and all of them together`, function* () {
          const { organization } = yield* TestService
          const { things } = yield* Fixture
          const path = pathOf(operation, organization.id, things)
            .replace(`/v2/organizations/${organization.id}`, "")
            .replace(/\?.*/, "")
          const first = new URLSearchParams()
          for (const field of queryFields(operation)) {
            const values = badQueryOf[`${name} ${field}`] ?? badQuery[field]
            expect(values, `no bad values for the query parameter ${field}: add them`).toBeDefined()
            yield* eachOf(values ?? [], (value) =>
              Effect.map(get(`${path}?${new URLSearchParams({ [field]: value })}`), (answer) =>
                expectFailure(answer, refused([field]), `${field}=${value}`)
              )
            )
            first.set(field, values?.[1] ?? "")
          }
          expectFailure(yield* get(`${path}?${first}`), refused(queryFields(operation)), "together")
        })
      }

      if (sampleOf(operation).id !== undefined) {
        it.effect(`${name} refuses an id of the wrong form`, () =>
          attempt(function* () {
            const { organization, request } = yield* TestService
            const { things } = yield* Fixture
            const { headers, ...rest } = optionsOf(operation, things)
            const ids = isProviderOperation(operation)
              ? ["ab", "a".repeat(256), "prod-123", "prod 123", "prod.123", "pröd_123", "..%2faccount", "prod_123\n"]
              : ["1", "not-a-uuid", randomUUID().slice(1), `{${randomUUID()}}`, `${randomUUID()}\n`, "svc_evt_1"]
            yield* eachOf(ids, (id) => {
              const path = operation.path
                .replace(":organizationId", organization.id)
                .replace(":id", id.startsWith("..") ? id : encodeURIComponent(id))
                .replace(":recoveryId", things.recoveryId)
                .replace(":replayId", things.replayId)
              return Effect.map(
                request(operation.method, path, { ...rest, headers, key: organization.testKey }),
                (answer) => expectFailure(answer, refused(["id"]), id)
              )
            })
          })
        )
      }

      if (payload !== undefined || !takesBody(operation) || sampleOf(operation).id !== undefined) {
        it.effect(`${name} changes nothing by any of these refusals`, () => expectNoChange)
      }
    }

    it.effect("takes what is just within the bounds", function* () {
      const product = authenticatedOperations.find(
        ({ method, path }) => method === "POST" && path.endsWith("/products")
      )
      if (product === undefined) throw new Error("No operation makes products")
      const answer = yield* sendBody(product, {
        name: "😀".repeat(250),
        images: Array.from({ length: 8 }, (_, index) => `https://shop.example/${index}.png`),
        statement_descriptor: "A".repeat(22),
        metadata: Object.fromEntries(Array.from({ length: 50 }, (_, n) => [`${n}`.padStart(40, "k"), "v".repeat(500)]))
      })
      expect(answer.status, answer.text).toBe(200)
      for (const limit of [1, 100]) {
        expect((yield* get(`/provider/products?limit=${limit}`)).status).toBe(200)
      }
      const { things } = yield* Fixture
      const bounds = "limit=100&created_gte=0&created_lte=4102444800"
      expect((yield* get(`/integrations/endpoints/${things.endpointId}/deliveries?${bounds}`)).status).toBe(200)
      for (const id of ["abc", "a".repeat(255)]) {
        expectFailure(yield* get(`/provider/products/${id}`), { status: 404, code: "provider_resource_missing" })
      }
    })

    it.effect("names each unknown filter, whatever its value", () =>
      changesNothing(function* () {
        const create = authenticatedOperations.find(
          ({ method, path }) => method === "POST" && path.endsWith("/endpoints")
        )
        if (create === undefined) throw new Error("No operation makes endpoints")
        const { things } = yield* Fixture
        const body = sampleOf(create).body?.(things)
        const unknown = { tags: ["a"], constructor: 1, amount_min: null, "": {} }
        const answer = yield* sendBody(create, { ...body, filters: unknown })
        const fields = Object.keys(unknown).map((key) => `filters.${key}`)
        expectFailure(answer, { status: 422, code: "integration_filter_unknown", fields })
        for (const filters of ["currencies", ["currencies"], 5]) {
          expectFailure(yield* sendBody(create, { ...body, filters }), refused(["filters"]), JSON.stringify(filters))
        }
      })
    )
  })
})
