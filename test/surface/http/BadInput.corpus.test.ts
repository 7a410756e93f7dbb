import { randomUUID } from "node:crypto"
import { expect } from "@effect/vitest"
import { Effect, Option, type Schema, SchemaAST } from "effect"
import { type Operation, operationKey, takesBody } from "../../../src/surface/contract/Operations.ts"
import { someOf } from "../../harness/Corpus.ts"
import { onSharedService, TestService } from "../../harness/TestService.ts"
import { expectFailure, sendBytes } from "./Refusals.ts"
import {
  attemptsThatChangeNothing,
  authenticatedOperations,
  changesNothing,
  isProviderOperation,
  OwnThings,
  optionsOf,
  pathOf,
  sampleOf
} from "./Samples.ts"

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
    const { things } = yield* OwnThings
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

type BadValues = Readonly<Record<string, ReadonlyArray<unknown>>>

const images = Array.from({ length: 9 }, (_, index) => `https://shop.example/${index}.png`)
const many = (count: number, value: string | null) =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [`k${index}`, value]))
const repeated = <A>(count: number, item: A) => Array.from({ length: count }, () => item)
const item = { price: "price_123", quantity: 1 }
const hoursFromNow = (hours: number) => new Date(Date.now() + hours * 3_600_000).toISOString()

const badProduct: BadValues = {
  name: ["", "a".repeat(251), "😀".repeat(251)],
  images: [images],
  "images.0": [["http://shop.example/a.png"], ["ftp://shop.example/a.png"]],
  "images.0 images.1": [["https://shop.example/a\n.png", "https://shop.example/\u0000"]],
  "images.1": [["https://shop.example/a.png", "nonsense"]],
  url: ["https://shop.example/a b", "http://shop.example", "javascript:alert(1)", " "],
  description: ["a".repeat(40_001)],
  statement_descriptor: ["", "12345", "A".repeat(23), "<SHOP>"],
  unit_label: ["a".repeat(13)],
  marketing_features: [repeated(16, { name: "x" })],
  "marketing_features.0.name": [[{ name: "a".repeat(81) }]],
  "marketing_features.0.extra": [[{ name: "x", extra: 1 }]],
  metadata: [many(51, "v")],
  "metadata.key": [{ key: "a".repeat(501) }, { key: 1 }]
}

const badPage: BadValues = {
  title: ["", " ", "a".repeat(121), "line\nbreak"],
  text: [" \n ", "a".repeat(2001), "\u0000"],
  imageUrl: ["https://shop.example/a.png", "javascript:alert(1)"],
  imageAlt: ["a".repeat(201)],
  items: [[], Array.from({ length: 21 }, (_, index) => ({ price: `price_${index}`, quantity: 1 }))],
  "items.0.quantity": [[{ price: "price_123" }], [{ ...item, quantity: 10_000 }]],
  "items.0.price items.0.quantity": [[{ price: "p-1", quantity: 1.5 }]],
  "items.0.adjustableQuantity.minimum items.0.adjustableQuantity.maximum": [
    [{ ...item, adjustableQuantity: { minimum: -1, maximum: 10_000 } }]
  ],
  "items.0.adjustableQuantity.minimum": [[{ ...item, adjustableQuantity: { minimum: 3, maximum: 2 } }]],
  "items.0.name": [[{ ...item, name: "Free" }]],
  "collect.email": [{ email: true }],
  "collect.customFields": [
    { customFields: Array.from({ length: 4 }, (_, n) => ({ key: `k${n}`, label: "L", type: "text" })) }
  ],
  "collect.customFields.0.key": [{ customFields: [{ key: "a b", label: "L", type: "text" }] }],
  "collect.customFields.0.options": [{ customFields: [{ key: "a", label: "L", type: "dropdown" }] }],
  "collect.customFields.1.key": [{ customFields: repeated(2, { key: "a", label: "L", type: "numeric" }) }],
  successText: ["a".repeat(1001)],
  slug: ["mine"],
  metadata: [{ svc_checkout_page: "mine" }]
}

const badLineItems: BadValues = {
  line_items: [[], repeated(101, item)],
  "line_items.0.quantity": [[{ price: "price_123" }], [{ ...item, quantity: 0 }]]
}

const badPrice: BadValues = {
  nickname: ["", "a".repeat(251)],
  lookup_key: ["", "a".repeat(201)],
  transfer_lookup_key: [true]
}

const badEndpoint: BadValues = {
  name: ["", "   ", "a".repeat(101), "line\nbreak"],
  events: [[], repeated(2, "payment.succeeded"), repeated(20, "payment.succeeded")],
  "events.0": [["*"]],
  "events.1": [
    ["payment.succeeded", "payment_intent.succeeded"],
    ["payment.succeeded", null]
  ],
  signingSecret: [`whsec_${"A".repeat(43)}`]
}

