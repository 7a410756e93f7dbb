import { Duration, Effect, Either, Option, Redacted } from "effect"
import { automaticDelays, jitter, maxAttempts, nextStep } from "../../src/engine/attempts/Outcome.ts"
import { Destinations } from "../../src/engine/attempts/Signing.ts"
import { type ClaimedDelivery, queueStart } from "../../src/engine/queue/Claim.ts"
import type { Queue } from "../../src/engine/queue/Queue.ts"
import type { Cipher } from "../../src/platform/kit/crypto/Cipher.ts"
import { queueAgain } from "../destinations/deliveries/StoredDeliveries.ts"
import { eventually } from "../harness/Eventually.ts"
import { expect, layer } from "../harness/Tests.ts"
import { claimFrom, finished, idle, QueueBench, unconfirm } from "./QueueBench.ts"

const only = (claimed: ReadonlyArray<ClaimedDelivery>): Effect.Effect<ClaimedDelivery> => {
  const [first] = claimed
  return claimed.length === 1 && first !== undefined
    ? Effect.succeed(first)
    : Effect.dieMessage(`${claimed.length} deliveries were claimed, not one`)
}

const claimOne = (queue: Queue["Type"]) => Effect.flatMap(claimFrom(queue, idle), only)

const retry = (delay: Duration.DurationInput = "30 seconds") =>
  ({ state: "queued", delay: Duration.decode(delay) }) as const

/** Takes stored secrets for what they are: encryption is the cipher's matter. */
const openCipher: Cipher["Type"] = {
  encrypt: () => Effect.dieMessage("Nothing is encrypted here"),
  decrypt: ({ ciphertext }) => Effect.succeed(Redacted.make(Buffer.from(ciphertext).toString()))
}

const emptyBench = Effect.tap(QueueBench, ({ reset }) => reset)

