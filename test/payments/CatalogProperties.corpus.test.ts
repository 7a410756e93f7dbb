import { expect } from "@effect/vitest"
import { Effect, FastCheck } from "effect"
import { casesOf } from "../harness/Corpus.ts"
import { onSharedService } from "../harness/TestService.ts"
import { idOf } from "../surface/http/Samples.ts"
import { checkoutSessions, paymentLinks, prices, productChanges, products, promotionCodes } from "./CatalogBodies.ts"
import { newTenant, type Tenant } from "./ConnectedTenant.ts"

/** `__proto__` is refused in every body, wherever it stands. */
const isSendable = (body: object): boolean => !JSON.stringify(body).includes('"__proto__"')

/** What the bodies can refer to, so that not all of them are refused for what is missing. */
const catalog = (tenant: Tenant) =>
  Effect.gen(function* () {
    const product = idOf(yield* tenant.post("/products", { name: "Coffee" }))
    const price = (more: object) =>
      Effect.map(tenant.post("/prices", { product, currency: "brl", unit_amount: 1500, ...more }), idOf)
    return {
      product,
      /** Its changes may take it out of sale. */
      changing: idOf(yield* tenant.post("/products", { name: "Tea" })),
      once: yield* price({}),
      monthly: yield* price({ recurring: { interval: "month", trial_period_days: 7 } })
    }
  })

type Catalog = Effect.Effect.Success<ReturnType<typeof catalog>>

interface Line {
  readonly price: string
  readonly quantity: number
}

/** Few enough lines of few enough units, mostly at prices that there are: what no total is too large for. */
const selling = <A extends { readonly line_items: ReadonlyArray<Line> }>(body: A, { monthly, once }: Catalog) => ({
  ...body,
  line_items: body.line_items.slice(0, 3).map((line, n) => ({
    ...line,
    // Bounds that fit no such quantity, but for some
    ...(line.quantity % 4 === 0 ? {} : { adjustable_quantity: undefined }),
    quantity: 1 + (line.quantity % 10),
    price: line.quantity % 11 === 0 ? line.price : n === 1 && line.quantity % 2 === 0 ? monthly : once
  }))
})

const inReais = <A extends { readonly default_price_data?: object }>({ default_price_data, ...body }: A) =>
  default_price_data === undefined ? body : { ...body, default_price_data: { ...default_price_data, currency: "brl" } }

const bodies = (
  known: Catalog
): ReadonlyArray<readonly [method: string, path: string, body: FastCheck.Arbitrary<object>]> => [
  ["POST", "/products", products.map(inReais)],
  ["PATCH", `/products/${known.changing}`, productChanges.map(inReais)],
  [
    "POST",
    "/prices",
    prices.map((body) => ({ ...body, currency: "brl", ...("product" in body ? { product: known.product } : {}) }))
  ],
  [
    "POST",
    "/promotion-codes",
    promotionCodes.map(({ discount, expires_at, products: _, ...body }) => ({
      ...body,
      discount: "currency" in discount ? { ...discount, currency: "brl" } : discount,
      ...(expires_at === undefined || expires_at % 2 === 0 ? {} : { expires_at })
    }))
  ],
  ["POST", "/payment-links", paymentLinks.map((body) => selling(body, known))],
  ["POST", "/checkout/sessions", checkoutSessions.map((body) => selling(body, known))]
]

onSharedService("any body that the contract admits", (it) => {
  it.effect(
    "is taken, or refused with a documented error; none breaks the service",
    function* () {
      const tenant = yield* newTenant
      for (const [method, path, arbitrary] of bodies(yield* catalog(tenant))) {
        const statuses = new Set<number>()
        // One by one, so that a failure names the body that it is about
        for (const body of FastCheck.sample(arbitrary.filter(isSendable), casesOf(30, 6))) {
          const answer = yield* method === "POST" ? tenant.post(path, body) : tenant.patch(path, body)
          const context = `${method} ${path} ${JSON.stringify(body)} → ${answer.text.slice(0, 500)}`
          statuses.add(answer.status)
          expect([200, 422], context).toContain(answer.status)
          if (answer.status === 422) {
            expect(answer.json["code"], context).toMatch(/^provider_/)
            expect(answer.json["fields"], context).not.toEqual([])
          }
        }
        expect(statuses, `${method} ${path} is never taken`).toContain(200)
      }
    },
    300_000
  )
})
