import { Effect } from "effect"
import type { RequestContext } from "../api/Route.ts"
import type { OpenCheckout } from "../checkout/Choices.ts"
import type { Payer } from "../checkout/Payment.ts"
import { invalid, notFound } from "../ProviderError.ts"
import type { Session } from "../Records.ts"
import { createPrice } from "../resources/PriceCreation.ts"
import { createProduct } from "../resources/Products.ts"
import { createSession } from "../resources/SessionCreation.ts"
import { type Money, usualMoney } from "./PaymentTriggers.ts"

/** A payer who accepts the order as it is and enters no email address. */
export const somebody: Payer = {
  amount: undefined,
  email: null,
  promotionCode: undefined,
  quantities: new Map(),
  upsells: new Set()
}

const newPrice = Effect.fnUntraced(function* (
  context: RequestContext,
  { amount, currency }: Money,
  isMonthly: boolean
) {
  const { id: product } = yield* createProduct(context, { name: isMonthly ? "Coffee every month" : "Coffee" })
  const price = yield* createPrice(context, product, {
    currency: currency ?? usualMoney.currency,
    unit_amount: amount ?? usualMoney.amount,
    ...(isMonthly ? { recurring: { interval: "month" } } : {})
  })
  context.emit({ type: "price.created", shape: "price", object: price })
  return price.id
})

/** The URL that payers are redirected to; nobody opens it. */
const success_url = "https://shop.example/thanks"

export const newSale = Effect.fnUntraced(function* (context: RequestContext, money: Money) {
  const price = yield* newPrice(context, money, false)
  return yield* createSession(context, {
    mode: "payment",
    line_items: [{ price, quantity: 1 }],
    metadata: money.metadata ?? {},
    success_url
  })
})

export const newSubscriptionSale = Effect.fnUntraced(function* (context: RequestContext, money: Money, items: number) {
  const prices = yield* Effect.forEach(Array.from({ length: items }), () => newPrice(context, money, true))
  return yield* createSession(context, {
    mode: "subscription",
    line_items: prices.map((price) => ({ price, quantity: 1 })),
    subscription_data: { metadata: money.metadata ?? {} },
    success_url
  })
})

export const sessionOf = ({ objects }: RequestContext, id: string) => {
  const session = objects.get("checkout.session", id)
  return session === undefined ? notFound("checkout.session", id) : Effect.succeed(session)
}

/** A session with what it sells, to be completed; fails with 400 if it is not open. */
export const openCheckout = Effect.fnUntraced(function* ({ objects }: RequestContext, session: Session) {
  const order = objects.get("order", session.id)
  if (session.status !== "open" || order === undefined) {
    return yield* invalid("session", `Session ${session.id} is not open: ${session.status}.`)
  }
  return { order, session } satisfies OpenCheckout
})
