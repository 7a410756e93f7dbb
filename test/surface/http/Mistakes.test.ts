import { randomUUID } from "node:crypto"
import { expect } from "@effect/vitest"
import { Effect } from "effect"
import { onSharedService, type RequestOptions, sendRequest, TestService } from "../../harness/TestService.ts"
import { newTenant } from "../../payments/ConnectedTenant.ts"
import { makePrice, pay, posting } from "./Payments.ts"
import { idOf } from "./Samples.ts"

/**
 * What newcomers get wrong, above all those who know the payment provider's own API, and what the answer has to say so
 * that they can go on without looking anything up.
 */

/** A shop that has sold something; what its integrator has at hand is `$name` in the requests. */
const openShop = Effect.gen(function* () {
  const service = yield* TestService
  const tenant = yield* newTenant
  const key = yield* tenant.keyOf(["*", "webhook-endpoints:*"])
  const owner = { organizationId: tenant.id, key }
  const price = yield* makePrice(service, owner)
  const session = (yield* pay(service, { ...owner, priceId: price })).json
  const endpoint = yield* posting(service, owner)("/integrations/endpoints", {
    name: "Shop",
    url: "http://127.0.0.1:9/events",
    events: ["payment.succeeded", "checkout.completed"]
  })
  yield* tenant.post("/products", { name: "Coffee" }, "used-before")
  return {
    P: `/v2/organizations/${tenant.id}/provider`,
    M: `/v2/organizations/${tenant.id}/integrations`,
    organization: tenant.id,
    key,
    product: idOf(yield* tenant.post("/products", { name: "Coffee" })),
    price,
    monthly: yield* makePrice(service, owner, { recurring: { interval: "month" } }),
    tiny: yield* makePrice(service, owner, { unit_amount: 15 }),
    session: String(session["id"]),
    payment: String(session["payment_intent"]),
    endpoint: idOf(endpoint)
  }
})

const price = (more: object) => ({ body: { product: "$product", currency: "brl", unit_amount: 1500, ...more } })
const session = (more: object) => ({
  body: { mode: "payment", line_items: [{ price: "$price", quantity: 1 }], ...more }
})
const endpoint = (more: object) => ({
  body: { name: "Shop", url: "https://shop.example.com/events", events: ["payment.succeeded"], ...more }
})
const selling = (id: string, mode = "payment") => session({ mode, line_items: [{ price: id, quantity: 1 }] })
const json = { "content-type": "application/json" }

/** A mistake, the request, the answer's status and code, and words that it must have. */
type Mistake = readonly [
  what: string,
  request: string,
  sent: RequestOptions,
  answer: string,
  ...says: ReadonlyArray<string>
]

const products = "GET /v2/organizations/{organizationId}/provider/products"
const sessions = "GET /v2/organizations/{organizationId}/provider/checkout/sessions"
const invalid = "422 validation_failed"
const missing = "422 provider_resource_missing"
const refused = "422 provider_invalid_request_error"

const nothing = "404 resource_not_found"
const unauthenticated = "401 authentication_required"
const untyped = "415 unsupported_media_type"
const rejected = "422 destination_rejected"

const [list, create, setPrice] = ["GET $P/products", "POST $P/products", "POST $P/prices"]
const [sell, refund] = ["POST $P/checkout/sessions", "POST $P/refunds"]
const [subscribe, change] = ["POST $M/endpoints", "PATCH $M/endpoints/$endpoint"]
const test = "POST $M/endpoints/$endpoint/test"
const filtered = (filters: object) => ({ body: { filters } })