layer(QueueBench.layer)("claim", (it) => {
  it.effect("never takes more than its limit, also by a plan from when the queue was empty", function* () {
    const { makeEndpoint, queues, seed, sql } = yield* emptyBench
    const [queue] = queues
    const endpoint = yield* makeEndpoint
    yield* sql`ANALYZE payments.deliveries, payments.delivery_queue`
    // PostgreSQL may settle on one plan for a prepared statement after five runs; all connections get there
    yield* Effect.forEach(Array.from({ length: 60 }), () => claimFrom(queue, idle), { concurrency: 4 })
    yield* seed(endpoint, { count: 3000 })
    const all = new Set<string>()
    for (const limit of [128, 128, 1, 17, 128]) {
      const claimed = yield* claimFrom(queue, { ...idle, limit, perEndpoint: 100_000 })
      expect(claimed).toHaveLength(limit)
      for (const { id } of claimed) all.add(id)
    }
    expect(all.size).toBe(128 + 128 + 1 + 17 + 128)
    expect(yield* sql`SELECT count(*)::int AS leased FROM payments.delivery_queue WHERE lease IS NOT NULL`).toEqual([
      { leased: all.size }
    ])
  })

  it.effect("never gives a delivery to two workers, and all of them to somebody", function* () {
    const { makeEndpoint, queues, seed } = yield* emptyBench
    const endpoints = yield* Effect.all(Array.from({ length: 5 }, () => makeEndpoint))
    const seeded = yield* Effect.forEach(endpoints, (endpoint) => seed(endpoint, { count: 100 }))
    const claimed: Array<string> = []
    const drain = (queue: Queue["Type"]) =>
      Effect.iterate(queue, {
        while: () => claimed.length < 500,
        body: () =>
          Effect.map(claimFrom(queue, { ...idle, limit: 7 }), (batch) => {
            claimed.push(...batch.map(({ id }) => id))
            return queue
          })
      })
    yield* Effect.forEach([queues[0], queues[1], queues[0], queues[1]], drain, { concurrency: 4 })
    expect(claimed).toHaveLength(500)
    expect(claimed.sort()).toEqual(seeded.flat().sort())
  })

  it.effect("takes turns: two hundred due of one endpoint leave the other's one in the same claim", function* () {
    const { makeEndpoint, queues, seed } = yield* emptyBench
    const [loud, quiet] = [yield* makeEndpoint, yield* makeEndpoint]
    yield* seed(loud, { count: 200, dueInSeconds: -60 })
    const [single] = yield* seed(quiet)
    const claimed = yield* claimFrom(queues[0], { ...idle, perEndpoint: 16 })
    expect(claimed.map(({ id }) => id)).toContain(single)
    expect(claimed).toHaveLength(17)
  })

  it.effect("says where more is due than it looks at: the next claim reaches the other endpoint's one", function* () {
    const { makeEndpoint, queues, seed } = yield* emptyBench
    const [loud, quiet] = [yield* makeEndpoint, yield* makeEndpoint]
    yield* seed(loud, { count: 2000, dueInSeconds: -60 })
    const [single] = yield* seed(quiet)
    const first = yield* queues[0].claim({ ...idle, perEndpoint: 16 })
    expect(first.deliveries).toHaveLength(16)
    expect(first.more).toBe(true)
    const second = yield* queues[0].claim({ ...idle, perEndpoint: 16, inFlight: new Map([[loud.id, 16]]) })
    expect(second.deliveries.map(({ id }) => id)).toEqual([single])
    expect(second.more).toBe(false)
  })

  it.effect("reaches past any number of due deliveries of an endpoint that is at its cap", function* () {
    const { makeEndpoint, queues, seed } = yield* emptyBench
    const [dead, alive] = [yield* makeEndpoint, yield* makeEndpoint]
    yield* seed(dead, { count: 3000, dueInSeconds: -60 })
    const [single] = yield* seed(alive)
    const claimed = yield* claimFrom(queues[0], { ...idle, perEndpoint: 16, inFlight: new Map([[dead.id, 16]]) })
    expect(claimed.map(({ id }) => id)).toEqual([single])
  })

  it.effect("says that there may be more where it does not step over all of those", function* () {
    const { makeEndpoint, queues, seed } = yield* emptyBench
    const [dead, alive] = [yield* makeEndpoint, yield* makeEndpoint]
    const options = { ...idle, perEndpoint: 16, inFlight: new Map([[dead.id, 16]]), hides: true }
    yield* seed(dead, { count: 1000, dueInSeconds: -60 })
    const [near] = yield* seed(alive, { dueInSeconds: -30 })
    const reached = yield* queues[0].claim(options)
    expect([reached.deliveries.map(({ id }) => id), reached.more]).toEqual([[near], false])
    yield* seed(dead, { count: 100, dueInSeconds: -60 })
    yield* seed(alive)
    const stopped = yield* queues[0].claim(options)
    expect([stopped.deliveries, stopped.more]).toEqual([[], true])
  })

  it.effect("leaves endpoints out, asks for some of them by themselves, and says where each begins", function* () {
    const { makeEndpoint, queues, seed, sql } = yield* emptyBench
    const [dead, hopeless, alive] = [yield* makeEndpoint, yield* makeEndpoint, yield* makeEndpoint]
    const waiting = yield* seed(dead, { count: 300, dueInSeconds: -60 })
    yield* seed(hopeless, { count: 300, dueInSeconds: -90 })
    const [single] = yield* seed(alive, { dueInSeconds: -30 })
    const options = {
      ...idle,
      leftOut: [dead.id, hopeless.id],
      askedFor: [{ endpointId: dead.id, from: queueStart, room: 3 }]
    }
    const first = yield* queues[0].claim(options)
    expect(first.deliveries.map(({ id }) => id).sort()).toEqual([single, ...waiting.slice(0, 3)].sort())
    expect([...first.askedFor.keys()]).toEqual([dead.id])
    // The healthy one's row was the first of the rest; nothing before it is anybody's but theirs
    const [place] = yield* sql<{ age: number; deadAge: number }>`
        SELECT EXTRACT(EPOCH FROM now() - ${first.place}::timestamptz)::float8 AS age,
          EXTRACT(EPOCH FROM now() - ${first.askedFor.get(dead.id) ?? ""}::timestamptz)::float8 AS "deadAge"`
    expect(place?.age).toBeGreaterThanOrEqual(29)
    expect(place?.age).toBeLessThan(59)
    expect(place?.deadAge).toBeGreaterThanOrEqual(59)
    const [late] = yield* seed(alive)
    const next = yield* queues[0].claim({ ...options, from: first.place, askedFor: [] })
    expect(next.deliveries.map(({ id }) => id)).toEqual([late])
    expect(next.askedFor.size).toBe(0)
  })

  it.effect("says when the next delivery comes due that is not due yet", function* () {
    const { makeEndpoint, queues, seed } = yield* emptyBench
    const endpoint = yield* makeEndpoint
    expect((yield* queues[0].claim(idle)).nextDueInMillis).toBeNull()
    yield* seed(endpoint, { dueInSeconds: 300 })
    yield* seed(endpoint, { dueInSeconds: 60 })
    const { deliveries, nextDueInMillis } = yield* queues[0].claim(idle)
    expect(deliveries).toEqual([])
    expect(nextDueInMillis).toBeGreaterThan(30_000)
    expect(nextDueInMillis).toBeLessThanOrEqual(60_000)
  })

  it.effect("takes the longest due first", function* () {
    const { makeEndpoint, queues, seed } = yield* emptyBench
    const endpoint = yield* makeEndpoint
    const late = yield* seed(endpoint, { dueInSeconds: -1 })
    const later = yield* seed(endpoint, { dueInSeconds: -10 })
    const first = yield* claimFrom(queues[0], { ...idle, limit: 1 })
    const second = yield* claimFrom(queues[0], { ...idle, limit: 1 })
    expect([...first, ...second].map(({ id }) => id)).toEqual([...later, ...late])
  })
})

