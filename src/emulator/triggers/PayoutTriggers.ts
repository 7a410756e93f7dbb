import { Effect, Schema } from "effect"
import type { RequestContext } from "../api/Route.ts"
import { maybe } from "../control/ControlInput.ts"
import { makePayoutOf, movePayout, type PayoutState } from "../resources/Payouts.ts"
import { moneyOptions, usualMoney } from "./PaymentTriggers.ts"
import { onlyForNew, type Trigger, trigger } from "./Trigger.ts"

const options = Schema.Struct({ ...moneyOptions, automatic: maybe(Schema.Boolean), payout: maybe(Schema.String) })

const bring = Effect.fnUntraced(function* (
  context: RequestContext,
  state: PayoutState,
  { payout, ...asked }: typeof options.Type
) {
  if (payout === undefined) {
    const { id } = yield* makePayoutOf(context, { ...usualMoney, ...asked, state })
    return id
  }
  yield* onlyForNew("payout", asked)
  const { id } = yield* movePayout(context, payout, state)
  return id
})

const to = (state: PayoutState): Trigger => trigger(options, (context, asked) => bring(context, state, asked))

export const payoutTriggers = {
  "payout.created": to("pending"),
  "payout.updated": to("in_transit"),
  "payout.paid": to("paid"),
  "payout.failed": to("failed"),
  "payout.canceled": to("canceled")
}
