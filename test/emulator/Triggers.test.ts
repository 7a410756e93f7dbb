import { Effect } from "effect"
import type { Stripe } from "stripe"
import { type Emulator, type TriggerRequest, triggers } from "../../src/emulator/Emulator.ts"
import { describe, expect, it } from "../harness/Tests.ts"
import {
  call,
  connected,
  eventually,
  onEmulator,
  platform,
  type Received,
  raw,
  said,
  sdk,
  startEmulator,
  thinWebhookSecret,
  webhookSecret
} from "./Harness.ts"

const thinPath = "/webhooks/provider/thin"

const notifying = Effect.gen(function* () {
  const { account, emulator, stripe } = yield* connected()
  const { received, url } = yield* platform()
  yield* emulator.setWebhookUrl(url)
  yield* emulator.setThinWebhookUrl(`${url}/thin`)
  return { account, emulator, received, stripe }
})

const control = (url: string, body: unknown) =>
  Effect.map(raw(url, "/_emulator/trigger", { method: "POST", body: JSON.stringify(body) }), ({ status, text }) => ({
    status,
    json: JSON.parse(text)
  }))

interface Told {
  readonly id: string
  readonly type: string
}

const notificationOf = (received: ReadonlyArray<Received>, { id }: Told): Effect.Effect<Received> =>
  eventually(
    Effect.suspend(() => {
      const found = received.find(({ body }) => JSON.parse(body).id === id)
      return found === undefined ? Effect.fail(`No notification of ${id}`) : Effect.succeed(found)
    })
  ).pipe(Effect.orDieWith((message) => new Error(message)))

const snapshotOf = (stripe: Stripe, { body, headers, path }: Received) => {
  expect(path).toBe("/webhooks/provider")
  return stripe.webhooks.constructEvent(body, String(headers["stripe-signature"]), webhookSecret, 300)
}

const thinOf = (stripe: Stripe, { body, headers, path }: Received) => {
  expect(path).toBe(thinPath)
  return stripe.parseEventNotification(body, String(headers["stripe-signature"]), thinWebhookSecret, 300)
}

/** Triggers on an account of its own and answers what the platform has been told, snapshots verified and in order. */
const told = (
  { emulator, received }: { readonly emulator: Emulator; readonly received: ReadonlyArray<Received> },
  request: TriggerRequest
) =>
  Effect.gen(function* () {
    const account = request.account ?? (yield* emulator.ensureAccount())
    const stripe = sdk(emulator.url, account)
    const triggered = yield* emulator.trigger({ ...request, account })
    const events = yield* Effect.forEach(triggered.events, (event) =>
      Effect.map(notificationOf(received, event), (one) => snapshotOf(stripe, one))
    )
    return { account, events, object: triggered.object, stripe, types: events.map(({ type }) => type) }
  })

const objectOf = (events: ReadonlyArray<Stripe.Event>, type: string): Readonly<Record<string, unknown>> => {
  const found = events.findLast((event) => event.type === type)
  return { ...found?.data.object }
}