/** The rows of deliveries and of the queue that are read while 20 small claims are made and finished. */
const rowsReadByClaims = Effect.fnUntraced(function* ({ queues: [, queue], sql }: QueueBench["Type"]) {
  const read = Effect.map(
    sql<{ rows: number; updated: number }>`
      SELECT sum(seq_tup_read + idx_tup_fetch)::int AS rows, sum(n_tup_upd)::int AS updated FROM pg_stat_user_tables
      WHERE schemaname = 'payments' AND (relname = 'delivery_queue' OR relname LIKE 'deliveries\\_%')`,
    ([row]) => row ?? { rows: 0, updated: 0 }
  )
  // Sessions report what they did with their next statement, a second later or at their end
  const settled = (updated: number) =>
    eventually(
      "the counts",
      Effect.zipRight(
        Effect.forEach([1, 2, 3, 4], () => queue.release([], Duration.zero), { concurrency: 4 }),
        Effect.map(read, (counts) => (counts.updated >= updated ? Option.some(counts) : Option.none()))
      )
    )
  const before = yield* settled((yield* read).updated)
  const rounds = 20
  for (let round = 0; round < rounds; round += 1) {
    yield* queue.finish(
      (yield* claimFrom(queue, { ...idle, limit: 16 })).map((one) => finished(one, 204, { state: "delivered" }))
    )
  }
  return (yield* settled(before.updated + rounds * 16 * 2)).rows - before.rows
})

/** Looks at the empty queue until each connection keeps the plans of that: it does after the fifth run. */
const lookInVain = ({ queues: [, queue] }: QueueBench["Type"]) =>
  Effect.forEach(
    Array.from({ length: 60 }),
    () =>
      Effect.flatMap(claimFrom(queue, idle), (none) => queue.finish(none.map((one) => finished(one, 204, retry())))),
    { concurrency: 4, discard: true }
  )

// Each on a database of its own: one that no other test has filled
layer(QueueBench.layer)("a young queue", (it) => {
  it.effect("does not read the whole table, though nothing is known of it yet but that it was empty", function* () {
    const bench = yield* emptyBench
    const endpoint = yield* bench.makeEndpoint
    yield* lookInVain(bench)
    yield* bench.seed(endpoint, { count: 5000 })
    expect(yield* rowsReadByClaims(bench)).toBeLessThan(5000 * 4)
  })
})

