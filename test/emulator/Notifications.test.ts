import { Effect } from "effect"
import type { Stripe } from "stripe"
import { describe, expect, it } from "../harness/Tests.ts"
import {
  call,
  connected,
  eventually,
  onEmulator,
  platform,
  type Received,
  raw,
  sdk,
  someSession,
  startEmulator,
  submit,
  temporaryDirectory,
  thinWebhookSecret,
  until,
  webhookSecret
} from "./Harness.ts"

const verified = (stripe: Stripe, { body, headers }: Received) =>
  stripe.webhooks.constructEvent(body, String(headers["stripe-signature"]), webhookSecret, 300)

const deliveries = (url: string, account: string) =>
  Effect.map(
    raw(url, `/_emulator/events?account=${account}`),
    ({
      text
    }): ReadonlyArray<{
      event: { id: string; type: string }
      delivery: { state: string; attempts: number; last_status: number | null; last_error: string | null } | null
    }> => JSON.parse(text).data
  )

describe("notifications", () => {
  onEmulator("carry the event as it is read, signed as the SDK accepts", function* ({ account, emulator, stripe }) {
    const { received, url } = yield* platform()
    yield* emulator.setWebhookUrl(url)
    const session = yield* someSession(stripe)
    yield* submit(session.url, { action: "pay" })
    yield* until(() => received.length === 6)

    const events = received.map((one) => verified(stripe, one))
    expect(events.map(({ type }) => type).sort()).toEqual([
      "charge.succeeded",
      "checkout.session.completed",
      "payment_intent.created",
      "payment_intent.succeeded",
      "price.created",
      "product.created"
    ])
    for (const { headers } of received) expect(headers["content-type"]).toBe("application/json; charset=utf-8")
    const completed = events.find(({ type }) => type === "checkout.session.completed")
    expect(completed).toMatchObject({
      account,
      pending_webhooks: 1,
      livemode: false,
      data: { object: { id: session.id, status: "complete" } }
    })
    expect(completed?.request?.id).toMatch(/^req_/)
    yield* eventually(
      Effect.filterOrFail(
        call(() => stripe.events.retrieve(completed?.id ?? "")),
        ({ pending_webhooks }) => pending_webhooks === 0
      )
    )
    const [body] = received.filter((one) => verified(stripe, one).id === completed?.id)
    const read = yield* call(() => stripe.events.retrieve(completed?.id ?? ""))
    const { lastResponse: _, ...event } = read
    expect(JSON.parse(body?.body ?? "")).toEqual({ ...event, pending_webhooks: 1 })
    expect((yield* deliveries(emulator.url, account)).map(({ delivery }) => delivery)).toEqual(
      Array.from({ length: 6 }, () => ({ state: "delivered", attempts: 1, last_status: 200, last_error: null }))
    )
  })

  onEmulator("tell which request and which idempotency key caused them", function* ({ stripe }) {
    const made = yield* call(() => stripe.products.create({ name: "a" }, { idempotencyKey: "the-key" }))
    const [event] = (yield* call(() => stripe.events.list())).data
    expect(event?.request).toEqual({ id: made.lastResponse.requestId, idempotency_key: "the-key" })
  })

  onEmulator("wait until they are told where to go", function* ({ account, emulator, stripe }) {
    yield* call(() => stripe.products.create({ name: "a" }))
    expect(yield* deliveries(emulator.url, account)).toMatchObject([
      { delivery: { state: "pending", attempts: 0, last_status: null } }
    ])
    const { received, url } = yield* platform()
    const answer = yield* raw(emulator.url, "/_emulator/webhook", { method: "POST", body: JSON.stringify({ url }) })
    expect(answer.status).toBe(200)
    yield* until(() => received.length === 1)
  })

  onEmulator("are repeated, newly signed, until a 2xx arrives", function* ({ account, emulator, stripe }) {
    const statuses = [500, 302, 400, 204]
    const { received, url } = yield* platform((all) => statuses[all.length - 1])
    yield* emulator.setWebhookUrl(url)
    yield* call(() => stripe.products.create({ name: "a" }))
    yield* until(() => received.length === 4)
    const bodies = new Set(received.map(({ body }) => body))
    expect(bodies.size).toBe(1)
    for (const one of received) verified(stripe, one)
    yield* eventually(
      Effect.filterOrFail(deliveries(emulator.url, account), ([first]) => first?.delivery?.state === "delivered")
    )
    expect(yield* deliveries(emulator.url, account)).toMatchObject([{ delivery: { attempts: 4, last_status: 204 } }])
    expect(received).toHaveLength(4)
  })

  onEmulator("are independent between accounts; the platform has none", function* ({ emulator, stripe }) {
    const { received, url } = yield* platform((all) => (all.length === 1 ? undefined : 200))
    yield* emulator.setWebhookUrl(url)
    yield* call(() => stripe.products.create({ name: "hangs" }))
    yield* until(() => received.length === 1)
    yield* call(() => sdk(emulator.url).products.create({ name: "the platform's" }))
    const other = yield* emulator.ensureAccount()
    yield* call(() => sdk(emulator.url, other).products.create({ name: "passes" }))
    yield* until(() => received.length === 2)
    expect(JSON.parse(received[1]?.body ?? "")).toMatchObject({ account: other, data: { object: { name: "passes" } } })
    const own = yield* call(() => sdk(emulator.url).events.list())
    expect(own.data).toMatchObject([{ type: "product.created", pending_webhooks: 0 }])
    expect(own.data[0]).not.toHaveProperty("account")
  })

  it.scopedLive("that could not be delivered go on after a restart, to the same place, once", function* () {
    const journalFile = `${yield* temporaryDirectory}/journal`
    let accepts = false
    const { received, url } = yield* platform(() => (accepts ? 200 : 503))
    const account = yield* Effect.scoped(
      Effect.gen(function* () {
        const { account, emulator, stripe } = yield* connected({ journalFile })
        yield* emulator.setWebhookUrl(url)
        yield* call(() => stripe.products.create({ name: "a" }))
        yield* until(() => received.length >= 1)
        return account
      })
    )
    const before = received.length
    accepts = true
    const emulator = yield* startEmulator({ journalFile })
    yield* until(() => received.length > before)
    yield* eventually(
      Effect.filterOrFail(deliveries(emulator.url, account), ([first]) => first?.delivery?.state === "delivered")
    )
    expect(received).toHaveLength(before + 1)
  })
})