describe("every trigger", () => {
  it.scopedLive("leads to its event, kept, sent to its entry and signed so that the SDK accepts it", function* () {
    const { emulator, received } = yield* notifying
    for (const { type } of triggers) {
      const account = yield* emulator.ensureAccount()
      const stripe = sdk(emulator.url, account)
      const { json, status } = yield* control(emulator.url, { type, account })
      expect([type, status]).toEqual([type, 200])
      const events: ReadonlyArray<Told> = json.events
      const thinEvents: ReadonlyArray<Told> = json.thin_events
      const isThin = /^v\d\./.test(type)
      expect((isThin ? thinEvents : events).map((one) => one.type)).toContain(type)
      for (const one of thinEvents) {
        const notification = thinOf(stripe, yield* notificationOf(received, one))
        expect(notification).toMatchObject({ id: one.id, type: one.type, object: "v2.core.event", livemode: false })
      }
      if (isThin) continue
      for (const one of events) {
        const event = snapshotOf(stripe, yield* notificationOf(received, one))
        expect(event).toMatchObject({ id: one.id, type: one.type, account, context: account, livemode: false })
      }
      // Whoever takes back the access takes back the reading, too
      if (type === "account.application.deauthorized") {
        expect(yield* said(() => stripe.events.list())).toMatchObject({ statusCode: 403, code: "account_invalid" })
        continue
      }
      const own = events.find((one) => one.type === type)
      expect(yield* call(() => stripe.events.retrieve(own?.id ?? ""))).toMatchObject({ type, account })
      const listed = yield* call(() => stripe.events.list({ limit: 100 }))
      expect(listed.data.map(({ id }) => id).reverse()).toEqual(events.map(({ id }) => id))
      expect(objectOf(listed.data.toReversed(), type)["id"]).toBe(json.object)
    }
  })

  onEmulator("is refused for unknown types, accounts and options", function* ({ account, emulator, stripe }) {
    const refused = (body: unknown) =>
      Effect.map(control(emulator.url, body), ({ json, status }) => [status, json.error?.message] as const)
    const [status, message] = yield* refused({ type: "payment_intent.canceled", account })
    expect(status).toBe(422)
    for (const { type } of triggers) expect(message).toContain(type)
    expect((yield* refused({ account }))[0]).toBe(422)
    expect((yield* refused({ type: "constructor", account }))[0]).toBe(422)
    expect((yield* refused([]))[0]).toBe(400)
    const cases: ReadonlyArray<readonly [number, TriggerRequest]> = [
      [403, { type: "payout.paid", account: "acct_0000000000000000" }],
      [400, { type: "payout.paid", account, amount: 0 }],
      [400, { type: "payout.paid", account, amount: 1.5 }],
      [400, { type: "payout.paid", account, currency: "BRL" }],
      [400, { type: "payout.paid", account, colour: "red" }],
      [400, { type: "payout.paid", account, metadata: { a: 1 } }],
      [400, { type: "payout.paid", account, payout: "po_none", amount: 5 }],
      [404, { type: "payout.paid", account, payout: "po_none" }],
      [404, { type: "charge.refunded", account, charge: "ch_none" }],
      [400, { type: "charge.refunded", account, charge: "ch_none", currency: "usd" }],
      [400, { type: "charge.refunded", account, amount: 100, refund_amount: 101 }],
      [404, { type: "charge.dispute.closed", account, dispute: "du_none" }],
      [400, { type: "charge.dispute.closed", account, outcome: "drawn" }],
      [400, { type: "charge.dispute.created", account, reason: "Because" }],
      [404, { type: "checkout.session.completed", account, session: "cs_none" }],
      [400, { type: "checkout.session.completed", account, method: "cheque" }],
      [400, { type: "checkout.session.completed", account, method: "boleto", currency: "usd" }],
      [400, { type: "checkout.session.async_payment_failed", account, method: "card" }],
      [404, { type: "invoice.paid", account, subscription: "sub_none" }],
      [400, { type: "customer.subscription.created", account, items: 21 }],
      [400, { type: "account.updated", account, capabilities: { card_payments: "lost" } }],
      [400, { type: "account.updated", account, requirements: { currently_due: "document" } }],
      [400, { type: "account.updated", account, snapshot: true }],
      [400, { type: "v1.capability.updated", account, capability: "../secrets" }],
      [400, { type: "v2.core.event_destination.ping", account, charges_enabled: true }]
    ]
    for (const [expected, body] of cases) expect([body, (yield* refused(body))[0]]).toEqual([body, expected])
    expect((yield* refused({ type: "payout.paid", account, api_version: "2019-01-01" }))[0]).toBe(400)
    expect((yield* call(() => stripe.events.list())).data).toEqual([])
    expect((yield* call(() => stripe.balanceTransactions.list())).data).toEqual([])
    expect((yield* raw(emulator.url, "/_emulator/trigger", { headers: { authorization: "" } })).status).toBe(401)
  })

  it.scopedLive("happens on the only connected account if none is named; asks if there are several", function* () {
    const emulator = yield* startEmulator()
    const status = Effect.map(control(emulator.url, { type: "payout.created" }), (answer) => answer.status)
    expect(yield* status).toBe(400)
    const account = yield* emulator.ensureAccount()
    expect(yield* emulator.trigger({ type: "payout.created" })).toMatchObject({ account })
    yield* emulator.ensureAccount()
    expect(yield* status).toBe(400)
    const listed = yield* raw(emulator.url, "/_emulator/triggers")
    expect(JSON.parse(listed.text).data).toEqual(JSON.parse(JSON.stringify(triggers)))
  })
})

