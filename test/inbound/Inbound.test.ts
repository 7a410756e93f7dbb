import { expect } from "@effect/vitest"
import { Effect } from "effect"
import { checkoutSession, secretMark } from "../events/ProviderEvents.ts"
import { inDatabase, onSharedService, TestService } from "../harness/TestService.ts"
import {
  makeSubscriber,
  makeTenant,
  newEventId,
  notification,
  notify,
  setActive,
  signature,
  subscribe
} from "./Notifications.ts"

const storedOf = (providerEventId: string) =>
  Effect.flatMap(TestService, ({ sql }) =>
    Effect.all({
      receipts: sql<{ outcome: string; organizationId: string | null; accountId: string; duplicates: number }>`
        SELECT outcome, organization_id AS "organizationId", account_id AS "accountId", duplicates, type, livemode
        FROM payments.receipts WHERE provider_event_id = ${providerEventId}`,
      events: sql<{ id: string; type: string; payload: string }>`
        SELECT public_id AS id, type, payload FROM payments.events WHERE provider_event_id = ${providerEventId}`,
      deliveries: sql<{
        endpointId: string
        state: string
        attemptCount: number
        due: boolean | null
        traceparent: string | null
      }>`
        SELECT d.endpoint_id AS "endpointId", d.state, d.attempt_count AS "attemptCount", q.next_attempt_at <= now() AS due,
          q.traceparent
        FROM payments.deliveries d JOIN payments.events e
          ON e.organization_id = d.organization_id AND e.environment = d.environment AND e.id = d.event_id
        LEFT JOIN payments.delivery_queue q
          ON q.organization_id = d.organization_id AND q.environment = d.environment AND q.id = d.id
        WHERE e.provider_event_id = ${providerEventId} ORDER BY d.endpoint_id`
    })
  ).pipe(Effect.orDie)

/** All rows there are: for requests that name no event. */
const rowCounts = inDatabase`
  SELECT (SELECT count(*)::int FROM payments.receipts) AS receipts, (SELECT count(*)::int FROM payments.events) AS events,
    (SELECT count(*)::int FROM payments.deliveries) AS deliveries`.pipe(Effect.orDie)

const tampered = (body: string) => body.replace('"amount": 1500', '"amount": 1501')