describe("thin notifications", () => {
  it.scopedLive("wait for their own entry while snapshots pass, outlive restarts, repeat until 2xx", function* () {
    const journalFile = `${yield* temporaryDirectory}/journal`
    const snapshots = yield* platform()
    const { account, thin } = yield* Effect.scoped(
      Effect.gen(function* () {
        const { account, emulator } = yield* connected({ journalFile })
        yield* emulator.setWebhookUrl(snapshots.url)
        const change = { type: "v1.account.updated", account, payouts_enabled: false, snapshot: true } as const
        const { events, thin_events } = yield* emulator.trigger(change)
        yield* until(() => snapshots.received.length === 1)
        expect(JSON.parse(snapshots.received[0]?.body ?? "").id).toBe(events[0]?.id)
        expect((yield* deliveries(emulator.url, account)).map(({ delivery }) => delivery?.attempts)).toEqual([1, 0])
        return { account, thin: thin_events[0]?.id }
      })
    )
    const entry = yield* platform((all) => (all.length === 1 ? 503 : 200))
    const emulator = yield* startEmulator({ journalFile })
    expect((yield* call(() => sdk(emulator.url).accounts.retrieve(account))).payouts_enabled).toBe(false)
    yield* emulator.setThinWebhookUrl(entry.url)
    yield* until(() => entry.received.length === 2)
    const stripe = sdk(emulator.url)
    for (const { body, headers } of entry.received) {
      const signature = String(headers["stripe-signature"])
      expect(stripe.parseEventNotification(body, signature, thinWebhookSecret).id).toBe(thin)
      expect(() => stripe.parseEventNotification(body, signature, webhookSecret)).toThrow()
    }
    yield* eventually(
      Effect.filterOrFail(deliveries(emulator.url, account), (all) =>
        all.every(({ delivery }) => delivery?.state === "delivered")
      )
    )
    expect(snapshots.received).toHaveLength(1)
  })
})

describe("control", () => {
  onEmulator("needs the platform's key and bodies that it understands", function* ({ emulator }) {
    const post = (path: string, body: string, headers = {}) =>
      Effect.map(raw(emulator.url, path, { method: "POST", body, headers }), ({ status }) => status)
    expect(yield* post("/_emulator/accounts", "{}", { authorization: "Bearer sk_test_other" })).toBe(401)
    expect(yield* post("/_emulator/webhook", '{"url":"http://x"}', { authorization: "" })).toBe(401)
    for (const body of ['{"url":"ftp://x"}', "{", "{}", '{"url":1}', '{"url":"http://x","more":1}']) {
      expect([body, yield* post("/_emulator/webhook", body)]).toEqual([body, 400])
    }
    expect(yield* post("/_emulator/accounts", '{"id":"nonsense"}')).toBe(400)
    expect((yield* raw(emulator.url, "/_emulator/events?account=acct_0000000000000000")).status).toBe(403)
    const id = "acct_ABCDEFGHIJKLMNOP"
    for (const body of [JSON.stringify({ id }), JSON.stringify({ id })]) {
      const answer = yield* raw(emulator.url, "/_emulator/accounts", { method: "POST", body })
      expect(JSON.parse(answer.text)).toEqual({ id })
    }
    const fresh = yield* raw(emulator.url, "/_emulator/accounts", { method: "POST" })
    expect(JSON.parse(fresh.text).id).toMatch(/^acct_[A-Za-z0-9]{16}$/)
  })
})