describe("an account", () => {
  it.scopedLive("changes its status, told as snapshot, thin or both", function* () {
    const scene = yield* notifying
    const { account, events, stripe } = yield* told(scene, {
      type: "account.updated",
      charges_enabled: false,
      capabilities: { card_payments: "inactive" },
      requirements: { past_due: ["external_account"], disabled_reason: "requirements.past_due" },
      thin: true
    })
    expect(events).toMatchObject([
      {
        type: "account.updated",
        data: {
          object: {
            id: account,
            charges_enabled: false,
            payouts_enabled: true,
            capabilities: { card_payments: "inactive", transfers: "active" },
            requirements: {
              past_due: ["external_account"],
              currently_due: [],
              disabled_reason: "requirements.past_due"
            }
          },
          previous_attributes: { charges_enabled: true }
        }
      }
    ])
    expect(events[0]?.data.previous_attributes).not.toHaveProperty("business_profile")
    expect(yield* call(() => stripe.accounts.retrieve(account))).toMatchObject({ charges_enabled: false })

    const thin = yield* scene.emulator.trigger({ type: "v1.account.updated", account, requirements: null })
    const [first] = thin.thin_events
    const notification = thinOf(stripe, yield* notificationOf(scene.received, first ?? { id: "", type: "" }))
    expect(JSON.parse(JSON.stringify(notification))).toMatchObject({
      type: "v1.account.updated",
      context: expect.anything(),
      related_object: { id: account, type: "account", url: `/v1/accounts/${account}` },
      snapshot_event: thin.events[0]?.id
    })
    expect(scene.received.some(({ body }) => JSON.parse(body).id === thin.events[0]?.id)).toBe(false)
    expect(yield* call(() => stripe.events.retrieve(thin.events[0]?.id ?? ""))).toMatchObject({ pending_webhooks: 0 })
    expect((yield* call(() => stripe.accounts.retrieve(account))).requirements).toBeUndefined()
  })

  it.scopedLive("edits its profile, and nothing else changes", function* () {
    const scene = yield* notifying
    const { events } = yield* told(scene, { type: "account.updated", business_profile: { name: "New name" } })
    expect(Object.keys(events[0]?.data.previous_attributes ?? {})).toEqual(["business_profile"])
  })

  onEmulator("has a document due and handed in if no options are given", function* ({ emulator, stripe, account }) {
    const due = Effect.map(
      call(() => stripe.accounts.retrieve(account)),
      ({ requirements }) => requirements?.currently_due?.length
    )
    yield* emulator.trigger({ type: "account.updated" })
    expect(yield* due).toBe(1)
    yield* emulator.trigger({ type: "v2.core.account[requirements].updated" })
    expect(yield* due).toBe(0)
  })

  it.scopedLive("that is disconnected is out of the platform's reach, and told of in either form", function* () {
    const scene = yield* notifying
    const { account, events, stripe } = yield* told(scene, { type: "account.application.deauthorized" })
    expect(events).toMatchObject([{ account, data: { object: { object: "application" } } }])
    expect(yield* said(() => stripe.accounts.retrieve(account))).toMatchObject({ code: "account_invalid" })
    const other = yield* scene.emulator.ensureAccount()
    const thin = yield* scene.emulator.trigger({ type: "v1.account.application.deauthorized", account: other })
    const { body } = yield* notificationOf(scene.received, thin.thin_events[0] ?? { id: "", type: "" })
    expect(JSON.parse(body)).toMatchObject({ context: other, snapshot_event: thin.events[0]?.id })
    expect(JSON.parse(body)).not.toHaveProperty("related_object")
  })
})