const mistakes: ReadonlyArray<Mistake> = [
  // Credentials and the organization
  ["a wrong key", list, { key: `pk_test_${"x".repeat(43)}` }, "401 api_key_invalid", "revoked or expired"],
  ["a key of production", list, { key: `pk_live_${"x".repeat(43)}` }, "401 api_key_invalid", "unknown"],
  ["the provider's key", list, { key: "sk_test_4eC39HqLyjWD" }, "401 api_key_invalid", "begin with pk_"],
  ["no key", list, { key: "" }, unauthenticated, "x-api-key"],
  ...["Bearer $key", "Basic $key"].map(
    (authorization): Mistake => [
      authorization,
      list,
      { key: "", headers: { authorization } },
      unauthenticated,
      "x-api-key",
      "the Authorization header is not read"
    ]
  ),
  [
    "another organization",
    `GET /v2/organizations/${randomUUID()}/provider/products`,
    {},
    "403 organization_access_denied",
    "GET /identity/api-key"
  ],
  ...["bakery", "{organizationId}"].map(
    (organization): Mistake => [
      organization,
      `GET /v2/organizations/${organization}/provider/products`,
      {},
      invalid,
      "`organizationId` in the path must be the organization's UUID",
      "GET /identity/api-key"
    ]
  ),
  // Idempotency keys
  ["no Idempotency-Key", create, { body: {}, headers: { "idempotency-key": "" } }, invalid, "8 to 255"],
  ["a short one", create, { body: {}, headers: { "idempotency-key": "1" } }, invalid, "8 to 255"],
  [
    "one of another request",
    create,
    { body: { name: "Tea" }, headers: { "idempotency-key": "used-before" } },
    "409 idempotency_key_reused",
    "send a new one"
  ],
  // Amounts and currencies
  ["an amount as text", setPrice, price({ unit_amount: "15.00" }), invalid, "1500 is R$15.00", "a string"],
  ["an amount with decimals", setPrice, price({ unit_amount: 15.5 }), invalid, "1500 is R$15.00", "got 15.5"],
  ["an amount by another name", setPrice, price({ amount: 5 }), invalid, "did you mean unit_amount?"],
  ["a currency in capitals", setPrice, price({ currency: "BRL" }), invalid, "lowercase", "such as brl"],
  ["a currency's sign", setPrice, price({ currency: "R$" }), invalid, "lowercase", "such as brl"],
  ["an unknown currency", setPrice, price({ currency: "xxx" }), refused, "`currency` is not a currency that"],
  ["another amount", "PATCH $P/prices/$price", { body: { unit_amount: 5 } }, invalid, "create another price"],
  // Paths and methods
  ["the provider's path", "GET /v1/products", {}, nothing, products],
  ["a singular", "GET $P/product", {}, nothing, products],
  ["a slip", "GET $P/prodcuts", {}, nothing, products],
  ["no provider", "GET /v2/organizations/$organization/products", {}, nothing, products],
  ["two slashes", "GET /$P/products", {}, nothing, products],
  ["a hyphen", "POST $P/checkout-sessions", { body: {} }, nothing, sessions],
  ["camel case", "POST $P/checkoutSessions", { body: {} }, nothing, sessions],
  ["the provider's name", "GET $M/webhook_endpoints", {}, nothing, "/integrations/endpoints or POST"],
  ["nothing of ours", "GET /wp-login.php", {}, nothing, "/openapi.json"],
  ["PUT", "PUT $P/products/$product", { body: {} }, "405 method_not_allowed", "GET, HEAD and PATCH, not PUT"],
  ["POST", "POST $P/products/$product", { body: {} }, "405 method_not_allowed", "GET, HEAD and PATCH, not POST"],
  ["a slash at the end", "GET $P/products/", {}, invalid, "`id` in the path", "it is empty"],
  [
    "a list's limit",
    "GET $P/products?limit=1000",
    {},
    invalid,
    "`limit` in the query must be a whole number from 1 to"
  ],
  ["a page's number", "GET $P/products?page=2", {}, invalid, "`page` in the query", "sent as starting_after"],
  // Bodies
  ["text", create, { raw: '{"name":"Coffee"}' }, untyped, "application/json"],
  [
    "a form",
    create,
    { raw: "name=Coffee", headers: { "content-type": "application/x-www-form-urlencoded" } },
    untyped,
    "content-type: application/json"
  ],
  ["broken JSON", create, { raw: '{"name":}', headers: json }, invalid, "not valid JSON"],
  ["no body", create, { raw: "", headers: json }, invalid, "must be an object with name"],
  ["an array", create, { body: [] }, invalid, "must be an object with name; it is an array"],
  // Ids
  ["an unknown product", "GET $P/products/prod_1", {}, "404 provider_resource_missing", "`id` in the path names no"],
  [
    "production's session",
    "GET $P/checkout/sessions/cs_live_a1",
    {},
    "404 provider_resource_missing",
    "`id` in the path is an id of the production environment, and this request is for sandbox"
  ],
  ["an unknown endpoint", `GET $M/endpoints/${randomUUID()}`, {}, nothing, "this organization and env"],
  ["the provider's endpoint", "GET $M/endpoints/we_123", {}, invalid, "`id` in the path must be a UUID"],
  ["an unknown price", sell, selling("price_1"), missing, "`line_items.0.price` names no object"],
  ...["payment", "subscription"].map(
    (mode): Mistake => [
      `a product in place of a price, in the mode ${mode}`,
      sell,
      selling("$product", mode),
      missing,
      "`line_items.0.price` must be the id of a price (price_…), but this one is of a product",
      "`default_price`"
    ]
  ),
  [
    "a refund by the session",
    refund,
    { body: { payment_intent: "$session" } },
    missing,
    "`payment_intent` must be the id of a payment intent (pi_…), but this one is of a checkout session",
    "has the right one as `payment_intent`"
  ],
  ["a session's id in a list", "GET $P/refunds?charge=$payment", {}, missing, "`charge` must be", "`latest_charge`"],
  // Selling and refunding
  ["no mode", sell, session({ mode: undefined }), invalid, "it must be payment or subscription"],
  ["a wrong mode", sell, session({ mode: "payments" }), invalid, "did you mean payment?"],
  ["once, by subscription", sell, selling("$price", "subscription"), refused, "must be payment"],
  ["monthly, by payment", sell, selling("$monthly"), refused, "`line_items.0.price` is recurring"],
  ["too little", sell, selling("$tiny"), "422 provider_amount_too_small", "less than the provider"],
  ["success_url", sell, session({ success_url: "x" }), invalid, "PUT /identity/return-urls"],
  ["customer_email", sell, session({ customer_email: "x" }), invalid, "payers enter"],
  [
    "price_data",
    sell,
    session({ line_items: [{ price_data: {}, quantity: 1 }] }),
    invalid,
    "`line_items.0.price_data`",
    "POST …/provider/prices"
  ],
  ["a refund of nothing", refund, { body: {} }, invalid, "a refund needs it or charge"],
  [
    "a refund of too much",
    refund,
    { body: { payment_intent: "$payment", amount: 99_999 } },
    refused,
    "`amount` is more than is left to refund"
  ],
  // Endpoints
  ["http", subscribe, endpoint({ url: "http://shop.example.com/" }), rejected, "https://"],
  ["a query", subscribe, endpoint({ url: "https://a.example/?b" }), rejected, "in the path"],
  ["no host", subscribe, endpoint({ url: "https://a.invalid/" }), "422 destination_unresolvable", "a.invalid"],
  [
    "the provider's events",
    subscribe,
    endpoint({ events: ["payment_intent.succeeded"] }),
    invalid,
    "did you mean payment.succeeded?"
  ],
  [
    "a deleted subscription",
    subscribe,
    endpoint({ events: ["customer.subscription.deleted"] }),
    invalid,
    "did you mean subscription.canceled?"
  ],
  ["all events", subscribe, endpoint({ events: ["*"] }), invalid, "must be one of payment.succeeded"],
  ["enabled_events", subscribe, endpoint({ enabled_events: [] }), invalid, "did you mean events?"],
  ["another URL", change, { body: { url: "x" } }, invalid, "never changes; create another"],
  ["an unknown filter", change, filtered({ tags: [] }), "422 integration_filter_unknown", "currencies, amountMin"],
  ["a filter's currency", change, filtered({ currencies: ["BRL"] }), "422 integration_filter_invalid", "lowercase"],
  ["a filter's number", change, filtered({ metadata: { a: 1 } }), "422 integration_filter_invalid", "it is a number"],
  [
    "another event's test",
    test,
    { body: { type: "payout.paid" } },
    "422 event_type_not_subscribed",
    "it subscribes to"
  ],
  ["no event's test", test, { raw: "", headers: json }, invalid, "an object with type"]
]

onSharedService("a newcomer's mistake", (it) => {
  it.effect("is answered in words that say what to do", function* () {
    const shop = Object.entries(yield* openShop)
    const filled = (text: string): string =>
      shop.reduce((whole, [name, value]) => whole.replaceAll(new RegExp(`\\$${name}\\b`, "g"), value), text)
    const unhelpful: Array<object> = []
    for (const [what, line, { body, headers, ...sent }, expected, ...says] of mistakes) {
      const [method = "", path = ""] = filled(line).split(" ")
      const answer = yield* sendRequest(method, path, {
        key: filled("$key"),
        ...sent,
        ...(body === undefined ? {} : { body: JSON.parse(filled(JSON.stringify(body))) }),
        headers: {
          ...(method === "GET" ? {} : { "idempotency-key": randomUUID() }),
          ...JSON.parse(filled(JSON.stringify(headers ?? {})))
        }
      })
      const got = `${answer.status} ${answer.json["code"]}`
      const error = String(answer.json["error"])
      if (got !== expected || says.some((words) => !error.includes(words)))
        unhelpful.push({ what, got, error, expected, says })
    }
    expect(unhelpful).toEqual([])
  })
})
