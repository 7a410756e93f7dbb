import { Duration, Effect, FastCheck as fc } from "effect"
import {
  type AttemptErrorCode,
  maxAbandoned,
  maxAttempts,
  maxAutomaticAttempts,
  nextStep
} from "../../src/engine/attempts/Outcome.ts"
import type { ClaimedDelivery } from "../../src/engine/queue/Claim.ts"
import { enqueue } from "../../src/engine/queue/Enqueue.ts"
import { casesOf } from "../harness/Corpus.ts"
import { expect, layer } from "../harness/Tests.ts"
import { claimFrom, idle, QueueBench, unconfirm } from "./QueueBench.ts"

/** What a consumer may answer, or fail to. */
const answers = {
  accepted: { httpStatus: 204, errorCode: null },
  refused: { httpStatus: 404, errorCode: "http_error" },
  busy: { httpStatus: 503, errorCode: "http_error" },
  silent: { httpStatus: null, errorCode: "timeout" }
} satisfies Record<string, { httpStatus: number | null; errorCode: AttemptErrorCode | null }>

/** What happens to a queue. `of` and `claim` are indexes into what there is then, taken modulo its number. */
type Happening =
  | {
      readonly do: "claim"
      readonly worker: 0 | 1 /** Of the answer, before it confirms it. */
      readonly dies: boolean
    }
  | { readonly do: "elapse"; readonly of: number }
  | { readonly do: "finish"; readonly claim: number; readonly answer: keyof typeof answers }
  | { readonly do: "release"; readonly claim: number }
  | { readonly do: "resend"; readonly of: number }

const worker = fc.constantFrom(0 as const, 1 as const)
const happening: fc.Arbitrary<Happening> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ do: fc.constant("claim" as const), worker, dies: fc.boolean() }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constant("elapse" as const), of: fc.nat(5) }) },
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constant("finish" as const),
      claim: fc.nat(20),
      answer: fc.constantFrom(...(["accepted", "refused", "busy", "silent"] as const))
    })
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("release" as const), claim: fc.nat(20) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("resend" as const), of: fc.nat(5) }) }
)

interface Modelled {
  state: "queued" | "delivered" | "failed"
  trigger: "automatic" | "manual"
  count: number
  abandoned: number
  lease: string | null
  /** Whether the worker that holds the lease has confirmed its claim. */
  confirmed: boolean
  due: boolean
  /** By number: who asked for it, and its error code, null for a success. */
  readonly attempts: Map<number, readonly [trigger: string, errorCode: string | null]>
}

const queued = (): Modelled => ({
  state: "queued",
  trigger: "automatic",
  count: 0,
  abandoned: 0,
  lease: null,
  confirmed: true,
  due: true,
  attempts: new Map()
})

/**
 * What a claim makes of a due delivery (contract 9.1): a new attempt, none because two workers or more have died that claimed
 * it, so that it rests for now, or none that is left.
 */
const claimInModel = (delivery: Modelled): boolean => {
  delivery.due = false
  if (delivery.lease !== null) {
    delivery.abandoned += 1
    const isUsedUp = delivery.abandoned === 6 || (delivery.confirmed && delivery.count === 12)
    if (!delivery.confirmed && !isUsedUp) delivery.count -= 1
    else if (!delivery.attempts.has(delivery.count)) {
      delivery.attempts.set(delivery.count, [delivery.trigger, "interrupted"])
    }
    if (isUsedUp) delivery.state = "failed"
    if (isUsedUp || delivery.abandoned > 1) delivery.lease = null
    if (delivery.lease === null) return false
  }
  delivery.count += 1
  return true
}