describe("a dispute", () => {
  it.scopedLive("takes amount and fee from the balance, and gives the amount back where it is won", function* () {
    const scene = yield* notifying
    const opened = yield* told(scene, { type: "charge.dispute.created", amount: 2_000, metadata: { case: "7" } })
    const { account, stripe } = opened
    expect(opened.types.slice(-2)).toEqual(["charge.dispute.created", "charge.dispute.funds_withdrawn"])
    const dispute = yield* call(() => stripe.disputes.retrieve(opened.object, { expand: ["charge"] }))
    expect(dispute).toMatchObject({
      amount: 2_000,
      currency: "brl",
      metadata: { case: "7" },
      reason: "fraudulent",
      status: "needs_response",
      charge: { disputed: true, metadata: {} },
      balance_transactions: [{ amount: -2_000, fee: 1_500, net: -3_500, reporting_category: "dispute" }]
    })
    const charge = typeof dispute.charge === "string" ? dispute.charge : dispute.charge.id
    expect(yield* said(() => stripe.refunds.create({ charge }))).toMatchObject({ code: "charge_disputed" })
    const again = yield* control(scene.emulator.url, { type: "charge.dispute.created", account, charge })
    expect(again.status).toBe(400)

    const won = yield* told(scene, { type: "charge.dispute.closed", account, dispute: dispute.id, outcome: "won" })
    expect(won.types).toEqual(["charge.dispute.funds_reinstated", "charge.dispute.closed"])
    expect(objectOf(won.events, "charge.dispute.closed")).toMatchObject({
      status: "won",
      evidence_details: { has_evidence: true }
    })
    const adjustments = yield* call(() =>
      stripe.balanceTransactions.list({ type: "adjustment", expand: ["data.source"] })
    )
    expect(adjustments.data).toMatchObject([
      { amount: 2_000, reporting_category: "dispute_reversal", source: { object: "dispute" } },
      { amount: -2_000, fee: 1_500 }
    ])
    const repeated = yield* control(scene.emulator.url, { type: "charge.dispute.closed", account, dispute: dispute.id })
    expect(repeated.status).toBe(400)
    expect((yield* call(() => stripe.disputes.list({ charge }))).data).toHaveLength(1)
  })

  it.scopedLive("that is lost gives nothing back", function* () {
    const scene = yield* notifying
    const { events, stripe, types } = yield* told(scene, { type: "charge.dispute.closed" })
    expect(types.slice(-1)).toEqual(["charge.dispute.closed"])
    expect(objectOf(events, "charge.dispute.closed")).toMatchObject({ status: "lost" })
    expect((yield* call(() => stripe.balanceTransactions.list({ type: "adjustment" }))).data).toHaveLength(1)
  })
})

describe("a payment that is paid later", () => {
  it.scopedLive("completes the session unpaid, then pays it", function* () {
    const scene = yield* notifying
    const slip = yield* told(scene, { type: "checkout.session.completed", method: "boleto", metadata: { order: "1" } })
    const { account, object: session, stripe } = slip
    expect(slip.types.slice(2)).toEqual([
      "payment_intent.created",
      "payment_intent.requires_action",
      "checkout.session.completed"
    ])
    expect(objectOf(slip.events, "checkout.session.completed")).toMatchObject({
      status: "complete",
      payment_status: "unpaid",
      metadata: { order: "1" }
    })
    expect((yield* call(() => stripe.charges.list())).data).toEqual([])
    const paid = yield* told(scene, { type: "checkout.session.async_payment_succeeded", account, session })
    expect(paid.types).toEqual([
      "charge.succeeded",
      "payment_intent.succeeded",
      "checkout.session.async_payment_succeeded"
    ])
    expect(
      yield* call(() => stripe.checkout.sessions.retrieve(session, { expand: ["payment_intent.latest_charge"] }))
    ).toMatchObject({
      payment_status: "paid",
      payment_intent: {
        status: "succeeded",
        next_action: null,
        latest_charge: { paid: true, payment_method_details: { type: "boleto" } }
      }
    })
    expect((yield* call(() => stripe.balanceTransactions.list())).data).toMatchObject([
      { type: "payment", amount: 1_500 }
    ])
    const again = yield* control(scene.emulator.url, {
      type: "checkout.session.async_payment_failed",
      account,
      session
    })
    expect(again.status).toBe(400)
  })

  it.scopedLive("runs out unpaid, with no charge", function* () {
    const scene = yield* notifying
    const { events, stripe, types } = yield* told(scene, {
      type: "checkout.session.async_payment_failed",
      method: "pix"
    })
    expect(types.slice(-2)).toEqual(["payment_intent.payment_failed", "checkout.session.async_payment_failed"])
    expect(objectOf(events, "checkout.session.async_payment_failed")).toMatchObject({ payment_status: "unpaid" })
    expect(objectOf(events, "payment_intent.payment_failed")).toMatchObject({
      last_payment_error: { code: "payment_intent_payment_attempt_expired" }
    })
    expect((yield* call(() => stripe.charges.list())).data).toEqual([])
  })
})

