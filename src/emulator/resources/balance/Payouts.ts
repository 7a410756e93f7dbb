import { Effect } from "effect"
import * as Params from "../../api/Params.ts"
import type { RequestContext, Route } from "../../api/Route.ts"
import { newId } from "../../Ids.ts"
import { invalid, type ProviderError } from "../../ProviderError.ts"
import { nulls, type Payout } from "../../Records.ts"
import { resource } from "../Resource.ts"
import { recordPayout, recordReturnedPayout } from "./BalanceTransactions.ts"

export type PayoutState = "pending" | "in_transit" | "paid" | "failed" | "canceled"

export interface PayoutOrder {
  /** Above 0, in the smallest currency unit. */
  readonly amount: number
  readonly currency: string
  readonly state: PayoutState
  /** Whether the account's schedule created it; default true. */
  readonly automatic?: boolean
  readonly metadata?: Readonly<Record<string, string>>
}

/** Seconds until a payout arrives. */
const transitTime = 24 * 60 * 60

/** The states from which a payout can move to each state; a paid one can still fail. */
const sources: { readonly [S in PayoutState]: ReadonlyArray<string> } = {
  pending: [],
  in_transit: ["pending"],
  paid: ["pending", "in_transit"],
  failed: ["pending", "in_transit", "paid"],
  canceled: ["pending"]
}

const makePayout = (context: RequestContext, order: PayoutOrder): Payout => {
  const automatic = order.automatic ?? true
  const bank = context.platform.objects.get("account", context.account)?.external_accounts?.data[0]
  return {
    id: newId("po_"),
    object: "payout",
    amount: order.amount,
    ...nulls("application_fee application_fee_amount balance_transaction failure_balance_transaction failure_code"),
    ...nulls("failure_message original_payout payout_method reversed_by statement_descriptor trace_id"),
    arrival_date: context.now + transitTime,
    automatic,
    created: context.now,
    currency: order.currency,
    description: "STRIPE PAYOUT",
    destination: bank?.id ?? null,
    livemode: false,
    metadata: { ...order.metadata },
    method: "standard",
    reconciliation_status: automatic ? "completed" : "not_applicable",
    source_type: "card",
    status: "pending",
    type: "bank_account"
  }
}

/** The transactions of an automatic payout: all in its currency that no earlier payout included. */
const contentsOf = ({ objects }: RequestContext, payout: Payout, own: string): ReadonlyArray<string> => {
  if (!payout.automatic) return [own]
  const gone = new Set(objects.all("payout_contents").flatMap(({ transactions }) => transactions))
  return objects
    .all("balance_transaction")
    .filter(({ currency, id }) => currency === payout.currency && !gone.has(id))
    .map(({ id }) => id)
}

const failure = { failure_code: "account_closed", failure_message: "The bank account has been closed." } as const

const changed = (context: RequestContext, before: Payout, state: PayoutState): Payout => {
  const payout: Payout = { ...before, status: state }
  if (state !== "failed" && state !== "canceled") return payout
  const returned = recordReturnedPayout(context, before, state === "failed" ? "payout_failure" : "payout_cancel")
  return { ...payout, ...(state === "failed" ? failure : {}), failure_balance_transaction: returned.id }
}

const payouts = resource("/v1/payouts", "payout")

/** Errors: `resource_missing` (404); an invalid state transition (400). */
export const movePayout: (
  context: RequestContext,
  id: string,
  state: PayoutState
) => Effect.Effect<Payout, ProviderError> = Effect.fnUntraced(function* (context, id, state) {
  const before = yield* payouts.existing(context, id)
  if (!sources[state].includes(before.status)) {
    return yield* invalid("state", `A payout cannot go from ${before.status} to ${state}.`)
  }
  const payout = changed(context, before, state)
  context.save("payout", "payout.updated", payout, before)
  if (state === "paid" || state === "failed" || state === "canceled") {
    context.emit({ type: `payout.${state}`, shape: "payout", object: payout })
  }
  return payout
})

/** Creates a payout and moves it to its state. Events: `payout.created`, then those of {@link movePayout}. */
export const makePayoutOf: (context: RequestContext, order: PayoutOrder) => Effect.Effect<Payout, ProviderError> =
  Effect.fnUntraced(function* (context, order) {
    const made = makePayout(context, order)
    const transaction = recordPayout(context, made)
    const payout: Payout = { ...made, balance_transaction: transaction.id }
    context.objects.put("payout_contents", payout.id, {
      payout: payout.id,
      transactions: contentsOf(context, payout, transaction.id)
    })
    context.save("payout", "payout.created", payout)
    return order.state === "pending" ? payout : yield* movePayout(context, payout.id, order.state)
  })

const filters = Params.optionals({
  arrival_date: Params.range,
  created: Params.range,
  destination: Params.text(),
  status: Params.oneOf("pending", "paid", "failed", "canceled", "in_transit")
})

export const payoutRoutes: ReadonlyArray<Route> = [payouts.list(filters), payouts.get]