layer(QueueBench.layer)("the queue", (it) => {
  it.effect("moves deliveries as the contract says, whatever workers do, lose and forget", function* () {
    const { makeEndpoint, queues, reset, seed, sql } = yield* QueueBench

    const run = Effect.fnUntraced(function* (happenings: ReadonlyArray<Happening>) {
      yield* reset
      const ids = [...(yield* seed(yield* makeEndpoint, { count: 2 })), ...(yield* seed(yield* makeEndpoint))]
      const model = new Map(ids.map((id) => [id, queued()]))
      const pick = <A>(from: ReadonlyArray<A>, index: number) => from[index % Math.max(1, from.length)]
      let held: ReadonlyArray<ClaimedDelivery> = []
      /** Those of which an abandoned attempt's outcome came to be known. */
      const hasLate = new Set<Modelled["attempts"]>()
      const drop = (claim: ClaimedDelivery) => {
        held = held.filter((one) => one !== claim)
      }

      const claim = Effect.fnUntraced(function* (index: 0 | 1, dies: boolean) {
        const claimed = yield* claimFrom(queues[index], idle)
        const expected = [...model].filter(([, delivery]) => delivery.due && claimInModel(delivery))
        expect(claimed.map(({ attempt, id, trigger }) => [id, attempt, trigger]).sort()).toEqual(
          expected.map(([id, { count, trigger }]) => [id, count, trigger]).sort()
        )
        for (const one of claimed) {
          const delivery = model.get(one.id)
          if (delivery !== undefined) Object.assign(delivery, { lease: one.lease, confirmed: !dies })
        }
        if (dies) yield* unconfirm(sql, claimed)
        else held = [...held, ...claimed]
      })

      const finish = Effect.fnUntraced(function* (one: ClaimedDelivery, answer: keyof typeof answers) {
        const outcome = { ...answers[answer], durationMs: 1, retryAfter: null }
        const next = yield* nextStep(one, outcome)
        yield* queues[0].finish([{ delivery: one, startedAt: Date.now(), outcome, next }])
        drop(one)
        const delivery = model.get(one.id)
        if (delivery === undefined) return
        const known = delivery.attempts.get(one.attempt)
        if (known === undefined || known[1] === "interrupted") {
          delivery.attempts.set(one.attempt, [one.trigger, outcome.errorCode])
        }
        if (delivery.lease === one.lease) {
          delivery.state = next.state
          delivery.lease = null
          delivery.due = false
        } else if (known === undefined || known[1] === "interrupted") {
          hasLate.add(delivery.attempts)
          // Late, but the consumer has it: it is not sent again, and what is under way changes nothing
          if (answer === "accepted") {
            if (delivery.state === "queued") delivery.count = Math.max(...delivery.attempts.keys())
            Object.assign(delivery, { state: "delivered", lease: null, due: false })
          }
        }
        // Its outcome is listed, whatever became of the delivery meanwhile
        if (delivery.state !== "queued") delivery.count = Math.max(delivery.count, one.attempt)
      })

      const release = Effect.fnUntraced(function* (one: ClaimedDelivery) {
        yield* queues[1].release([one], Duration.minutes(1))
        drop(one)
        const delivery = model.get(one.id)
        if (delivery?.lease !== one.lease) return
        delivery.count -= 1
        delivery.lease = null
        delivery.due = false
      })

      const elapse = Effect.fnUntraced(function* (id: string) {
        yield* sql`
              UPDATE payments.delivery_queue SET next_attempt_at = now() - interval '1 millisecond',
                leased_until = CASE WHEN lease IS NOT NULL THEN now() - interval '1 millisecond' END
              WHERE id = ${id}`
        const delivery = [...model].find(([known]) => known === id)?.[1]
        if (delivery?.state === "queued") delivery.due = true
      })

      const resend = Effect.fnUntraced(function* (id: string) {
        const delivery = [...model].find(([known]) => known === id)?.[1]
        if (delivery === undefined || delivery.state !== "failed" || delivery.count >= maxAttempts) return
        yield* sql`
              WITH requeued AS (
                UPDATE payments.deliveries SET state = 'queued', finished_at = NULL
                WHERE id = ${id} AND state = 'failed' RETURNING *
              ) ${enqueue(sql, "requeued", "manual")}`
        Object.assign(delivery, { state: "queued", trigger: "manual", abandoned: 0, due: true })
      })

      const perform = (what: Happening): Effect.Effect<void, unknown> => {
        switch (what.do) {
          case "claim":
            return claim(what.worker, what.dies)
          case "elapse":
          case "resend": {
            const id = pick(ids, what.of)
            return id === undefined ? Effect.void : what.do === "elapse" ? elapse(id) : resend(id)
          }
          case "finish":
          case "release": {
            const one = pick(held, what.claim)
            if (one === undefined) return Effect.void
            return what.do === "finish" ? finish(one, what.answer) : release(one)
          }
        }
      }

      const stored = sql<{ id: string; attempts: ReadonlyArray<readonly [number, string, string | null]> }>`
            SELECT d.id, d.state, COALESCE(q.attempt_count, d.attempt_count) AS count, q.lease, COALESCE((
              SELECT json_agg(json_build_array(a.number, a.trigger, a.error_code) ORDER BY a.number)
              FROM unnest(d.attempts) a WHERE a.number IS NOT NULL), '[]') AS attempts
            FROM payments.deliveries d LEFT JOIN payments.delivery_queue q USING (organization_id, environment, id)
            WHERE (d.state = 'queued') = (q.id IS NOT NULL) ORDER BY d.id`

      for (const what of happenings) {
        yield* perform(what)
        expect(yield* stored).toEqual(
          [...model]
            .map(([id, { attempts, count, lease, state }]) => ({
              id,
              state,
              count,
              lease,
              attempts: [...attempts].sort(([a], [b]) => a - b).map(([number, rest]) => [number, ...rest])
            }))
            .sort((a, b) => (a.id < b.id ? -1 : 1))
        )
        for (const { attempts, state } of model.values()) {
          const automatic = [...attempts.values()].filter(
            ([trigger, errorCode]) => trigger === "automatic" && errorCode !== "interrupted"
          )
          // Of abandoned ones the outcome may come to be known later: they took none of the six
          expect(automatic.length).toBeLessThanOrEqual(maxAutomaticAttempts + maxAbandoned - 1)
          if (!hasLate.has(attempts)) expect(automatic.length).toBeLessThanOrEqual(maxAutomaticAttempts)
          expect(state === "delivered").toBe([...attempts.values()].some(([, errorCode]) => errorCode === null))
          expect(attempts.size).toBeLessThanOrEqual(maxAttempts)
        }
      }
    })

    yield* Effect.promise(() =>
      fc.assert(
        fc.asyncProperty(fc.array(happening, { minLength: 5, maxLength: 60, size: "max" }), (happenings) =>
          Effect.runPromise(run(happenings))
        ),
        { numRuns: casesOf(25), endOnFailure: false, interruptAfterTimeLimit: 40_000 }
      )
    )
  })
})