describe("a subscription of many prices", () => {
  it.scopedLive("is cut to ten items in notifications; the lists have the rest", function* () {
    const scene = yield* notifying
    const { account, events, object, stripe } = yield* told(scene, {
      type: "customer.subscription.created",
      items: 12,
      amount: 100
    })
    const created = objectOf(events, "customer.subscription.created")
    expect(created["items"]).toMatchObject({ has_more: true, data: { length: 10 } })
    const items = yield* call(() => stripe.subscriptionItems.list({ subscription: object, limit: 100 }))
    expect(items.data).toHaveLength(12)
    const renewed = yield* told(scene, { type: "invoice.paid", account, subscription: object })
    const invoice = objectOf(renewed.events, "invoice.paid")
    expect(invoice).toMatchObject({
      amount_paid: 1_200,
      billing_reason: "subscription_cycle",
      lines: { has_more: true, data: { length: 10 } }
    })
    const [last] = (yield* call(() => stripe.invoices.listLineItems(renewed.object, { limit: 10 }))).data.slice(-1)
    const rest = yield* call(() =>
      stripe.invoices.listLineItems(renewed.object, { limit: 10, starting_after: last?.id ?? "" })
    )
    expect([rest.data.length, rest.has_more]).toEqual([2, false])
  })

  it.scopedLive("fails to pay, and ends", function* () {
    const scene = yield* notifying
    const failed = yield* told(scene, { type: "invoice.payment_failed", metadata: { plan: "gold" } })
    const invoice = yield* call(() => failed.stripe.invoices.retrieve(failed.object))
    expect(invoice).toMatchObject({ status: "open", attempt_count: 1, amount_due: 1_500 })
    const subscription = String(invoice.parent?.subscription_details?.subscription)
    const { account } = failed
    const ended = yield* told(scene, { type: "customer.subscription.deleted", account, subscription })
    expect(ended.types).toEqual(["customer.subscription.deleted"])
    expect(ended.events[0]?.data.object).toMatchObject({ status: "canceled", metadata: { plan: "gold" } })
  })
})

describe("the version of a notification", () => {
  it.scopedLive("is the older one where the trigger or the target says so; what is read stays current", function* () {
    const scene = yield* notifying
    const api_version = "2024-12-18.acacia"
    const { account, events, object, stripe } = yield* told(scene, { type: "invoice.paid", items: 2, api_version })
    const invoice = objectOf(events, "invoice.paid")
    const current = yield* call(() => stripe.invoices.retrieve(object))
    const subscription = String(current.parent?.subscription_details?.subscription)
    const [line] = (yield* call(() => stripe.invoices.listLineItems(object, { limit: 1 }))).data
    expect(invoice).toMatchObject({
      subscription,
      paid: true,
      lines: { data: [{ price: { object: "price", id: line?.pricing?.price_details?.price } }, {}] }
    })
    for (const moved of ["parent", "total_taxes"]) expect(invoice).not.toHaveProperty(moved)
    expect(JSON.stringify(invoice)).not.toContain('"pricing"')
    const paid = objectOf(events, "payment_intent.succeeded")
    expect(invoice["payment_intent"]).toBe(paid["id"])
    expect(paid["invoice"]).toBe(invoice["id"])
    const made = objectOf(events, "customer.subscription.created")
    expect(made).toMatchObject({ current_period_start: expect.any(Number), current_period_end: expect.any(Number) })
    for (const event of events) {
      expect(event.api_version).toBe(api_version)
      expect(event).not.toHaveProperty("context")
    }
    const [first] = (yield* call(() => stripe.events.list({ type: "invoice.paid", limit: 1 }))).data
    expect(first).toMatchObject({
      api_version: "2026-10-28.endive",
      data: { object: { parent: { quote_details: null } } }
    })

    const { received } = scene
    const target = yield* platform()
    yield* raw(scene.emulator.url, "/_emulator/webhook", {
      method: "POST",
      body: JSON.stringify({ url: target.url, api_version })
    })
    const next = yield* told({ ...scene, received: target.received }, { type: "payout.paid", account })
    expect(next.events.map((event) => event.api_version)).toEqual([api_version, api_version, api_version])
    expect(received.some(({ body }) => JSON.parse(body).id === next.events[0]?.id)).toBe(false)
  })
})