layer(QueueBench.layer)("a queue that was worked off", (it) => {
  it.effect("does not read all that comes at once, though the day's deliveries are as many as before", function* () {
    const bench = yield* emptyBench
    const { sql } = bench
    yield* bench.seed(yield* bench.makeEndpoint, { count: 5000 })
    yield* sql`CREATE TABLE payments.aside AS SELECT * FROM payments.delivery_queue`
    yield* sql`TRUNCATE payments.delivery_queue`
    yield* lookInVain(bench)
    yield* sql`INSERT INTO payments.delivery_queue SELECT * FROM payments.aside`
    // The first claim finds out
    expect(yield* rowsReadByClaims(bench)).toBeLessThan(5000 * 10)
  })
})

layer(QueueBench.layer)("a backlog", (it) => {
  it.effect(
    "is recorded without a new entry in any index: each row finds room for its attempt where it is",
    function* () {
      const { makeEndpoint, queues, seed, sql } = yield* emptyBench
      const count = 2000
      yield* seed(yield* makeEndpoint, { count })
      const claim = claimFrom(queues[0], { ...idle, limit: 500, perEndpoint: count })
      for (let recorded = 0; recorded < count; ) {
        const claimed = yield* claim
        yield* queues[0].finish(claimed.map((delivery) => finished(delivery, 204, { state: "delivered" })))
        recorded += claimed.length
      }
      // A connection tells its counts a moment later
      const counts = yield* eventually(
        "the counts of the updates",
        Effect.map(
          sql<{ readonly updated: number; readonly inPlace: number }>`
            SELECT sum(n_tup_upd)::int AS updated, sum(n_tup_hot_upd)::int AS "inPlace" FROM pg_stat_user_tables
            WHERE schemaname = 'payments' AND starts_with(relname, 'deliveries_')`,
          ([row]) => Option.filter(Option.fromNullable(row), ({ updated }) => updated >= count)
        )
      )
      expect(counts).toEqual({ updated: count, inPlace: count })
    }
  )
})

