import { readFileSync } from "node:fs"
import { afterAll, beforeAll, describe, expect, it } from "@effect/vitest"
import { Effect, Exit, Redacted, Scope } from "effect"
import { Pool } from "pg"
import type { EventData, EventType } from "../../src/events/Catalog.ts"
import { makeEnvelope, makeTestEnvelope } from "../../src/events/Envelope.ts"
import type { KnownWebhookEvent } from "../../src/webhooks/index.ts"
import { applyEvent } from "../examples/webhooks/node/orders.ts"
import { createTestDatabase } from "../harness/TestDatabase.ts"
import { organizationId } from "./Deliveries.ts"

// The README's recipe for matching an order, on a real database: whatever comes, in whatever order, an order whose
// money was received is fulfilled once, and no other is

const example = (file: string) => readFileSync(new URL(`../examples/webhooks/node/${file}`, import.meta.url), "utf8")

let made = 0
const event = <T extends EventType>(type: T, data: EventData<T>): KnownWebhookEvent => {
  made += 1
  // The function's result is one member of the union, which its type parameter hides
  return makeEnvelope({
    provider: "stripe",
    environment: "sandbox",
    organizationId,
    providerEventId: `evt_${made}`,
    created: 1_760_000_000 + made,
    type,
    data
  }) as KnownWebhookEvent
}

const succeeded = (payment: string, amount = 1500, currency = "brl") =>
  event("payment.succeeded", { payment_id: payment, amount_received: amount, currency })

const checkout = (session: string, payment: string | null, status: string, amount = 1500) => ({
  session_id: session,
  mode: "payment",
  payment_status: status,
  payment_id: payment,
  subscription_id: null,
  amount_total: amount,
  currency: "brl",
  price_ids: null,
  product_ids: null
})

const permutations = <A>(items: ReadonlyArray<A>): ReadonlyArray<ReadonlyArray<A>> =>
  items.length === 0
    ? [[]]
    : items.flatMap((item, index) => permutations(items.toSpliced(index, 1)).map((rest) => [item, ...rest]))

