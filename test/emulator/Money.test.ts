import { describe, expect } from "@effect/vitest"
import { Effect } from "effect"
import type { Stripe } from "stripe"
import { call, onEmulator, raw, said, sdk, somePrice, someSession, submit } from "./Harness.ts"

const somePayment = (stripe: Stripe, unit_amount = 1_000) =>
  Effect.gen(function* () {
    const price = yield* somePrice(stripe, { unit_amount })
    const session = yield* someSession(stripe, { line_items: [{ price: price.id, quantity: 1 }] })
    yield* submit(session.url, { action: "pay" })
    const [charge] = (yield* call(() => stripe.charges.list({ limit: 1 }))).data
    if (charge === undefined) throw new Error("Nothing was charged")
    return { charge, intent: String(charge.payment_intent) }
  })

const control = (url: string, method: string, path: string, body?: object) =>
  raw(url, `/_emulator/${path}`, { method, ...(body === undefined ? {} : { body: JSON.stringify(body) }) })

describe("the balance", () => {
  onEmulator("is what payments, refunds and payouts come to, less the fees", function* ({ account, emulator, stripe }) {
    expect(yield* call(() => stripe.balance.retrieve())).toMatchObject({
      available: [{ amount: 0, currency: "usd" }],
      pending: [{ amount: 0, currency: "usd" }]
    })
    const { charge } = yield* somePayment(stripe, 10_000)
    yield* call(() => stripe.refunds.create({ charge: charge.id, amount: 1_000 }))
    yield* emulator.orderPayout({ account, amount: 2_000, currency: "brl", state: "in_transit" })
    const transactions = (yield* call(() => stripe.balanceTransactions.list())).data
    expect(transactions.map(({ amount, fee, net, status, type }) => [type, amount, fee, net, status])).toEqual([
      ["payout", -2_000, 0, -2_000, "available"],
      ["refund", -1_000, 0, -1_000, "available"],
      ["charge", 10_000, 320, 9_680, "pending"]
    ])
    const balance = yield* call(() => stripe.balance.retrieve())
    const of = (list: ReadonlyArray<{ readonly amount: number; readonly currency: string }>) =>
      list.find(({ currency }) => currency === "brl")?.amount
    expect([of(balance.available), of(balance.pending)]).toEqual([-3_000, 9_680])
    expect((yield* call(() => stripe.charges.retrieve(charge.id))).balance_transaction).toBe(transactions[2]?.id)
    const whole = yield* call(() =>
      stripe.balanceTransactions.retrieve(transactions[2]?.id ?? "", { expand: ["source"] })
    )
    expect(whole).toMatchObject({ source: { object: "charge", id: charge.id }, reporting_category: "charge" })
  })
})

describe("payouts", () => {
  onEmulator("are made and moved on by triggers, and told of", function* ({ account, emulator, stripe }) {
    const made = yield* control(emulator.url, "POST", "trigger", {
      type: "payout.created",
      amount: 700,
      currency: "brl",
      automatic: false,
      metadata: { a: "1" }
    })
    expect(made.status).toBe(200)
    const { object: id } = JSON.parse(made.text)
    const payout = yield* call(() => stripe.payouts.retrieve(id))
    expect(payout).toMatchObject({ amount: 700, status: "pending", automatic: false, metadata: { a: "1" } })
    const banks = yield* call(() => stripe.accounts.listExternalAccounts(account))
    expect(payout.destination).toBe(banks.data[0]?.id)
    for (const type of ["payout.updated", "payout.paid", "payout.failed"]) {
      expect((yield* control(emulator.url, "POST", "trigger", { type, payout: id })).status).toBe(200)
    }
    expect(yield* call(() => stripe.payouts.retrieve(id))).toMatchObject({
      status: "failed",
      failure_code: "account_closed"
    })
    const events = (yield* call(() => stripe.events.list({ type: "payout.*" }))).data.map(({ type }) => type)
    expect(events.reverse()).toEqual([
      "payout.created",
      "payout.updated",
      "payout.updated",
      "payout.paid",
      "payout.updated",
      "payout.failed"
    ])
    const returned = yield* call(() => stripe.balanceTransactions.list({ type: "payout_failure" }))
    expect(returned.data.map(({ amount }) => amount)).toEqual([700])

    const again = yield* control(emulator.url, "POST", "trigger", { type: "payout.canceled", payout: id })
    expect(again.status).toBe(400)

    const canceled = yield* emulator.orderPayout({ account, amount: 1, currency: "brl", state: "canceled" })
    const ids = (params: Stripe.PayoutListParams) =>
      Effect.map(
        call(() => stripe.payouts.list(params)),
        ({ data }) => data.map((one) => one.id)
      )
    expect(yield* ids({})).toEqual([canceled, id])
    expect(yield* ids({ status: "failed" })).toEqual([id])
    expect(yield* ids({ arrival_date: { gt: payout.arrival_date + 60 } })).toEqual([])
    expect(yield* ids({ destination: "ba_none" })).toEqual([])
    expect(yield* said(() => stripe.payouts.retrieve("po_none"))).toMatchObject({ statusCode: 404 })
  })
})

describe("an account", () => {
  onEmulator("is out of reach while its access is revoked; nothing is lost", function* ({ account, emulator, stripe }) {
    const product = yield* call(() => stripe.products.create({ name: "Coffee" }))
    const revoked = yield* control(emulator.url, "POST", `accounts/${account}`, { revoke: true })
    expect(JSON.parse(revoked.text)).toEqual({ id: account, revoked: true })
    for (const request of [
      () => stripe.products.retrieve(product.id),
      () => stripe.accounts.retrieve(account),
      () => sdk(emulator.url).accounts.retrieve(account)
    ]) {
      expect(yield* said(request)).toMatchObject({ statusCode: 403, code: "account_invalid" })
    }
    expect((yield* call(() => sdk(emulator.url).accounts.list())).data).toEqual([])
    yield* control(emulator.url, "POST", `accounts/${account}`, { restore: true })
    expect((yield* call(() => stripe.products.retrieve(product.id))).name).toBe("Coffee")
    yield* emulator.revokeAccount(account)
    expect(yield* said(() => stripe.products.list())).toMatchObject({ code: "account_invalid" })
    yield* emulator.restoreAccount(account)
    expect((yield* call(() => stripe.products.list())).data).toHaveLength(1)
    const both = yield* control(emulator.url, "POST", `accounts/${account}`, { revoke: true, restore: true })
    expect(both.status).toBe(400)
  })
})