layer(QueueBench.layer)("a lease", (it) => {
  it.effect("still belongs to its attempt after the table was rewritten, which moves all rows", function* () {
    const { delivery, makeEndpoint, queues, seed, sql } = yield* emptyBench
    const endpoint = yield* makeEndpoint
    const others = yield* seed(endpoint, { count: 40, dueInSeconds: 60 })
    yield* seed(endpoint, { count: 3 })
    const [ended, tried, late] = yield* claimFrom(queues[0], idle)
    if (ended === undefined || tried === undefined || late === undefined) return yield* Effect.die("Three were claimed")
    const places = sql<{ readonly place: string }>`
        SELECT ctid AS place FROM payments.delivery_queue WHERE lease IS NOT NULL ORDER BY id`
    const before = yield* places
    yield* sql`DELETE FROM payments.delivery_queue WHERE id = ANY (${others.slice(0, 20)}::uuid[])`
    yield* sql`VACUUM FULL payments.delivery_queue`
    expect(yield* places).not.toEqual(before)
    yield* queues[0].finish([finished(ended, 204, { state: "delivered" }), finished(tried, 503, retry())])
    expect(yield* delivery(ended.id)).toMatchObject({ state: "delivered", attemptCount: 1, lastHttpStatus: 204 })
    expect(yield* delivery(tried.id)).toMatchObject({ state: "queued", leased: false, lastHttpStatus: 503 })
    expect(yield* delivery(late.id)).toMatchObject({ state: "queued", leased: true, lastHttpStatus: null })
    expect(yield* sql`SELECT count(*)::int AS left FROM payments.delivery_queue`).toEqual([{ left: 22 }])
  })

  it.effect("is not taken from who stands now where its delivery stood", function* () {
    const { delivery, makeEndpoint, queues, seed } = yield* emptyBench
    yield* seed(yield* makeEndpoint, { count: 2 })
    const [one, other] = yield* claimFrom(queues[0], idle)
    if (one === undefined || other === undefined) return yield* Effect.die("Two were claimed")
    // Under the same lease, as all of one claim are
    yield* queues[0].finish([finished({ ...one, ctid: other.ctid }, 204, { state: "delivered" })])
    expect(yield* delivery(one.id)).toMatchObject({ state: "delivered", lastHttpStatus: 204 })
    expect(yield* delivery(other.id)).toMatchObject({ state: "queued", leased: true, lastHttpStatus: null })
  })

  it.effect("that was lost to another worker no longer moves the delivery, but its attempt is recorded", function* () {
    const { attempts, delivery, elapse, makeEndpoint, queues, seed } = yield* emptyBench
    yield* seed(yield* makeEndpoint)
    const slow = yield* claimOne(queues[0])
    yield* elapse([slow.id])
    const newer = yield* claimOne(queues[1])
    yield* queues[0].finish([finished(slow, 429, retry())])
    expect(yield* delivery(slow.id)).toMatchObject({ state: "queued", attemptCount: 2, leased: true })
    expect(yield* attempts(slow.id)).toEqual([
      { number: 1, trigger: "automatic", durationMs: 12, httpStatus: 429, errorCode: "http_error" }
    ])
    yield* queues[1].finish([finished(newer, 500, retry())])
    expect(yield* delivery(slow.id)).toMatchObject({ state: "queued", lastHttpStatus: 500, leased: false })
    // Neither does it overwrite what the newer one recorded, however late it comes
    yield* queues[0].finish([finished(slow, 404, { state: "failed" })])
    expect(yield* delivery(slow.id)).toMatchObject({ state: "queued", lastHttpStatus: 500 })
    expect((yield* attempts(slow.id)).map(({ httpStatus }) => httpStatus)).toEqual([429, 500])
  })

  it.effect(
    "that was lost lets a late success end its delivery well while the next attempt waits or is under way",
    function* () {
      const { attempts, delivery, elapse, makeEndpoint, queues, seed } = yield* emptyBench
      const endpoint = yield* makeEndpoint
      const lose = Effect.gen(function* () {
        yield* seed(endpoint)
        const slow = yield* claimOne(queues[0])
        yield* elapse([slow.id])
        return { slow, next: yield* claimOne(queues[1]) }
      })
      const acknowledge = ({ slow }: { readonly slow: ClaimedDelivery }) =>
        Effect.zipRight(queues[0].finish([finished(slow, 204, { state: "delivered" })]), delivery(slow.id))

      const waiting = yield* lose
      yield* queues[1].finish([finished(waiting.next, 503, retry())])
      expect(yield* acknowledge(waiting)).toMatchObject({
        state: "delivered",
        attemptCount: 2,
        finished: true,
        dueIn: null,
        lastHttpStatus: 204,
        lastErrorCode: null
      })
      yield* elapse([waiting.slow.id])
      expect(yield* claimFrom(queues[1], idle)).toEqual([])

      const underWay = yield* lose
      expect(yield* acknowledge(underWay)).toMatchObject({ state: "delivered", attemptCount: 1, leased: false })
      // A consumer that has the event may refuse it now
      yield* queues[1].finish([finished(underWay.next, 409, { state: "failed" })])
      expect(yield* delivery(underWay.slow.id)).toMatchObject({
        state: "delivered",
        attemptCount: 2,
        lastHttpStatus: 204
      })
      expect((yield* attempts(underWay.slow.id)).map(({ httpStatus }) => httpStatus)).toEqual([204, 409])
    }
  )

  it.effect("that was lost lets a late success end well what has failed since, or was sent again since", function* () {
    const { attempts, delivery, elapse, makeEndpoint, queues, seed, sql } = yield* emptyBench
    const endpoint = yield* makeEndpoint
    const lose = Effect.gen(function* () {
      yield* seed(endpoint, { attemptCount: maxAttempts - 1 })
      const slow = yield* claimOne(queues[0])
      yield* elapse([slow.id])
      // Taken for lost, the last of its attempts
      expect(yield* claimFrom(queues[1], idle)).toEqual([])
      expect(yield* delivery(slow.id)).toMatchObject({ state: "failed", lastErrorCode: "interrupted" })
      return slow
    })
    const delivered = yield* lose
    yield* queues[0].finish([finished(delivered, 204, { state: "delivered" })])
    expect(yield* delivery(delivered.id)).toMatchObject({
      state: "delivered",
      finished: true,
      attemptCount: maxAttempts,
      lastHttpStatus: 204,
      lastErrorCode: null
    })
    expect((yield* attempts(delivered.id)).at(-1)).toMatchObject({ httpStatus: 204, errorCode: null })

    const failed = yield* lose
    yield* queues[0].finish([finished(failed, 503, { state: "failed" })])
    expect(yield* delivery(failed.id)).toMatchObject({ state: "failed", lastErrorCode: "interrupted" })

    const resent = yield* lose
    yield* queueAgain(sql, sql`id = ${resent.id}`)
    yield* queues[0].finish([finished(resent, 204, { state: "delivered" })])
    expect(yield* delivery(resent.id)).toMatchObject({ state: "delivered", dueIn: null })
  })

  it.effect("that was lost is recorded also in one flush with the attempts that came after it", function* () {
    const { attempts, delivery, elapse, makeEndpoint, queues, seed } = yield* emptyBench
    yield* seed(yield* makeEndpoint)
    const lose = Effect.tap(claimOne(queues[0]), ({ id }) => elapse([id]))
    const first = yield* lose
    const second = yield* lose
    // Two have been lost: it rests
    expect(yield* claimFrom(queues[0], idle)).toEqual([])
    yield* elapse([second.id])
    const last = yield* claimOne(queues[0])
    // As after a database was away for longer than a lease
    yield* queues[0].finish([
      finished(first, 204, { state: "delivered" }),
      finished(second, 503, retry()),
      finished(last, 409, { state: "failed" })
    ])
    expect((yield* attempts(last.id)).map(({ httpStatus }) => httpStatus)).toEqual([204, 503, 409])
    expect(yield* delivery(last.id)).toMatchObject({ state: "delivered", attemptCount: 3 })
  })

  it.effect("that has ended but was not taken still lets its worker move the delivery", function* () {
    const { attempts, delivery, elapse, makeEndpoint, queues, seed } = yield* emptyBench
    yield* seed(yield* makeEndpoint)
    const slow = yield* claimOne(queues[0])
    yield* elapse([slow.id])
    yield* queues[0].finish([finished(slow, 204, { state: "delivered" })])
    expect(yield* delivery(slow.id)).toMatchObject({ state: "delivered", attemptCount: 1 })
    expect(yield* attempts(slow.id)).toHaveLength(1)
    expect(yield* claimFrom(queues[1], idle)).toEqual([])
  })

  it.effect("recorded twice counts once", function* () {
    const { attempts, delivery, makeEndpoint, queues, seed } = yield* emptyBench
    yield* seed(yield* makeEndpoint)
    const claimed = yield* claimOne(queues[0])
    const result = finished(claimed, 503, retry())
    yield* queues[0].finish([result])
    const before = yield* delivery(claimed.id)
    yield* queues[0].finish([result])
    expect(yield* attempts(claimed.id)).toHaveLength(1)
    expect({ ...(yield* delivery(claimed.id)), dueIn: 0 }).toEqual({ ...before, dueIn: 0 })
  })
})

