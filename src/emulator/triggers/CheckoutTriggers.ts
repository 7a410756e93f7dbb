import { Effect, Schema } from "effect"
import type { RequestContext } from "../api/Route.ts"
import { laterMethods, payLater, settle } from "../checkout/LaterPayment.ts"
import { pay } from "../checkout/Payment.ts"
import { maybe } from "../control/ControlInput.ts"
import type { PaymentMethod } from "../resources/Charges.ts"
import { type Money, moneyOptions } from "./PaymentTriggers.ts"
import { newSale, openCheckout, sessionOf, somebody } from "./Sales.ts"
import { onlyForNew, type Trigger, trigger } from "./Trigger.ts"

const sessionId = maybe(Schema.String)

const namedOrNew = Effect.fnUntraced(function* (context: RequestContext, named: string | undefined, money: Money) {
  if (named === undefined) return yield* newSale(context, money)
  yield* onlyForNew("session", money)
  return yield* sessionOf(context, named)
})

const complete = Effect.fnUntraced(function* (
  context: RequestContext,
  { method = "card", session: named, ...money }: Money & { readonly method?: PaymentMethod; readonly session?: string }
) {
  const checkout = yield* openCheckout(context, yield* namedOrNew(context, named, money))
  const { id } = yield* method === "card"
    ? pay(context, checkout, somebody)
    : payLater(context, checkout, somebody, method)
  return id
})

const laterOptions = Schema.Struct({
  ...moneyOptions,
  method: maybe(Schema.Literal(...laterMethods)),
  session: sessionId
})

/** A session that waits for its payment: the named one, which is completed first if it is open, or a new one. */
const unpaid = Effect.fnUntraced(function* (
  context: RequestContext,
  { method, session: named, ...money }: typeof laterOptions.Type
) {
  const session = yield* namedOrNew(context, named, money)
  if (session.status === "complete") {
    yield* onlyForNew("session", method === undefined ? {} : { method })
    return session
  }
  return yield* payLater(context, yield* openCheckout(context, session), somebody, method ?? "boleto")
})

const later = (outcome: "succeeded" | "failed"): Trigger =>
  trigger(laterOptions, (context, options) =>
    Effect.flatMap(unpaid(context, options), (session) => Effect.map(settle(context, session, outcome), ({ id }) => id))
  )

export const checkoutTriggers = {
  "checkout.session.completed": trigger(
    Schema.Struct({ ...moneyOptions, method: maybe(Schema.Literal("card", ...laterMethods)), session: sessionId }),
    complete
  ),
  "checkout.session.async_payment_succeeded": later("succeeded"),
  "checkout.session.async_payment_failed": later("failed")
}