/**
 * Values out of bounds for each body field with bounds, by the fields that the refusal names: each is put in place of the
 * good body's field that the first name begins with.
 */
const outOfBounds: Readonly<Record<string, BadValues>> = {
  "POST /provider/products": { ...badProduct, description: ["", "a".repeat(40_001)] },
  "PATCH /provider/products/:id": {
    ...badProduct,
    default_price: ["ab"],
    "default_price_data.currency": [{ unit_amount: 5 }],
    "default_price_data.unit_amount": [{ currency: "brl", unit_amount: -1 }],
    "metadata.a[b]": [{ "a[b]": "c" }],
    id: ["prod_123"]
  },
  "POST /provider/search": {
    client_reference_id: ["", "a".repeat(201), undefined],
    email: ["ana@shop.example", "ana"],
    amount: [1500, -1],
    currency: ["brl", "BRL"]
  },
  "POST /provider/promotion-codes": {
    code: ["AB", "A".repeat(41), "SUMMER-25", "VERÃO"],
    discount: [{}],
    "discount.percent_off": [{ percent_off: 0 }, { percent_off: 101 }],
    "discount.amount_off": [
      { amount_off: 0, currency: "brl" },
      { amount_off: 1_000_000_000_000, currency: "brl" },
      { percent_off: 5, amount_off: 5, currency: "brl" }
    ],
    "discount.currency": [{ amount_off: 5, currency: "BRL" }, { amount_off: 5 }],
    duration: ["monthly"],
    duration_in_months: [0, 37],
    max_redemptions: [0, 1_000_001],
    expires_at: [-1, 4_102_444_801, 1.5],
    products: [[], Array.from({ length: 101 }, (_, index) => `prod_${index}`)],
    "products.0": [["price_123"]]
  },
  "PATCH /provider/promotion-codes/:id": { code: ["OTHER"], "metadata.svc_source": [{ svc_source: "mine" }] },
  "POST /provider/payment-links": {
    ...badLineItems,
    line_items: [[], repeated(21, item)],
    "line_items.0.adjustable_quantity.enabled": [[{ ...item, adjustable_quantity: {} }]],
    "restrictions.completed_sessions": [{}],
    "restrictions.completed_sessions.limit": [{ completed_sessions: { limit: 1_000_000 } }],
    inactive_message: ["", "a".repeat(501)],
    "after_completion.type": [{ type: "redirect" }],
    "metadata.svc_source": [{ svc_source: "mine" }],
    payment_intent_data: [{ application_fee_amount: 1 }],
    on_behalf_of: ["acct_1"]
  },
  "PATCH /provider/payment-links/:id": {
    line_items: [[]],
    payment_intent_data: [{ metadata: {} }],
    metadata: [many(50, "v")],
    "metadata.svc_checkout_page": [{ svc_checkout_page: null }],
    "metadata.campaign": [{ campaign: "a".repeat(501) }, { campaign: { name: "summer" } }]
  },
  "POST /provider/checkout-pages": { ...badPage, text: ["", "a".repeat(2001)] },
  "PATCH /provider/checkout-pages/:id": { ...badPage, environment: ["production"] },
  "PATCH /provider/prices/:id": {
    ...badPrice,
    "metadata.a[b]": [{ "a[b]": null }],
    metadata: [many(51, null)],
    unit_amount: [5],
    currency: ["brl"],
    recurring: [{}]
  },
  "POST /provider/prices": {
    ...badPrice,
    product: ["ab", "a".repeat(256), "prod-123"],
    currency: ["BRL", "br", "real"],
    unit_amount: [-1, 15.5, 1_000_000_000_000],
    "recurring.interval": [{}, { interval: "hour" }],
    "recurring.interval_count": [{ interval: "month", interval_count: 0 }],
    "recurring.usage_type": [{ interval: "month", usage_type: "tiered" }],
    tax_behavior: ["none"]
  },
  "POST /provider/checkout/sessions": {
    ...badLineItems,
    mode: ["setup"],
    "line_items.0.price": [[{ quantity: 1 }]],
    "line_items.0.quantity": [...(badLineItems["line_items.0.quantity"] ?? []), [{ ...item, quantity: 1.5 }]],
    "line_items.0.amount": [[{ ...item, amount: 5 }]],
    "line_items.0.price line_items.0.quantity": [[{ price: "p-1", quantity: "1" }]],
    client_reference_id: ["", "a".repeat(201)],
    success_url: ["https://evil.example"],
    cancel_url: ["https://evil.example"],
    return_url: ["https://evil.example"],
    url: ["https://evil.example"],
    payment_intent_data: [{ application_fee_amount: 1 }]
  },
  "POST /provider/refunds": {
    amount: [0, -5, 1.5, 1_000_000_000_000],
    reason: ["other"],
    payment_intent: ["pi-123"],
    charge: ["ch", "ch_123"],
    "metadata.key": [{ key: 1 }],
    currency: ["brl"],
    refund_application_fee: [true],
    reverse_transfer: [true]
  },
  "PATCH /provider/subscriptions/:id": { cancel_at: [1], proration_behavior: ["none"], items: [[]] },
  "POST /integrations/endpoints": {
    ...badEndpoint,
    url: ["", `https://shop.example/${"a".repeat(2048)}`],
    active: [false]
  },
  "PATCH /integrations/endpoints/:id": {
    ...badEndpoint,
    url: ["https://other.example/hook"],
    id: [randomUUID()],
    environment: ["production"]
  },
  "POST /integrations/event-triggers": {
    type: ["", "payment", "payment_intent.succeeded"],
    account: ["acct_1"],
    livemode: [true]
  },
  "POST /integrations/endpoints/:id/test": {
    type: ["", "*", "payment_intent.succeeded", "payment.succeeded\u0000"],
    data: [{ payment_id: "pi_mine" }],
    test: [false],
    livemode: [true]
  },
  "POST /integrations/endpoints/:id/replay": {
    since: ["", "2026-02-31T00:00:00Z", hoursFromNow(1)],
    until: [hoursFromNow(1), "now"],
    "until since": [hoursFromNow(-1.1)],
    types: [[], repeated(2, "payment.succeeded"), repeated(20, "payment.succeeded")],
    "types.1": [["payment.succeeded", "*"]],
    filters: [{}]
  },
  "POST /integrations/endpoints/:id/recover": {
    since: [
      ...["", "yesterday", "2026-02-31T00:00:00Z", "9999-12-31T23:59:59-00:01", `${hoursFromNow(0)}\n`],
      String(Math.floor(Date.now() / 1000)),
      ...[10, 19].map((length) => hoursFromNow(0).slice(0, length)),
      `${hoursFromNow(0).slice(0, 11)}25:00:00Z`,
      ...[-73, 1].map(hoursFromNow)
    ],
    until: [hoursFromNow(0)]
  }
}

