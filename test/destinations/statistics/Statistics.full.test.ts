import { randomUUID } from "node:crypto"
import { Effect } from "effect"
import { v7 } from "uuid"
import { countSoon, lookAgain } from "../../../src/destinations/statistics/CountStatements.ts"
import { slotOf } from "../../../src/destinations/statistics/Slots.ts"
import { expect, layer } from "../../harness/Tests.ts"
import {
  Bench,
  beginAt,
  count,
  countAfter,
  countedShop,
  dateOf,
  deliver,
  empty,
  forward,
  hour,
  makeEndpoint,
  makeShop,
  minute,
  paid,
  read,
  report,
  setState,
  sums,
  timeNow,
  unsettled
} from "./CountBench.ts"

layer(Bench.layer)("the counts by day", (it) => {
  it.effect("are those of what is stored, by tenant, environment, day, currency and endpoint", function* () {
    yield* empty
    const now = yield* timeNow
    const [mine, other] = [yield* makeShop, yield* makeShop]
    const [first, second] = [yield* makeEndpoint(mine.sandbox), yield* makeEndpoint(mine.sandbox)]
    const live = yield* makeEndpoint(mine.production)
    yield* beginAt(now - 8 * hour)
    // Long ago, so that it is settled; and just now
    for (const at of [now - 7 * hour, now - 2 * hour, now - minute]) {
      yield* deliver(mine.sandbox, first, { at, count: 3 })
      yield* deliver(mine.sandbox, first, { at, state: "failed" })
      yield* deliver(mine.sandbox, second, { at, state: "queued", count: 2 })
      yield* deliver(mine.sandbox, first, { at, count: 5, test: true })
      yield* deliver(mine.production, live, { at })
      yield* report(mine.sandbox, at, "payment.succeeded", paid(1500))
      yield* report(mine.sandbox, at, "payment.succeeded", paid(Number.MAX_SAFE_INTEGER, "idr"))
      yield* report(mine.sandbox, at, "payment.succeeded", paid(Number.MAX_SAFE_INTEGER, "idr"))
      yield* report(mine.sandbox, at, "payment.failed", {
        payment_id: "pi_2",
        amount: 700,
        currency: "brl",
        failure_code: null
      })
      yield* report(mine.production, at, "payment.succeeded", paid(99, "usd"))
      // Not payments, or of a team's own catalog, or nothing that counts
      yield* report(mine.sandbox, at, "payout.paid", { amount: 1, currency: "brl" })
      yield* report(mine.sandbox, at, "payment.succeeded", { amount_received: "much", currency: "brl" })
      yield* report(mine.sandbox, at, "payment.succeeded", { amount_received: 1, currency: "BRL'; --" })
      yield* report(mine.sandbox, at, "payment.succeeded", paid(5), `svc_test_evt_${randomUUID()}`)
    }
    yield* count
    const days = new Map<string, number>()
    for (const at of [now - 7 * hour, now - 2 * hour, now - minute]) {
      days.set(dateOf(at), (days.get(dateOf(at)) ?? 0) + 1)
    }
    const expected = [...days].map(([date, times]) => ({ date, times }))
    const statistics = yield* read(mine.sandbox)
    expect(statistics.deliveries).toEqual(
      expected.map(({ date, times }) => ({ date, delivered: 3 * times, failed: times, queued: 2 * times }))
    )
    expect(statistics.endpoints).toEqual([
      {
        id: first,
        days: expected.map(({ date, times }) => ({ date, delivered: 3 * times, failed: times, queued: 0 }))
      },
      { id: second, days: expected.map(({ date, times }) => ({ date, delivered: 0, failed: 0, queued: 2 * times })) }
    ])
    const nothing = { count: 0, amount: "0" }
    expect(statistics.payments).toEqual(
      expected.flatMap(({ date, times }) => [
        {
          date,
          currency: "brl",
          succeeded: { count: times, amount: String(1500 * times) },
          failed: { count: times, amount: String(700 * times) },
          refunded: nothing,
          refundFailed: nothing
        },
        {
          date,
          currency: "idr",
          succeeded: { count: 2 * times, amount: String(2n * BigInt(times) * BigInt(Number.MAX_SAFE_INTEGER)) },
          failed: nothing,
          refunded: nothing,
          refundFailed: nothing
        }
      ])
    )
    expect(yield* sums(mine.production)).toEqual({ delivered: 3, failed: 0, queued: 0, succeeded: 3 })
    expect(yield* sums(other.sandbox)).toEqual({ delivered: 0, failed: 0, queued: 0, succeeded: 0 })
    const shortly = yield* timeNow
    expect(statistics.countedUntil.getTime()).toBeGreaterThan(now - minute)
    expect(statistics.countedUntil.getTime()).toBeLessThan(shortly)
    // Once more adds nothing, by another process neither
    const { processes } = yield* Bench
    yield* Effect.all([count, processes[1].count], { concurrency: "unbounded" })
    expect((yield* read(mine.sandbox)).deliveries).toEqual(statistics.deliveries)
  })

  it.effect("count nothing twice while several processes count at once", function* () {
    const { endpoint, now, sandbox } = yield* countedShop(3 * hour)
    for (let at = now - 3 * hour + 20 * minute; at < now - minute; at += 3 * minute) {
      yield* deliver(sandbox, endpoint, {
        at,
        state: Math.floor(at / (3 * minute)) % 2 === 0 ? "failed" : "delivered"
      })
      yield* report(sandbox, at, "payment.succeeded", paid(1))
    }
    const { processes, sql } = yield* Bench
    yield* Effect.all(
      [...processes, ...processes].map((process) => process.count),
      { concurrency: "unbounded" }
    )
    const [stored] = yield* sql<{ count: number }>`
        SELECT count(*)::int AS count FROM payments.deliveries WHERE organization_id = ${sandbox.organizationId}`
    const { delivered, failed, succeeded } = yield* sums(sandbox)
    expect([delivered + failed, succeeded]).toEqual([stored?.count, stored?.count])
  })

  it.effect("include what is committed late, and repeat nothing of a step that fails", function* () {
    const { sql } = yield* Bench
    const { endpoint, now, sandbox } = yield* countedShop(10 * minute)
    const at = now - 5 * minute
    yield* deliver(sandbox, endpoint, { at, count: 2 })
    yield* report(sandbox, at, "payment.succeeded", paid(10))
    yield* count
    expect(yield* sums(sandbox)).toMatchObject({ delivered: 2, succeeded: 1 })
    // As by a transaction that took so long, or by a process whose clock is behind
    yield* deliver(sandbox, endpoint, { at })
    yield* report(sandbox, at, "payment.succeeded", paid(10))
    yield* count
    expect(yield* sums(sandbox)).toMatchObject({ delivered: 2, succeeded: 1 })
    yield* forward(30 * minute)
    // It counts, and then can't write that it has
    yield* sql`ALTER TABLE payments.count_passes ADD CONSTRAINT stands CHECK (pass = 1) NOT VALID`
    expect((yield* Effect.exit(count))._tag).toBe("Failure")
    expect(yield* sums(sandbox)).toMatchObject({ delivered: 2, succeeded: 1 })
    yield* sql`ALTER TABLE payments.count_passes DROP CONSTRAINT stands`
    yield* count
    expect(yield* sums(sandbox)).toMatchObject({ delivered: 3, succeeded: 2 })
  })

  it.effect("follow a delivery from waiting to failed, and to delivered by a re-send, for its time", function* () {
    const { endpoint, now, sandbox } = yield* countedShop(hour)
    const at = slotOf(now - 40 * minute) + 1000
    const waits = yield* deliver(sandbox, endpoint, { at, state: "queued", count: 3 })
    yield* deliver(sandbox, endpoint, { at, count: 5 })
    yield* count
    expect(yield* sums(sandbox)).toMatchObject({ delivered: 5, failed: 0, queued: 3 })
    yield* setState(waits.slice(0, 2), "failed")
    yield* forward(hour)
    yield* count
    expect(yield* sums(sandbox)).toMatchObject({ delivered: 5, failed: 2, queued: 1 })
    yield* setState(waits, "delivered")
    yield* forward(2 * hour)
    yield* count
    expect(yield* sums(sandbox)).toMatchObject({ delivered: 8, failed: 0, queued: 0 })
    expect(yield* unsettled(sandbox)).toBe(0)

    // One that stays failed is looked at for as long as it can be re-sent
    const later = yield* timeNow
    const [failing = ""] = yield* deliver(sandbox, endpoint, { at: later - 40 * minute, state: "failed" })
    yield* beginAt(later - hour)
    yield* count
    expect(yield* unsettled(sandbox)).toBe(1)
    yield* countAfter(70 * hour)
    expect(yield* unsettled(sandbox)).toBe(1)
    yield* setState([failing], "queued")
    yield* countAfter(20 * hour)
    expect(yield* sums(sandbox)).toMatchObject({ delivered: 8, failed: 0, queued: 1 })
    yield* setState([failing], "failed")
    yield* countAfter(20 * hour)
    expect(yield* sums(sandbox)).toMatchObject({ delivered: 8, failed: 1, queued: 0 })
    expect(yield* unsettled(sandbox)).toBe(0)
  })

  it.effect("follow a re-send soon, however old the delivery is", function* () {
    const { sql } = yield* Bench
    const { endpoint, now, sandbox } = yield* countedShop(hour)
    const at = slotOf(now - 40 * minute)
    const [failed = ""] = yield* deliver(sandbox, endpoint, { at, state: "failed" })
    yield* deliver(sandbox, endpoint, { at: at - 10 * minute, state: "failed" })
    yield* count
    yield* countAfter(20 * hour)
    yield* setState([failed], "delivered")
    yield* sql`
        WITH requeued AS (SELECT * FROM payments.deliveries WHERE id = ${failed}::uuid), soon AS (${countSoon(sql, "requeued")})
        SELECT 1`
    yield* count
    expect(yield* sums(sandbox)).toMatchObject({ delivered: 0, failed: 2 })
    yield* forward(minute)
    yield* count
    expect(yield* sums(sandbox)).toMatchObject({ delivered: 1, failed: 1 })
  })

  it.effect("include what a replay adds, however long it takes", function* () {
    const { sql } = yield* Bench
    const { endpoint, now, sandbox } = yield* countedShop(hour)
    const at = slotOf(now - 40 * minute) + 1000
    const replayId = v7({ msecs: at })
    yield* sql`SELECT payments.add_day(payments.day_of(${replayId}::uuid))`
    yield* sql`
        INSERT INTO payments.event_replays (organization_id, environment, id, endpoint_id, since, until, reached)
        VALUES (${sandbox.organizationId}, 'sandbox', ${replayId}, ${endpoint}, '2026-01-01', '2026-01-02', '0')`
    yield* count
    expect(yield* sums(sandbox)).toMatchObject({ delivered: 0 })
    expect(yield* unsettled(sandbox)).toBe(1)
    yield* deliver(sandbox, endpoint, { at, count: 7 })
    yield* forward(5 * minute)
    yield* count
    expect(yield* sums(sandbox)).toMatchObject({ delivered: 7 })
    yield* deliver(sandbox, endpoint, { at, count: 4, state: "failed" })
    yield* sql`
        UPDATE payments.event_replays SET state = 'finished', finished_at = clock.now() WHERE id = ${replayId}`
    yield* forward(3 * minute)
    yield* count
    expect(yield* sums(sandbox)).toMatchObject({ delivered: 7, failed: 4 })
    expect(yield* unsettled(sandbox)).toBe(1)
  })

  it.effect("are made in parts of what one endpoint got very much of", function* () {
    const { sql } = yield* Bench
    const { endpoint, now, sandbox } = yield* countedShop(hour)
    const ids = yield* deliver(sandbox, endpoint, { at: slotOf(now - 40 * minute), state: "failed", count: 10 })
    yield* count
    yield* forward(12 * hour)
    const looks = Effect.repeat(lookAgain(sql, 3), { while: ([row]) => (row?.looked ?? 0) > 0 })
    yield* looks
    expect(yield* unsettled(sandbox)).toBe(4)
    expect(yield* sums(sandbox)).toMatchObject({ delivered: 0, failed: 10 })
    yield* setState(ids.slice(0, 6), "delivered")
    yield* forward(12 * hour)
    yield* looks
    expect(yield* sums(sandbox)).toMatchObject({ delivered: 6, failed: 4 })
  })

  it.effect("count of a charge that is refunded in parts what each part adds", function* () {
    yield* empty
    const [{ sandbox }, { sandbox: other }] = [yield* makeShop, yield* makeShop]
    const now = yield* timeNow
    yield* beginAt(now - hour)
    const at = slotOf(now - 50 * minute)
    const refunded = (
      millis: number,
      amount: number,
      charge = "ch_1",
      payment: string | null = "pi_9",
      shop = sandbox
    ) =>
      report(shop, at + millis, "payment.refunded", {
        charge_id: charge,
        payment_id: payment,
        amount_refunded: amount,
        currency: "brl",
        fully_refunded: false
      })
    yield* refunded(1, 500)
    yield* refunded(2, 1500)
    // Repeated, out of order, and much later
    yield* refunded(3, 1500)
    yield* refunded(4, 700)
    yield* refunded(20 * minute, 2000)
    yield* refunded(5, 300, "ch_2")
    // Of charges that belong to no payment
    yield* refunded(6, 40, "ch_3", null)
    yield* refunded(7, 90, "ch_3", null)
    yield* refunded(20 * minute + 1, 120, "ch_3", null)
    yield* refunded(8, 5, "ch_4", null)
    // Another tenant's, and one of a payment, with the same charge
    yield* refunded(9, 70, "ch_3", "pi_10")
    yield* refunded(3, 1000, "ch_3", null, other)
    yield* count
    const { payments } = yield* read(sandbox)
    expect(payments.reduce((sum, day) => sum + day.refunded.count, 0)).toBe(11)
    expect(payments.reduce((sum, day) => sum + Number(day.refunded.amount), 0)).toBe(2000 + 300 + 120 + 5 + 70)
  })

  it.effect("count what is refunded again after it failed, which the provider takes off the sum", function* () {
    yield* empty
    const { sql } = yield* Bench
    const [{ sandbox }, { sandbox: other }] = [yield* makeShop, yield* makeShop]
    const refunded = (at: number, charge: string, amount: number, more: object = {}) =>
      report(sandbox, at, "payment.refunded", {
        charge_id: charge,
        payment_id: `pi_of_${charge}`,
        amount_refunded: amount,
        currency: "brl",
        fully_refunded: false,
        ...more
      })
    const failed = (at: number, charge: string, amount: number, of = sandbox) =>
      sql`
          INSERT INTO payments.failed_refunds (organization_id, environment, refund_id, charge_id, amount, currency, status,
            recorded_at)
          VALUES (${of.organizationId}, ${of.environment}, ${`re_${charge}_${at}`}, ${charge}, ${amount}, 'brl', 'failed',
            to_timestamp(${at / 1000}::float8))`
    const sum = Effect.map(read(sandbox), ({ payments }) =>
      payments.reduce((total, day) => total + Number(day.refunded.amount), 0)
    )
    yield* beginAt((yield* timeNow) - hour)
    const at = slotOf((yield* timeNow) - 50 * minute)
    // Within one slot, twice
    yield* refunded(at + 1, "ch_1", 1000)
    yield* failed(at + 2, "ch_1", 1000)
    yield* refunded(at + 3, "ch_1", 1000)
    yield* failed(at + 4, "ch_1", 1000)
    yield* refunded(at + 5, "ch_1", 1000)
    // Much later, of a part; another one fails, and is not refunded again
    yield* refunded(at + 6, "ch_2", 1000)
    yield* refunded(at + 7, "ch_2", 3000)
    yield* failed(at + 10 * minute, "ch_2", 2000)
    yield* refunded(at + 20 * minute, "ch_2", 3000)
    yield* failed(at + 21 * minute, "ch_2", 1000)
    // Another charge's failure, and another tenant's
    yield* refunded(at + 8, "ch_3", 70)
    yield* failed(at + 9, "ch_4", 70)
    yield* failed(at + 9, "ch_3", 70, other)
    yield* refunded(at + 10, "ch_3", 70)
    yield* count
    expect(yield* sum).toBe(3000 + 5000 + 70)

    // By what was kept of events that have been removed since
    yield* forward(31 * 24 * hour)
    yield* sql`DELETE FROM payments.events`
    yield* beginAt((yield* timeNow) - hour)
    const later = (yield* timeNow) - 40 * minute
    yield* failed(later, "ch_2", 500)
    yield* failed(later, "ch_1", 1000)
    yield* refunded(later + 1, "ch_1", 1000, { fully_refunded: true })
    yield* refunded(later + 1, "ch_2", 2500)
    yield* count
    expect(yield* sum).toBe(3000 + 5000 + 70 + 1000 + 1000)
  })

  it.effect("count a refund in parts once, if the events of the earlier parts have been removed since", function* () {
    yield* empty
    const { processes, sql } = yield* Bench
    const { sandbox } = yield* makeShop
    const refunded = (at: number, amount: number, more: object = {}) =>
      report(sandbox, at, "payment.refunded", {
        charge_id: "ch_9",
        payment_id: "pi_20",
        amount_refunded: amount,
        currency: "brl",
        fully_refunded: amount === 10_000,
        ...more
      })
    // Longer than an id of the provider, as a team's own may be
    const own = { charge_id: "c".repeat(3000), payment_id: null }
    const sumAfter = (days: number) =>
      Effect.gen(function* () {
        yield* sql`DELETE FROM payments.events`
        yield* forward(days * 24 * hour)
        yield* beginAt((yield* timeNow) - hour)
        return (yield* timeNow) - 40 * minute
      })
    yield* beginAt((yield* timeNow) - hour)
    const begun = (yield* timeNow) - 40 * minute
    yield* refunded(begun, 1000)
    yield* refunded(begun + 10 * minute, 4000)
    yield* refunded(begun, 30, own)
    yield* count
    const later = yield* sumAfter(31)
    yield* refunded(later, 7000)
    yield* refunded(later, 7000, { charge_id: "ch_10" })
    yield* refunded(later, 50, own)
    yield* count
    yield* refunded(yield* sumAfter(31), 10_000)
    yield* count
    const { payments } = yield* read(sandbox, 90)
    expect(payments.map(({ refunded }) => refunded.amount)).toEqual(["4030", "10020", "3000"])
    const kept = Effect.map(
      sql<{ count: number }>`
          SELECT count(*)::int AS count FROM payments.refunded_in_part WHERE organization_id = ${sandbox.organizationId}`,
      ([row]) => row?.count
    )
    yield* processes[0].clean
    expect(yield* kept).toBe(3)
    yield* forward(401 * 24 * hour)
    yield* processes[0].clean
    expect(yield* kept).toBe(0)
  })

  it.effect("end with their time, and stay when the deliveries of a day are removed", function* () {
    const { processes, sql } = yield* Bench
    const { endpoint, now, sandbox } = yield* countedShop(hour)
    yield* deliver(sandbox, endpoint, { at: now - 40 * minute, state: "failed" })
    yield* count
    expect(yield* unsettled(sandbox)).toBeGreaterThan(0)
    // As if retention had removed the day
    yield* sql`DELETE FROM payments.deliveries WHERE organization_id = ${sandbox.organizationId}`
    const removed = yield* sql`DELETE FROM payments.days RETURNING day::text`
    yield* countAfter(24 * hour)
    expect(yield* unsettled(sandbox)).toBe(0)
    expect(yield* sums(sandbox)).toMatchObject({ failed: 1 })
    yield* sql`INSERT INTO payments.days (day) SELECT unnest(${removed.map((row) => String(Object(row).day))}::date[])`
    const kept = () =>
      Effect.map(
        sql<{ count: number }>`
            SELECT count(*)::int AS count FROM payments.delivery_counts WHERE organization_id = ${sandbox.organizationId}`,
        ([row]) => row?.count
      )
    yield* processes[0].clean
    expect(yield* kept()).toBe(1)
    yield* forward(91 * 24 * hour)
    yield* processes[0].clean
    expect(yield* kept()).toBe(0)
    expect(yield* sums(sandbox)).toMatchObject({ failed: 0 })
  })
})