layer(QueueBench.layer)("a delivery", (it) => {
  it.effect.each([
    { diedAt: "its attempt", numbers: [1, 2, 3, 4, 5, 6] },
    { diedAt: "its claim", numbers: [1] }
  ])(
    "rests longer after each worker that died at $diedAt but the first, and ends failed after six",
    Effect.fnUntraced(function* ({ numbers }) {
      const { attempts, delivery, elapse, makeEndpoint, queues, seed, sql } = yield* emptyBench
      const ids = yield* seed(yield* makeEndpoint)
      const [id] = ids
      if (id === undefined) return yield* Effect.dieMessage("nothing was seeded")
      for (const [index, delay] of automaticDelays.entries()) {
        if (index > 1) {
          expect(yield* claimFrom(queues[0], idle)).toEqual([])
          expect(yield* delivery(id)).toMatchObject({
            state: "queued",
            leased: false,
            attemptCount: (numbers[index] ?? 1) - 1
          })
          const { dueIn } = yield* delivery(id)
          const rests = Duration.toSeconds(automaticDelays[index - 1] ?? delay)
          expect(dueIn).toBeGreaterThan(rests * jitter.min - 5)
          expect(dueIn).toBeLessThan(rests * jitter.max + 5)
          yield* elapse(ids)
        }
        const claimed = yield* claimOne(queues[index % 2 === 0 ? 0 : 1])
        expect(claimed.attempt).toBe(numbers[index] ?? 1)
        if (numbers.length === 1) yield* unconfirm(sql, [claimed])
        yield* elapse(ids)
      }
      expect(yield* claimFrom(queues[0], idle)).toEqual([])
      expect(yield* delivery(id)).toMatchObject({
        state: "failed",
        attemptCount: numbers.length,
        leased: false,
        dueIn: null,
        finished: true,
        lastHttpStatus: null,
        lastErrorCode: "interrupted"
      })
      expect((yield* attempts(id)).map(({ errorCode, number }) => [number, errorCode])).toEqual(
        numbers.map((number) => [number, "interrupted"])
      )
      yield* elapse(ids)
      expect(yield* claimFrom(queues[0], idle)).toEqual([])
    })
  )

  it.effect("is sent by itself after two minutes in which every worker died as it claimed", function* () {
    const { attempts, delivery, makeEndpoint, queues, seed, sql } = yield* emptyBench
    const ids = yield* seed(yield* makeEndpoint, { count: 3 })
    const second = sql`
        UPDATE payments.delivery_queue SET next_attempt_at = next_attempt_at - interval '1 second',
          leased_until = leased_until - interval '1 second'`
    for (let passed = 0; passed < 120; passed += 1) {
      yield* unconfirm(sql, yield* claimFrom(queues[0], idle))
      yield* second
    }
    const claimed: Array<ClaimedDelivery> = []
    // The longest wait after three abandoned claims is six minutes
    for (let passed = 0; passed < 480 && claimed.length < 3; passed += 1) {
      claimed.push(...(yield* claimFrom(queues[1], idle)))
      yield* second
    }
    yield* queues[1].finish(claimed.map((one) => finished(one, 204, { state: "delivered" })))
    for (const id of ids) {
      expect(yield* delivery(id)).toMatchObject({ state: "delivered", attemptCount: 1 })
      expect(yield* attempts(id)).toMatchObject([{ number: 1, errorCode: null }])
    }
  })

  it.effect("that a person sends again sees one attempt, even if the first worker that claims it dies", function* () {
    const { attempts, delivery, elapse, makeEndpoint, queues, seed } = yield* emptyBench
    const ids = yield* seed(yield* makeEndpoint, { attemptCount: 2, trigger: "manual" })
    const claimed = yield* claimOne(queues[0])
    expect(claimed).toMatchObject({ attempt: 3, trigger: "manual" })
    yield* elapse(ids)
    const again = yield* claimOne(queues[1])
    expect(again).toMatchObject({ attempt: 4, trigger: "manual", interrupted: 1 })
    const outcome = { httpStatus: 503, errorCode: "http_error", durationMs: 1, retryAfter: null } as const
    expect(yield* nextStep(again, outcome)).toEqual({ state: "failed" })
    yield* queues[1].finish([finished(again, 503, { state: "failed" })])
    expect(yield* delivery(claimed.id)).toMatchObject({ state: "failed", attemptCount: 4 })
    expect(yield* attempts(claimed.id)).toMatchObject([
      { number: 3, trigger: "manual", errorCode: "interrupted" },
      { number: 4, trigger: "manual", errorCode: "http_error" }
    ])
  })

  it.effect("that is released has its attempt back, and comes due after the delay", function* () {
    const { attempts, delivery, elapse, makeEndpoint, queues, seed } = yield* emptyBench
    const ids = yield* seed(yield* makeEndpoint)
    const claimed = yield* claimOne(queues[0])
    yield* queues[0].release([claimed], Duration.minutes(1))
    const row = yield* delivery(claimed.id)
    expect(row).toMatchObject({ state: "queued", attemptCount: 0, leased: false, due: false })
    expect(row.dueIn).toBeGreaterThan(50)
    expect(row.dueIn).toBeLessThanOrEqual(60)
    expect(yield* attempts(claimed.id)).toEqual([])
    yield* elapse(ids)
    expect((yield* claimOne(queues[1])).attempt).toBe(1)
    // Its lease is gone: a second release takes nothing from the new owner
    yield* queues[0].release([claimed], Duration.zero)
    expect(yield* delivery(claimed.id)).toMatchObject({ attemptCount: 1, leased: true })
  })

  it.effect("is recorded with others in one flush, each by its own outcome", function* () {
    const { attempts, delivery, makeEndpoint, queues, seed } = yield* emptyBench
    yield* seed(yield* makeEndpoint, { count: 3 })
    const [first, second, third] = yield* claimFrom(queues[0], idle)
    if (first === undefined || second === undefined || third === undefined) {
      return yield* Effect.dieMessage("three were seeded")
    }
    yield* queues[0].finish([
      finished(first, 204, { state: "delivered" }),
      finished(second, 404, { state: "failed" }),
      finished(third, null, retry(), "timeout")
    ])
    expect(yield* delivery(first.id)).toMatchObject({ state: "delivered", lastHttpStatus: 204, lastErrorCode: null })
    expect(yield* delivery(second.id)).toMatchObject({
      state: "failed",
      lastHttpStatus: 404,
      lastErrorCode: "http_error"
    })
    expect(yield* delivery(third.id)).toMatchObject({
      state: "queued",
      lastHttpStatus: null,
      lastErrorCode: "timeout"
    })
    expect(yield* attempts(third.id)).toMatchObject([{ number: 1, httpStatus: null, errorCode: "timeout" }])
    yield* queues[0].finish([])
  })
})