/** Values that a query parameter does not take. A parameter that is missing here fails the suite. */
const badQuery: Readonly<Record<string, ReadonlyArray<string>>> = {
  limit: ["", "0", "101", "-1", "1.5", "ten", "1e1", "0x10", " 5", "+5", "NaN", "99999999999999999999"],
  starting_after: ["", "ab", "a".repeat(256), "prod-123", "prod 123", "pröd_123"],
  active: ["", "1", "TRUE", "yes"],
  sale: ["", "1", "TRUE", "yes"],
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
  it.layer(OwnThings.layer, { timeout: "4 minutes" })("to every operation", (it) => {
    for (const [turn, operation] of authenticatedOperations.entries()) {
      const name = operationKey(operation.method, operation.path)
      const { attempt, expectNoChange } = attemptsThatChangeNothing()
      const payload = Option.getOrUndefined(operation.endpoint.payloadSchema)
      const goodBody = Effect.map(OwnThings, ({ things }) => sampleOf(operation).body?.(things) ?? {})

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
            const cases = outOfBounds[name.replace("/v2/organizations/:organizationId", "")]
            expect(cases, `${name} has no values out of bounds: add them`).toBeDefined()
            const good = yield* goodBody
            const attempts = Object.entries(cases ?? {}).flatMap(([named, values]) =>
              values.map((value) => [named.split(" "), { [named.split(/[. ]/)[0] ?? ""]: value }] as const)
            )
            yield* eachOf(attempts, ([fields, change]) =>
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
            const { things } = yield* OwnThings
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
          const { things } = yield* OwnThings
          const path =
            parameter === "id"
              ? pathOf(operation, organization.id, { ...things, [sampleOf(operation).id ?? ""]: "" })
              : pathOf(operation, "", things)
          const options = { ...optionsOf(operation, things), key: organization.testKey }
          expectFailure(yield* request(operation.method, path, options), refused([parameter]), path)
        })
      }

      if (queryFields(operation).length > 0) {
        it.effect(`${name} refuses each query parameter where it is wrong, and all of them together`, function* () {
          const { organization } = yield* TestService
          const { things } = yield* OwnThings
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
            const { things } = yield* OwnThings
            const options = { ...optionsOf(operation, things), key: organization.testKey }
            const ids = isProviderOperation(operation)
              ? ["ab", "a".repeat(256), "prod-123", "prod 123", "prod.123", "pröd_123", "../account", "prod_123\n"]
              : ["1", "not-a-uuid", randomUUID().slice(1), `{${randomUUID()}}`, `${randomUUID()}\n`, "svc_evt_1"]
            yield* eachOf(ids, (id) => {
              const path = pathOf(operation, organization.id, { ...things, [sampleOf(operation).id ?? ""]: id })
              return Effect.map(request(operation.method, path, options), (answer) =>
                expectFailure(answer, refused(["id"]), id)
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
      const { things } = yield* OwnThings
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
        const { things } = yield* OwnThings
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
