import { SqlClient } from "@effect/sql"
import { Duration, Effect, FastCheck as fc, Option } from "effect"
import { makeDeliveriesRepo } from "../../src/destinations/deliveries/DeliveriesRepo.ts"
import {
  type AttemptErrorCode,
  automaticDelays,
  jitter,
  nextStep,
  resendRefusal
} from "../../src/engine/attempts/Outcome.ts"
import { casesOf } from "../harness/Corpus.ts"
import { expect, layer } from "../harness/Tests.ts"
import { idle, QueueBench } from "./QueueBench.ts"

/** What a consumer may answer, or fail to. */
const answers = {
  accepted: { httpStatus: 204, errorCode: null },
  refused: { httpStatus: 410, errorCode: "http_error" },
  redirected: { httpStatus: 302, errorCode: "redirect_refused" },
  busy: { httpStatus: 503, errorCode: "http_error" },
  limited: { httpStatus: 429, errorCode: "http_error" },
  silent: { httpStatus: null, errorCode: "timeout" }
} satisfies Record<string, { httpStatus: number | null; errorCode: AttemptErrorCode | null }>
type Answer = keyof typeof answers

type Happening =
  | { readonly do: "attempt"; readonly answer: Answer }
  | { readonly do: "crash" }
  | { readonly do: "resend" }
  | { readonly do: "hours"; readonly pass: number }
  | { readonly do: "delete" }

const happening: fc.Arbitrary<Happening> = fc.oneof(
  {
    weight: 12,
    arbitrary: fc.record({
      do: fc.constant("attempt" as const),
      // Mostly what is retried: deliveries should get old
      answer: fc.constantFrom<Answer>(
        "busy",
        "silent",
        "limited",
        "busy",
        "silent",
        "refused",
        "redirected",
        "accepted"
      )
    })
  },
  { weight: 4, arbitrary: fc.constant({ do: "crash" as const }) },
  { weight: 8, arbitrary: fc.constant({ do: "resend" as const }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant("hours" as const), pass: fc.integer({ min: 1, max: 30 }) }) },
  { weight: 1, arbitrary: fc.constant({ do: "delete" as const }) }
)
const lives = fc.array(happening, { minLength: 5, maxLength: 40, size: "max" })

/** The contract's table, in the words of who reads it: apart from the code under test, its numbers included. */
class Contract {
  state: "queued" | "delivered" | "failed" = "queued"
  automatic = 0
  manual = 0
  /** Attempts whose worker died: in all, and since it was queued. */
  interrupted = 0
  abandoned = 0
  hours = 0
  deleted = false
  resent = false

  get attempts() {
    return this.automatic + this.manual + this.interrupted
  }

  /** One attempt, which ends so; nothing where none is due. */
  attempt(ends: "2xx" | "may pass" | "definitive"): boolean {
    if (this.state !== "queued") return false
    if (this.resent) this.manual += 1
    else this.automatic += 1
    const again = ends === "may pass" && !this.resent && this.automatic < 6
    this.state = ends === "2xx" ? "delivered" : again ? "queued" : "failed"
    return true
  }

  /** A worker dies during an attempt; nothing if none is due. */
  crash(): boolean {
    if (this.state !== "queued") return false
    this.interrupted += 1
    this.abandoned += 1
    this.state = this.abandoned < 6 && this.attempts < 12 ? "queued" : "failed"
    return true
  }

  /** Null if it is queued again, otherwise the refusal's code. */
  resend(): string | null {
    if (this.state !== "failed") return "delivery_not_failed"
    if (this.deleted) return "endpoint_deleted"
    if (this.attempts >= 12) return "delivery_retry_limit_reached"
    if (this.hours >= 72) return "delivery_window_expired" // Real time has passed, too
    this.state = "queued"
    this.resent = true
    this.abandoned = 0
    return null
  }

  delete() {
    if (this.deleted) return
    this.deleted = true
    if (this.state === "queued") this.state = "failed"
  }

  static end(answer: Answer): "2xx" | "may pass" | "definitive" {
    if (answer === "accepted") return "2xx"
    return answer === "refused" || answer === "redirected" ? "definitive" : "may pass"
  }
}

const refusalCode = (refusal: ReturnType<typeof resendRefusal>) =>
  Option.match(refusal, { onNone: () => null, onSome: ({ code }) => code })

