import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import type { Stripe } from "stripe"
import { call, connected, raw, refusal, said, sdk, somePrice, someSession, submit } from "./Harness.ts"

/** A payment of 10.00, and its charge. */
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

describe("refunds", () => {
  it.scopedLive("pay back in parts until nothing is left, and the charge and the events say so", () =>
    Effect.gen(function* () {
      const { stripe } = yield* connected()
      const { charge, intent } = yield* somePayment(stripe)
      const first = yield* call(() =>
        stripe.refunds.create({
          payment_intent: intent,
          amount: 300,
          reason: "requested_by_customer",
          metadata: { a: "1" }
        })
      )
      expect(first).toMatchObject({
        object: "refund",
        amount: 300,
        charge: charge.id,
        payment_intent: intent,
        currency: "brl",
        reason: "requested_by_customer",
        metadata: { a: "1" },
        status: "succeeded"
      })
      expect(first.id).toMatch(/^re_[A-Za-z0-9]{24}$/)
      expect(yield* call(() => stripe.charges.retrieve(charge.id))).toMatchObject({
        amount_refunded: 300,
        refunded: false,
        amount: 1000
      })
      const tooMuch = yield* refusal(() => stripe.refunds.create({ charge: charge.id, amount: 701 }))
      expect([tooMuch.statusCode, tooMuch.param]).toEqual([400, "amount"])
      const rest = yield* call(() => stripe.refunds.create({ charge: charge.id }))
      expect(rest.amount).toBe(700)
      expect(yield* call(() => stripe.charges.retrieve(charge.id))).toMatchObject({
        amount_refunded: 1000,
        refunded: true
      })
      expect(yield* said(() => stripe.refunds.create({ charge: charge.id }))).toMatchObject({
        statusCode: 400,
        code: "charge_already_refunded"
      })
      const events = (yield* call(() => stripe.events.list({ limit: 4 }))).data
      expect(events.map(({ type }) => type)).toEqual([
        "charge.refunded",
        "refund.created",
        "charge.refunded",
        "refund.created"
      ])
      expect(events[0]?.data).toMatchObject({
        object: { amount_refunded: 1000, refunded: true },
        previous_attributes: { amount_refunded: 300, refunded: false }
      })
      expect(yield* call(() => stripe.refunds.retrieve(first.id, { expand: ["charge"] }))).toMatchObject({
        charge: { id: charge.id }
      })
    })
  )

  it.scopedLive("never pay back more than was paid, however many are asked for at once", () =>
    Effect.gen(function* () {
      const { stripe } = yield* connected()
      const { charge } = yield* somePayment(stripe)
      const results = yield* Effect.all(
        Array.from({ length: 12 }, () =>
          Effect.promise(() => stripe.refunds.create({ charge: charge.id, amount: 150 }).catch(() => undefined))
        ),
        { concurrency: "unbounded" }
      )
      expect(results.filter((refund) => refund !== undefined)).toHaveLength(6)
      expect((yield* call(() => stripe.charges.retrieve(charge.id))).amount_refunded).toBe(900)
    })
  )

  it.scopedLive("are refused for what was not paid and for what they do not know", () =>
    Effect.gen(function* () {
      const { emulator, stripe } = yield* connected()
      const { charge, intent } = yield* somePayment(stripe)
      const open = yield* someSession(stripe)
      yield* submit(open.url, { action: "decline" })
      const [failed] = (yield* call(() => stripe.charges.list({ limit: 1 }))).data
      const refused = (params: object) =>
        Effect.map(
          said(() => stripe.rawRequest("POST", "/v1/refunds", { ...params })),
          ({ code, param, statusCode }) => [statusCode, code, param]
        )
      expect(yield* refused({})).toEqual([400, "parameter_missing", "payment_intent"])
      expect(yield* refused({ charge: charge.id, payment_intent: intent })).toEqual([
        400,
        "parameters_exclusive",
        "payment_intent"
      ])
      expect(yield* refused({ charge: "ch_none" })).toEqual([400, "resource_missing", "charge"])
      expect(yield* refused({ payment_intent: "pi_none" })).toEqual([400, "resource_missing", "payment_intent"])
      expect(yield* refused({ payment_intent: String(failed?.payment_intent) })).toEqual([
        400,
        undefined,
        "payment_intent"
      ])
      expect(yield* refused({ charge: failed?.id })).toEqual([400, "charge_not_refundable", "charge"])
      for (const amount of [0, -1, 1.5, "all"]) {
        expect(yield* refused({ charge: charge.id, amount })).toEqual([400, "parameter_invalid_integer", "amount"])
      }
      expect(yield* refused({ charge: charge.id, reason: "bored" })).toEqual([400, undefined, "reason"])
      expect(yield* refused({ charge: charge.id, reverse_transfer: true })).toEqual([
        400,
        "parameter_unknown",
        "reverse_transfer"
      ])
      const other = sdk(emulator.url, yield* emulator.ensureAccount())
      expect(yield* said(() => other.refunds.create({ charge: charge.id }))).toMatchObject({ code: "resource_missing" })
      expect((yield* call(() => stripe.refunds.list())).data).toEqual([])
    })
  )

  it.scopedLive("are made once for one idempotency key, and are listed by what they pay back", () =>
    Effect.gen(function* () {
      const { stripe } = yield* connected()
      const { charge } = yield* somePayment(stripe)
      const { charge: other, intent } = yield* somePayment(stripe)
      const make = () => stripe.refunds.create({ charge: charge.id, amount: 100 }, { idempotencyKey: "once-12345" })
      const first = yield* call(make)
      expect((yield* call(make)).id).toBe(first.id)
      const second = yield* call(() => stripe.refunds.create({ charge: other.id }))
      const ids = (params: Stripe.RefundListParams) =>
        Effect.map(
          call(() => stripe.refunds.list(params)),
          ({ data }) => data.map(({ id }) => id)
        )
      expect(yield* ids({})).toEqual([second.id, first.id])
      expect(yield* ids({ charge: charge.id })).toEqual([first.id])
      expect(yield* ids({ payment_intent: intent })).toEqual([second.id])
      expect(yield* ids({ created: { gt: second.created } })).toEqual([])
      expect(yield* said(() => stripe.refunds.retrieve("re_none"))).toMatchObject({ statusCode: 404 })
    })
  )
})

