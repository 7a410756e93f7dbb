import { expect } from "@effect/vitest"
import { Context, Duration, Effect, Layer, Logger, LogLevel } from "effect"
import { Inbound } from "../../src/inbound/Inbound.ts"
import { Receipts } from "../../src/inbound/Receipts.ts"
import { Provider } from "../../src/payments/Provider.ts"
import { Metrics, type MetricsWriter, makeMetrics } from "../../src/platform/telemetry/Metrics.ts"
import { charge, invoice, paymentIntent, secretMark, subscription } from "../events/ProviderEvents.ts"
import { inDatabase, onSharedService, TestService } from "../harness/TestService.ts"
import {
  auditedReplays,
  makeNewTenant,
  makeSubscriber,
  makeTenant,
  newEventId,
  notification,
  operator,
  paidAtProvider,
  receiptKey,
  setActive,
  signature,
  subscribe,
  type Tenant,
  thinNotification,
  typesTo
} from "./Notifications.ts"

/** The inbound slice as a version would have it that sees the provider in this way, with what it logs and counts. */
const versionWith = Effect.fnUntraced(function* (sees: Partial<Provider["Type"]> = {}) {
  const { services } = yield* TestService
  const lines: Array<{ readonly message: string; readonly [field: string]: unknown }> = []
  const counted: Array<ReadonlyArray<string>> = []
  const { writer } = makeMetrics()
  const metrics: MetricsWriter = {
    ...writer,
    count: (name, attributes) => {
      if (name === "connected_payments.notification.malformed.count") counted.push([...attributes])
    }
  }
  const logger = Logger.replace(
    Logger.defaultLogger,
    Logger.make((options) => {
      const { annotations, message } = Logger.structuredLogger.log(options)
      if (options.logLevel === LogLevel.Error) lines.push({ message: String(message), ...annotations })
    })
  )
  const provider: Provider["Type"] = { ...Context.get(services, Provider), ...sees }
  const context = services.pipe(Context.add(Provider, provider), Context.add(Metrics, metrics))
  const built = yield* Layer.build(
    Layer.merge(Inbound.layer, Receipts.layer({ receiptRetention: Duration.infinity }))
  ).pipe(Effect.provide(context))
  const { receive, receiveThin } = Context.get(built, Inbound)
  const sending = (send: typeof receive) => (body: string) =>
    Effect.provide(send(Buffer.from(body), signature(body)), logger)
  return {
    receive: sending(receive),
    receiveThin: sending(receiveThin),
    receipts: Context.get(built, Receipts),
    lines,
    counted
  }
})

/** An event that the provider keeps, as if no notification of it had come. */
const unheard = Effect.fnUntraced(function* (tenant: Tenant) {
  const id = yield* paidAtProvider(tenant)
  yield* inDatabase`DELETE FROM payments.receipts WHERE provider_event_id = ${id}`
  yield* inDatabase`DELETE FROM payments.events WHERE provider_event_id = ${id}`
  yield* inDatabase`
    UPDATE payments.provider_accounts SET first_payment_event_id = NULL WHERE account_id = ${tenant.accountId}`
  return id
})

/** As a later API version may send it. */
const { currency: _currency, amount_received: _amount, ...unknownPayment } = paymentIntent

const fields = "missing or not as expected: event.data.object.amount_received, event.data.object.currency"