describe("the README's recipe for orders", () => {
  const scope = Effect.runSync(Scope.make())
  let pool: Pool

  beforeAll(async () => {
    const { url } = await Effect.runPromise(Scope.extend(createTestDatabase(), scope))
    pool = new Pool({ connectionString: Redacted.value(url), max: 8 })
    await pool.query(example("orders.sql"))
  })

  afterAll(async () => {
    await pool.end()
    await Effect.runPromise(Scope.close(scope, Exit.void))
  })

  const order = async (id: string, amount = 1500, currency = "brl") => {
    await pool.query("INSERT INTO orders (id, session_id, amount, currency) VALUES ($1, $2, $3, $4)", [
      id,
      `cs_${id}`,
      amount,
      currency
    ])
    return { id, session: `cs_${id}`, payment: `pi_${id}` }
  }

  const stateOf = async (id: string) => {
    const { rows } = await pool.query(
      `SELECT state, payment_id, (SELECT count(*)::int FROM shipments WHERE order_id = orders.id) AS shipments
       FROM orders WHERE id = $1`,
      [id]
    )
    return rows[0]
  }

  const paid = (payment: string) => ({ state: "paid", payment_id: payment, shipments: 1 })

  /** An instant transfer or a bank slip: completed unpaid, paid later, and confirmed twice under two event ids. */
  const laterPayment = ({ payment, session }: { readonly payment: string; readonly session: string }) => [
    event("checkout.completed", checkout(session, payment, "unpaid")),
    succeeded(payment),
    event("checkout.payment_succeeded", checkout(session, payment, "paid")),
    succeeded(payment)
  ]

  it("fulfils an order once, whatever the order of its events, each of which comes twice", async () => {
    const orders = permutations([0, 1, 2, 3])
    expect(orders).toHaveLength(24)
    for (const [index, sequence] of orders.entries()) {
      const { id, payment, session } = await order(`permuted-${index}`)
      const events = laterPayment({ payment, session })
      for (const next of sequence.flatMap((at) => events.slice(at, at + 1))) {
        await applyEvent(pool, next)
        await applyEvent(pool, next)
      }
      for (const again of events) await applyEvent(pool, again)
      expect(await stateOf(id)).toEqual(paid(payment))
    }
  })

  it("fulfils nothing before the money was received", async () => {
    const { id, payment, session } = await order("unpaid")
    const [unpaid, money] = laterPayment({ payment, session })
    if (unpaid === undefined || money === undefined) throw new Error("There are four events")
    await applyEvent(pool, unpaid)
    await applyEvent(pool, event("checkout.payment_failed", checkout(session, payment, "unpaid")))
    expect(await stateOf(id)).toEqual({ state: "open", payment_id: null, shipments: 0 })
    await applyEvent(pool, money)
    expect(await stateOf(id)).toEqual(paid(payment))
  })

  it("fulfils an order once where its events come at the same time, again and again", async () => {
    for (let round = 0; round < 10; round++) {
      const { id, payment, session } = await order(`at-once-${round}`)
      const events = laterPayment({ payment, session })
      await Promise.all([...events, ...events, ...events].map((one) => applyEvent(pool, one)))
      expect(await stateOf(id)).toEqual(paid(payment))
    }
  })

  it.each([
    ["less", 1499, "brl"],
    ["more", 1501, "brl"],
    ["another currency", 1500, "usd"]
  ])("puts an order aside for which %s was received", async (what, amount, currency) => {
    for (const moneyFirst of [true, false]) {
      const { id, payment, session } = await order(`${what}-${moneyFirst}`)
      const events = [
        succeeded(payment, amount, currency),
        event("checkout.completed", checkout(session, payment, "paid"))
      ]
      for (const one of moneyFirst ? events : events.toReversed()) await applyEvent(pool, one)
      expect(await stateOf(id)).toEqual({ state: "mismatch", payment_id: payment, shipments: 0 })
    }
  })

  it("leaves alone what is no order of the shop's, synthetic events, and types that it has no use for", async () => {
    const { id, payment, session } = await order("alone")
    const test = makeTestEnvelope({
      organizationId,
      testId: "0199c0de-0000-7000-8000-00000000000e",
      createdAt: new Date(),
      type: "payment.succeeded",
      data: { payment_id: payment, amount_received: 1500, currency: "brl" }
    })
    const foreign = [
      event("checkout.completed", checkout("cs_foreign", "pi_foreign", "paid")),
      event("checkout.completed", checkout(session, null, "no_payment_required")),
      succeeded("pi_foreign"),
      event("payout.canceled", { payout_id: "po_1", amount: 1, currency: "brl" })
    ]
    for (const one of [test, ...foreign]) await applyEvent(pool, one)
    expect(await stateOf(id)).toEqual({ state: "open", payment_id: null, shipments: 0 })
  })

  it("stores nothing of an event that fails half-way, so that it takes effect when it comes again", async () => {
    const { id, payment, session } = await order("half-way")
    const events = laterPayment({ payment, session })
    await pool.query("ALTER TABLE shipments RENAME TO shipments_away")
    const outcomes = []
    for (const one of events) outcomes.push((await Promise.allSettled([applyEvent(pool, one)]))[0]?.status)
    await pool.query("ALTER TABLE shipments_away RENAME TO shipments")
    expect(outcomes).toContain("rejected")
    for (const one of events) await applyEvent(pool, one)
    expect(await stateOf(id)).toEqual(paid(payment))
  })

  it.each([
    ["sql", "orders.sql"],
    ["ts", "orders.ts"]
  ])("stands in the guide, line by line: %s", (fence, file) => {
    const guide = readFileSync(new URL("../../src/docs/guides/receiving-events.md", import.meta.url), "utf8")
    expect(new RegExp(`\`\`\`${fence}\n([\\s\\S]*?)\`\`\``).exec(guide)?.[1]).toBe(example(file))
  })
})