describe("the balance", () => {
  it.scopedLive("is what payments, refunds and payouts come to, less the fees", () =>
    Effect.gen(function* () {
      const { account, emulator, stripe } = yield* connected()
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
  )

  it.scopedLive("lists its transactions by kind, source, moment and payout", () =>
    Effect.gen(function* () {
      const { account, emulator, stripe } = yield* connected()
      const { charge } = yield* somePayment(stripe)
      const first = yield* emulator.orderPayout({ account, amount: 500, currency: "brl", state: "paid" })
      yield* call(() => stripe.refunds.create({ charge: charge.id, amount: 100 }))
      const second = yield* emulator.orderPayout({ account, amount: 400, currency: "brl", state: "pending" })
      const types = (params: Stripe.BalanceTransactionListParams) =>
        Effect.map(
          call(() => stripe.balanceTransactions.list(params)),
          ({ data }) => data.map(({ type }) => type)
        )
      expect(yield* types({})).toEqual(["payout", "refund", "payout", "charge"])
      expect(yield* types({ type: "payout" })).toEqual(["payout", "payout"])
      expect(yield* types({ source: charge.id })).toEqual(["charge"])
      expect(yield* types({ currency: "usd" })).toEqual([])
      expect(yield* types({ payout: first })).toEqual(["payout", "charge"])
      expect(yield* types({ payout: second })).toEqual(["payout", "refund"])
      expect(yield* types({ created: { gte: charge.created, lte: charge.created + 60 }, limit: 2 })).toHaveLength(2)
      expect(yield* types({ created: { gte: charge.created + 60 } })).toEqual([])
      expect(yield* said(() => stripe.balanceTransactions.list({ payout: "po_none" }))).toMatchObject({
        statusCode: 400,
        code: "resource_missing",
        param: "payout"
      })
    })
  )
})

describe("payouts", () => {
  it.scopedLive("are made and moved on by the control routes, and told of", () =>
    Effect.gen(function* () {
      const { account, emulator, stripe } = yield* connected()
      const made = yield* control(emulator.url, "POST", "payouts", {
        account,
        amount: 700,
        currency: "brl",
        state: "pending",
        automatic: false,
        metadata: { a: "1" }
      })
      expect(made.status).toBe(200)
      const { id } = JSON.parse(made.text)
      const payout = yield* call(() => stripe.payouts.retrieve(id))
      expect(payout).toMatchObject({ amount: 700, status: "pending", automatic: false, metadata: { a: "1" } })
      const banks = yield* call(() => stripe.accounts.listExternalAccounts(account))
      expect(payout.destination).toBe(banks.data[0]?.id)
      for (const state of ["in_transit", "paid", "failed"]) {
        expect((yield* control(emulator.url, "POST", "payouts", { account, id, state })).status).toBe(200)
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
  )

  it.scopedLive("are refused where they make no sense", () =>
    Effect.gen(function* () {
      const { account, emulator } = yield* connected()
      const order = { account, amount: 1, currency: "brl", state: "paid" }
      const status = (body: object) => Effect.map(control(emulator.url, "POST", "payouts", body), (one) => one.status)
      expect(yield* status({ ...order, amount: 0 })).toBe(400)
      expect(yield* status({ ...order, currency: "BRL" })).toBe(400)
      expect(yield* status({ ...order, state: "lost" })).toBe(400)
      expect(yield* status({ ...order, colour: "red" })).toBe(400)
      expect(yield* status({ ...order, account: "acct_0000000000000000" })).toBe(403)
      expect(yield* status({ account, id: "po_none", state: "paid" })).toBe(404)
      const id = yield* emulator.orderPayout({ account, amount: 1, currency: "brl", state: "paid" })
      expect(yield* status({ account, id, state: "canceled" })).toBe(400)
    })
  )
})

describe("an account", () => {
  it.scopedLive("says how it is paid out, and to which bank account", () =>
    Effect.gen(function* () {
      const { account, emulator, stripe } = yield* connected()
      expect(yield* call(() => stripe.balanceSettings.retrieve())).toMatchObject({
        object: "balance_settings",
        payments: {
          payouts: { status: "enabled", schedule: { interval: "daily" } },
          settlement_timing: { delay_days: 2 }
        }
      })
      const banks = yield* call(() => stripe.accounts.listExternalAccounts(account))
      expect(banks.data).toMatchObject([
        { object: "bank_account", account, bank_name: "STRIPE TEST BANK", last4: "6789", default_for_currency: true }
      ])
      expect((yield* call(() => stripe.accounts.listExternalAccounts(account, { object: "card" }))).data).toEqual([])
      const own = yield* call(() => stripe.accounts.retrieve(account))
      expect(own).toMatchObject({
        capabilities: { card_payments: "active", transfers: "active" },
        controller: { is_controller: true },
        external_accounts: { data: [{ id: banks.data[0]?.id }] },
        requirements: { currently_due: [] },
        settings: { payouts: { schedule: { delay_days: 2 } } }
      })
      const other = yield* emulator.ensureAccount()
      expect(yield* said(() => stripe.accounts.listExternalAccounts(other))).toMatchObject({ statusCode: 403 })
    })
  )

  it.scopedLive("keeps its bank accounts to itself where the platform does not control it", () =>
    Effect.gen(function* () {
      const { account, emulator, stripe } = yield* connected()
      yield* control(emulator.url, "POST", `accounts/${account}`, { controlled: false })
      const own = yield* call(() => stripe.accounts.retrieve(account))
      expect(own.external_accounts).toBeUndefined()
      expect(own.controller).toEqual({ type: "account" })
      expect(yield* said(() => stripe.accounts.listExternalAccounts(account))).toMatchObject({
        statusCode: 403,
        code: undefined
      })
      yield* control(emulator.url, "POST", `accounts/${account}`, { controlled: true })
      expect((yield* call(() => stripe.accounts.listExternalAccounts(account))).data).toHaveLength(1)
    })
  )

  it.scopedLive("is out of reach while its owner has revoked the access, and nothing is lost by that", () =>
    Effect.gen(function* () {
      const { account, emulator, stripe } = yield* connected()
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
  )
})