onSharedService("a malformed notification", (it) => {
  it.scoped("is an error in the log, counted, and on its receipt: fields, nothing of the payer's", function* () {
    const { tenant } = yield* makeSubscriber()
    const { counted, lines, receipts, receive } = yield* versionWith()
    const id = newEventId()
    const body = notification(tenant.accountId, { id, object: unknownPayment })
    expect(yield* receive(body)).toBe("malformed")
    expect(yield* receive(body)).toBe("duplicate")
    expect(yield* receipts.get(receiptKey(id))).toMatchObject({ outcome: "malformed", reason: fields, events: [] })
    const { data } = yield* receipts.list({ environment: "sandbox", organizationId: tenant.id, outcome: "malformed" })
    expect(data).toMatchObject([{ providerEventId: id, reason: fields }])
    expect(lines).toEqual([
      {
        message: expect.stringContaining("Malformed notifications"),
        part: "object",
        reason: fields,
        environment: "sandbox",
        organizationId: tenant.id,
        providerEventId: id,
        type: "payment_intent.succeeded",
        apiVersion: "2026-10-28.endive"
      }
    ])
    expect(JSON.stringify(lines)).not.toContain(secretMark)
    expect(counted).toEqual([["sandbox", "payment_intent.succeeded", "object"]])
  })

  it.scoped("as a whole is refused, and told of without its id", function* () {
    const { counted, lines, receive, receiveThin } = yield* versionWith()
    const tenant = yield* makeTenant
    for (const send of [
      receive(thinNotification(tenant.accountId)),
      receiveThin(notification(tenant.accountId)),
      receive(notification(tenant.accountId, { type: `${secretMark}\n` })),
      receive("no JSON"),
      receiveThin("no JSON")
    ]) {
      expect(yield* Effect.flip(send)).toMatchObject({ _tag: "SignatureInvalid" })
    }
    expect(lines).toHaveLength(5)
    expect(lines[2]).toMatchObject({ reason: "missing or not as expected: event.type", part: "event", type: null })
    expect(JSON.stringify(lines)).not.toContain(secretMark)
    expect(new Set(counted.map((attributes) => attributes.join()))).toEqual(new Set(["sandbox,,event"]))
  })

  it.scoped("is counted under few types, whatever the provider calls them", function* () {
    const { counted, receiveThin } = yield* versionWith()
    for (const type of ["v2.core.account.updated", "v2.core.account[requirements].updated", "v1.account.updated"]) {
      expect(yield* receiveThin(thinNotification("x", { type, related: null, context: null }))).toBe("malformed")
    }
    expect(counted.map(([, type]) => type)).toEqual(["v2.core.account", "v2.core.account", "v1.account.updated"])
  })

  it.scoped("is replayed once it can be: event, deliveries, milestone, and what paused endpoints missed", function* () {
    const tenant = yield* makeNewTenant
    const id = yield* unheard(tenant)
    const endpoint = yield* subscribe(tenant, ["payment.succeeded", "milestone.first_payment"])
    const paused = yield* subscribe(tenant)
    yield* setActive(tenant, paused, false)
    const { receipts, receive } = yield* versionWith()
    yield* receive(notification(tenant.accountId, { id, object: unknownPayment }))

    const stillOld = yield* versionWith({
      retrieveEvent: () => Effect.sync(() => JSON.parse(notification(tenant.accountId, { id, object: unknownPayment })))
    })
    const refused = yield* Effect.flip(stillOld.receipts.replay(receiptKey(id), operator))
    expect(refused).toMatchObject({ _tag: "ReplayRefused", reason: "malformed" })
    expect(refused.message).toContain(fields)
    expect(yield* receipts.get(receiptKey(id))).toMatchObject({ outcome: "malformed", reason: fields, events: [] })
    expect(yield* auditedReplays(tenant)).toEqual([])

    expect(yield* receipts.replay(receiptKey(id), operator)).toMatchObject({
      outcome: "delivered",
      deliveriesMade: 2
    })
    expect(yield* typesTo(endpoint.id)).toEqual(["milestone.first_payment", "payment.succeeded"])
    expect(yield* typesTo(paused.id)).toEqual([])
    expect(yield* inDatabase`SELECT type FROM payments.skipped_events WHERE endpoint_id = ${paused.id}`).toEqual([
      { type: "payment.succeeded" }
    ])
    expect(yield* receipts.get(receiptKey(id))).toMatchObject({ outcome: "delivered", reason: null })
    expect(yield* receipts.replay(receiptKey(id), operator)).toMatchObject({
      outcome: "delivered",
      deliveriesMade: 0
    })
    expect(yield* auditedReplays(tenant)).toHaveLength(1)
  })

  it.scoped("is replayed where nobody subscribes any more, and says that", function* () {
    const tenant = yield* makeTenant
    const id = yield* unheard(tenant)
    const { receipts, receive } = yield* versionWith()
    yield* receive(notification(tenant.accountId, { id, object: unknownPayment }))
    expect(yield* receipts.replay(receiptKey(id), operator)).toMatchObject({
      outcome: "no_subscriber",
      deliveriesMade: 0
    })
    expect(yield* receipts.get(receiptKey(id))).toMatchObject({
      outcome: "no_subscriber",
      reason: null,
      events: [{ type: "payment.succeeded" }]
    })
    expect(yield* auditedReplays(tenant)).toHaveLength(1)
  })

  it.scoped("for its account leads to the account's status once that can be read", function* () {
    const { tenant, ...endpoint } = yield* makeSubscriber(["account.updated"])
    const { counted, receiveThin } = yield* versionWith({ retrieveAccount: () => Effect.succeed({ id: "acct_1" }) })
    const { receipts } = yield* versionWith()
    yield* inDatabase`UPDATE payments.provider_accounts SET reported_status = '{}' WHERE account_id = ${tenant.accountId}`
    const id = newEventId()
    expect(yield* receiveThin(thinNotification(tenant.accountId, { id }))).toBe("malformed")
    expect(counted).toEqual([["sandbox", "v1.account.updated", "account"]])
    expect((yield* receipts.get(receiptKey(id))).reason).toContain("account.charges_enabled")
    expect(yield* receipts.replay(receiptKey(id), operator)).toMatchObject({
      outcome: "delivered",
      deliveriesMade: 1
    })
    expect(yield* receipts.replay(receiptKey(id), operator)).toMatchObject({
      outcome: "delivered",
      deliveriesMade: 0
    })
    expect(yield* typesTo(endpoint.id)).toEqual(["account.updated"])
  })

  const filtered = [
    [
      "a subscription's items",
      "customer.subscription.created",
      "subscription.created",
      { ...subscription, items: { object: "list", data: [{ id: "si_1", pricing: {} }] } },
      { prices: ["price_1"] },
      "items"
    ],
    [
      "an invoice's lines",
      "invoice.paid",
      "subscription.renewed",
      { ...invoice, lines: [] },
      { products: ["prod_1"] },
      "lines"
    ],
    [
      "metadata",
      "charge.refunded",
      "payment.refunded",
      { ...charge, metadata: undefined },
      { metadata: { a: "b" } },
      "metadata"
    ]
  ] as const
  for (const [what, type, event, object, filters, path] of filtered) {
    it.scoped(`in ${what} is delivered to those that don't filter by them, and told of if some do`, function* () {
      const { tenant, ...all } = yield* makeSubscriber([event])
      const { counted, lines, receipts, receive } = yield* versionWith()
      expect(yield* receive(notification(tenant.accountId, { type, object }))).toBe("delivered")
      expect([lines, counted]).toEqual([[], []])
      const some = yield* subscribe(tenant, [event], undefined, filters)
      const id = newEventId()
      expect(yield* receive(notification(tenant.accountId, { id, type, object }))).toBe("delivered")
      expect([yield* typesTo(all.id), yield* typesTo(some.id)]).toEqual([[event, event], []])
      const reason = `missing or not as expected: event.data.object.${path}`
      expect(yield* receipts.get(receiptKey(id))).toMatchObject({ outcome: "delivered", reason })
      expect(lines).toMatchObject([{ part: "filters", reason }])
      expect(counted).toEqual([["sandbox", type, "filters"]])
    })
  }
})