onSharedService("the provider's entry", (it) => {
  it.effect("stores a notification once, whatever time it says, even if its copies say another one", function* () {
    const { tenant } = yield* makeSubscriber()
    const now = Math.floor(Date.now() / 1000)
    const times = [0, 1_760_000_000, now - 40 * 86_400, now, now + 40 * 86_400, 4_102_444_800]
    for (const [index, created] of times.entries()) {
      const id = newEventId()
      const copies = [created, created, times[(index + 1) % times.length] ?? now]
      for (const created of copies) {
        expect((yield* notify(notification(tenant.accountId, { id, created }))).status).toBe(200)
      }
      const { deliveries, receipts } = yield* storedOf(id)
      expect([created, receipts.length, deliveries.length]).toEqual([created, 1, 1])
      expect(receipts[0]?.duplicates).toBe(2)
    }
  })

  it.effect("stores receipt, event and deliveries of a verified notification, and answers 200", function* () {
    const tenant = yield* makeTenant
    const [one, two] = [yield* subscribe(tenant), yield* subscribe(tenant)]
    const id = newEventId()
    const answer = yield* notify(notification(tenant.accountId, { id, created: 1_760_000_000 }))
    expect([answer.status, answer.json]).toEqual([200, { received: true }])
    const { deliveries, events, receipts } = yield* storedOf(id)
    expect(receipts).toEqual([
      {
        outcome: "delivered",
        organizationId: tenant.id,
        accountId: tenant.accountId,
        duplicates: 0,
        type: "payment_intent.succeeded",
        livemode: false
      }
    ])
    expect(deliveries.map(({ endpointId }) => endpointId)).toEqual([one.id, two.id].sort())
    for (const delivery of deliveries) expect(delivery).toMatchObject({ state: "queued", attemptCount: 0, due: true })
    expect(events).toHaveLength(1)
    const [event] = events
    expect(event?.id).toMatch(/^svc_evt_[0-9a-f]{64}$/)
    expect(JSON.parse(event?.payload ?? "")).toEqual({
      id: event?.id,
      type: "payment.succeeded",
      version: 1,
      created_at: "2025-10-09T08:53:20.000Z",
      livemode: false,
      organization_id: tenant.id,
      source: { provider: "stripe", event_id: id },
      data: { payment_id: "pi_1", amount_received: 1500, currency: "brl" }
    })
    expect(event?.payload).not.toContain(secretMark)
  })

  it.effect("takes a signature up to five minutes off, and one of several that matches", function* () {
    const tenant = yield* makeTenant
    for (const secondsFromNow of [-295, 295]) {
      const body = notification(tenant.accountId)
      expect((yield* notify(body, signature(body, { secondsFromNow }))).status).toBe(200)
    }
    const body = notification(tenant.accountId)
    const [time, good] = signature(body).split(",")
    const header = `${time},v1=${"0".repeat(64)},${good}`
    expect((yield* notify(body, header)).status).toBe(200)
  })

  it.effect("tells no difference between a wrong signature and a wrong secret", function* () {
    const { organization } = yield* TestService
    const body = notification(organization.accountId)
    const answers = [
      yield* notify(body, signature(body, { secret: "whsec_ofsomeoneelse" })),
      yield* notify(tampered(body), signature(body))
    ]
    expect(new Set(answers.map(({ json }) => json["error"])).size).toBe(1)
    for (const { text } of answers) expect(text).not.toContain("whsec_")
  })

  it.effect("refuses a body over 1 MiB with 413, and takes one just under it", function* () {
    const tenant = yield* makeTenant
    const padded = (bytes: number) => {
      const body = notification(tenant.accountId)
      return `${body}${" ".repeat(bytes - body.length)}`
    }
    const before = yield* rowCounts
    const tooLarge = yield* notify(padded(1024 * 1024 + 1))
    expect([tooLarge.status, tooLarge.json["code"]]).toEqual([413, "payload_too_large"])
    expect(yield* rowCounts).toEqual(before)
    expect((yield* notify(padded(1024 * 1024))).status).toBe(200)
  })

  it.effect("a later copy changes nothing, though endpoints were added in between", function* () {
    const tenant = yield* makeTenant
    const id = newEventId()
    const body = notification(tenant.accountId, { id })
    yield* notify(body)
    yield* subscribe(tenant)
    expect((yield* notify(body)).status).toBe(200)
    expect(yield* storedOf(id)).toMatchObject({ receipts: [{ outcome: "no_subscriber" }], deliveries: [] })
  })

  it.effect("refuses a live event under the sandbox's secret with 503, and stores nothing", function* () {
    const { tenant } = yield* makeSubscriber()
    const id = newEventId()
    expect((yield* notify(notification(tenant.accountId, { id, livemode: true }))).status).toBe(503)
    expect(yield* storedOf(id)).toMatchObject({ receipts: [], events: [], deliveries: [] })
  })

  it.effect("keeps an unknown account's event, and the platform's own, as unlinked", function* () {
    const [ofStranger, ofPlatform] = [newEventId(), newEventId()]
    expect((yield* notify(notification("acct_nobodyknowsthis", { id: ofStranger }))).status).toBe(200)
    const platforms = JSON.stringify({ ...JSON.parse(notification("x", { id: ofPlatform })), account: null })
    expect((yield* notify(platforms)).status).toBe(200)
    for (const id of [ofStranger, ofPlatform]) {
      expect(yield* storedOf(id)).toMatchObject({
        receipts: [{ outcome: "unlinked", organizationId: null }],
        events: [],
        deliveries: []
      })
    }
  })

  it.effect("keeps a type outside the catalog as ignored", function* () {
    const { tenant } = yield* makeSubscriber()
    const unknown = ["payment_intent.created", "charge.refund.updated", "toString", "constructor", "__proto__"]
    for (const type of unknown) {
      const id = newEventId()
      expect((yield* notify(notification(tenant.accountId, { id, type }))).status).toBe(200)
      expect(yield* storedOf(id)).toMatchObject({ receipts: [{ outcome: "ignored" }], events: [], deliveries: [] })
    }
  })

  it.effect("delivers to the organization's active endpoints that subscribe to the type alone", function* () {
    const [tenant, stranger] = [yield* makeTenant, yield* makeTenant]
    const subscribed = yield* subscribe(tenant)
    yield* subscribe(tenant, ["payment.failed", "checkout.completed"])
    yield* subscribe(stranger, ["payment.succeeded", "payment.failed"])
    const paused = yield* subscribe(tenant)
    yield* setActive(tenant, paused, false)
    const whilePaused = newEventId()
    yield* notify(notification(tenant.accountId, { id: whilePaused }))
    expect((yield* storedOf(whilePaused)).deliveries.map(({ endpointId }) => endpointId)).toEqual([subscribed.id])
    yield* setActive(tenant, paused, true)
    const afterwards = newEventId()
    yield* notify(notification(tenant.accountId, { id: afterwards }))
    expect((yield* storedOf(afterwards)).deliveries.map(({ endpointId }) => endpointId)).toEqual(
      [subscribed.id, paused.id].sort()
    )
    expect((yield* storedOf(whilePaused)).deliveries).toHaveLength(1)
  })

  it.effect("takes ids that no database could look up for unknown ones", function* () {
    const { tenant } = yield* makeSubscriber(["checkout.completed"])
    for (const part of [{ id: "cs_\u0000" }, { payment_link: "plink_\u0000" }, { id: "cs_\ud800" }]) {
      const id = newEventId()
      const object = { ...checkoutSession, ...part }
      const answer = yield* notify(notification(tenant.accountId, { id, type: "checkout.session.completed", object }))
      expect(answer.status, answer.text).toBe(200)
      expect((yield* storedOf(id)).receipts).toHaveLength(1)
    }
  })

  it.effect("says what a session sells where this service made it, and null where not", function* () {
    const { tenant } = yield* makeSubscriber(["checkout.completed"])
    yield* inDatabase`
      INSERT INTO payments.sold_items (organization_id, environment, source_id, price_ids, product_ids)
      VALUES (${tenant.id}, 'sandbox', 'cs_test_ours', ARRAY['price_1'], ARRAY['prod_1']),
        (${tenant.id}, 'sandbox', 'plink_ours', ARRAY['price_2'], ARRAY['prod_2'])`
    const sold = Effect.fnUntraced(function* (object: object) {
      const id = newEventId()
      const session = { ...checkoutSession, ...object }
      yield* notify(notification(tenant.accountId, { id, type: "checkout.session.completed", object: session }))
      const [event] = (yield* storedOf(id)).events
      const { data } = JSON.parse(event?.payload ?? "{}")
      return [data.price_ids, data.product_ids]
    })
    expect(yield* sold({ id: "cs_test_ours" })).toEqual([["price_1"], ["prod_1"]])
    expect(yield* sold({ id: "cs_test_other", payment_link: "plink_ours" })).toEqual([["price_2"], ["prod_2"]])
    expect(yield* sold({ id: "cs_test_ours", payment_link: "plink_ours" })).toEqual([["price_1"], ["prod_1"]])
    expect(yield* sold({ id: "cs_test_other", payment_link: { id: "plink_ours" } })).toEqual([["price_2"], ["prod_2"]])
    expect(yield* sold({ id: "cs_test_elsewhere" })).toEqual([null, null])
  })
})