layer(QueueBench.layer)("the secrets of a delivery", (it) => {
  it.effect(
    "are read once for all deliveries that are bound to one that was erased, which the current one signs",
    function* () {
      const { makeEndpoint, queues, seed } = yield* emptyBench
      const endpoint = yield* makeEndpoint
      const gone = crypto.randomUUID()
      const [queue] = queues
      let reads = 0
      const destinations = new Destinations(
        {
          ...queue,
          destinations: (deliveries) => {
            reads += 1
            return queue.destinations(deliveries)
          }
        },
        openCipher
      )
      for (let count = 0; count < 3; count++) {
        yield* seed(endpoint, { secretIds: [gone] })
        const delivery = yield* claimOne(queue)
        yield* destinations.load([delivery])
        const signing = Either.map(destinations.of(delivery), ({ secrets }) => secrets.map(Redacted.value))
        expect(signing).toEqual(Either.right(["sealed"]))
      }
      expect(reads).toBe(1)
    }
  )

  it.effect("are missing where they are gone, and nothing goes out unsigned", function* () {
    const { makeEndpoint, queues, seed, sql } = yield* emptyBench
    const endpoint = yield* makeEndpoint
    yield* seed(endpoint)
    yield* sql`DELETE FROM payments.endpoint_secrets WHERE endpoint_id = ${endpoint.id}`
    const delivery = yield* claimOne(queues[0])
    const destinations = new Destinations(queues[0], openCipher)
    yield* destinations.load([delivery])
    const refused = Either.flip(destinations.of(delivery))
    expect(Either.getOrThrow(refused).message).toBe("The delivery's secrets are gone")
  })
})