layer(QueueBench.layer)("the queue and the re-send", (it) => {
  it.effect("do what the contract says, for any life of a delivery, and never make two attempts at once", function* () {
    const { attempts, delivery, elapse, makeEndpoint, queues, reset, seed, sql } = yield* QueueBench
    const repo = yield* Effect.provideService(makeDeliveriesRepo(Duration.days(30)), SqlClient.SqlClient, sql)

    const run = Effect.fnUntraced(function* (happenings: ReadonlyArray<Happening>) {
      yield* reset
      const endpoint = yield* makeEndpoint
      const [id] = yield* seed(endpoint)
      if (id === undefined) return yield* Effect.dieMessage("nothing was stored")
      const contract = new Contract()

      const claim = Effect.gen(function* () {
        yield* elapse([id])
        const claims = yield* Effect.forEach([0, 1, 0, 1] as const, (n) => queues[n].claim(idle), {
          concurrency: 4
        })
        const [claimed, ...others] = claims.flatMap(({ deliveries }) => deliveries)
        expect(others).toEqual([])
        return claimed
      })

      const attempt = Effect.fnUntraced(function* (answer: Answer) {
        const due = contract.attempt(Contract.end(answer))
        const claimed = yield* claim
        expect(claimed !== undefined).toBe(due)
        if (claimed === undefined) return
        const outcome = { ...answers[answer], durationMs: 1, retryAfter: null }
        const next = yield* nextStep(claimed, outcome)
        yield* queues[0].finish([{ delivery: claimed, startedAt: Date.now(), outcome, next }])
      })

      /** The worker dies during the attempt: the next claim finds out, and makes the attempt after it, or lets it rest. */
      const crash = Effect.gen(function* () {
        const due = contract.crash()
        const claimed = yield* claim
        expect(claimed !== undefined).toBe(due)
        if (claimed === undefined) return
        const next = yield* claim
        expect(next !== undefined).toBe(contract.state === "queued" && contract.abandoned === 1)
        if (next !== undefined) yield* queues[1].release([next], Duration.minutes(1))
        else if (contract.state === "queued") {
          const { dueIn } = yield* delivery(id)
          const usual = Duration.toSeconds(automaticDelays[contract.abandoned - 1] ?? 0)
          expect(dueIn).toBeGreaterThan(usual * jitter.min - 5)
          expect(dueIn).toBeLessThan(usual * jitter.max + 5)
        }
      })

      const resend = Effect.gen(function* () {
        const outcomes = yield* Effect.forEach([1, 2, 3], () => repo.resend(endpoint, id), { concurrency: 3 })
        const answered = outcomes.flatMap(Option.toArray)
        const expected = contract.resend()
        expect(answered.filter(({ requeued }) => requeued)).toHaveLength(expected === null ? 1 : 0)
        for (const { requeued, ...was } of answered) {
          const code = expected === null && !requeued ? "delivery_not_failed" : expected
          if (requeued) expect(refusalCode(resendRefusal(was))).toBeNull()
          else expect(refusalCode(resendRefusal(was))).toBe(code)
        }
      })

      const pass = (hours: number) =>
        Effect.suspend(() => {
          contract.hours += hours
          return sql`
                WITH queued AS (
                  UPDATE payments.delivery_queue SET created_at = created_at - ${hours} * interval '1 hour'
                  WHERE id = ${id}
                )
                UPDATE payments.deliveries SET created_at = created_at - ${hours} * interval '1 hour' WHERE id = ${id}`
        })

      const remove = Effect.suspend(() => {
        contract.delete()
        return sql`UPDATE payments.endpoints SET deleted_at = now() WHERE id = ${endpoint.id}`.pipe(
          Effect.zipRight(sql`
                WITH gone AS (DELETE FROM payments.delivery_queue WHERE id = ${id} RETURNING id, attempt_count)
                UPDATE payments.deliveries d SET state = 'failed', finished_at = now(),
                  attempt_count = gone.attempt_count, last_error_code = 'endpoint_deleted'
                FROM gone WHERE d.id = gone.id`)
        )
      })

      const perform = (what: Happening): Effect.Effect<unknown, unknown> => {
        switch (what.do) {
          case "attempt":
            return attempt(what.answer)
          case "crash":
            return crash
          case "resend":
            return resend
          case "hours":
            return pass(what.pass)
          case "delete":
            return remove
        }
      }

      for (const what of happenings) {
        yield* perform(what)
        expect(yield* delivery(id)).toMatchObject({ state: contract.state, attemptCount: contract.attempts })
      }
      const history = yield* attempts(id)
      expect(history.map(({ number }) => number)).toEqual(
        Array.from({ length: contract.attempts }, (_, index) => index + 1)
      )
      const made = history.filter(({ errorCode }) => errorCode !== "interrupted")
      expect(made.filter(({ trigger }) => trigger === "automatic")).toHaveLength(contract.automatic)
    })

    yield* Effect.promise(() =>
      fc.assert(
        fc.asyncProperty(lives, (happenings) => Effect.runPromise(run(happenings))),
        { numRuns: casesOf(50), endOnFailure: false, interruptAfterTimeLimit: 40_000 }
      )
    )
  })
})
