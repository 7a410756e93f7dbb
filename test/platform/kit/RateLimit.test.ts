import { randomUUID } from "node:crypto"
import { expect } from "@effect/vitest"
import { Context, Duration, Effect, Either, FastCheck } from "effect"
import type { RateLimitPolicy } from "../../../src/platform/kit/RateLimit.ts"
import { RateLimits } from "../../../src/platform/kit/RateLimit.ts"
import { inDatabase, onService, TestService } from "../../harness/TestService.ts"

/** So slow that the time a test takes gives nothing back. */
const slow: RateLimitPolicy = { limit: 6, per: Duration.hours(1) }

const limits = Effect.map(TestService, ({ services }) => Context.get(services, RateLimits))

/** Takes tokens as the service does, by its clock. */
const take = (bucket: string, policy = slow, cost = 1) =>
  Effect.flatMap(TestService, ({ clock, services }) =>
    Effect.withClock(Context.get(services, RateLimits).take(bucket, policy, cost), clock)
  )

const passes = (bucket: string, policy = slow, cost = 1) =>
  Effect.map(Effect.either(take(bucket, policy, cost)), Either.isRight)

const passedOf = (requests: number, bucket: string, policy = slow) =>
  Effect.map(
    Effect.all(Array.from({ length: requests }, () => passes(bucket, policy))),
    (answers) => answers.filter((passed) => passed).length
  )

const pass = (time: Duration.DurationInput) => Effect.flatMap(TestService, ({ passTime }) => passTime(time))

onService({ roles: { api: true, worker: false } })("a token bucket", (it) => {
  it.effect("neither gains nor loses by a clock that is set back", function* () {
    const behind = randomUUID()
    yield* passedOf(4, behind)
    yield* inDatabase`UPDATE payments.rate_limits SET refilled_at = now() + interval '1 hour' WHERE bucket = ${behind}`
    expect(yield* passedOf(9, behind)).toBe(2)
  })

  it.effect("counts right when all come at once", function* () {
    const bucket = randomUUID()
    const answers = yield* Effect.all(
      Array.from({ length: 60 }, () => passes(bucket, { limit: 25, per: Duration.hours(10) })),
      { concurrency: "unbounded" }
    )
    expect(answers.filter((passed) => passed)).toHaveLength(25)
  })

  it.effect("says after how many whole seconds there is a token, and keeps its word", function* () {
    const bucket = randomUUID()
    yield* passedOf(6, bucket)
    yield* pass("100 seconds")
    const { retryAfter } = yield* Effect.flip(take(bucket, slow)).pipe(
      Effect.filterOrDieMessage((error) => error._tag === "BucketEmpty", "refused otherwise")
    )
    const seconds = Duration.toSeconds(retryAfter)
    expect(seconds).toBeGreaterThan(495)
    expect(seconds).toBeLessThanOrEqual(500)
    yield* pass(Duration.seconds(seconds - 6))
    expect(yield* passes(bucket)).toBe(false)
    yield* pass(Duration.seconds(6))
    expect(yield* passes(bucket)).toBe(true)
  })

  it.effect("decides as its definition does, for any sequence of waits and requests", function* () {
    const service = yield* TestService
    const steps = FastCheck.array(FastCheck.record({ waitMinutes: FastCheck.nat(40), requests: FastCheck.nat(4) }), {
      maxLength: 8
    })
    yield* Effect.promise(() =>
      FastCheck.assert(
        FastCheck.asyncProperty(steps, (sequence) =>
          Effect.gen(function* () {
            const bucket = randomUUID()
            let tokens = 6
            for (const { requests, waitMinutes } of sequence) {
              yield* pass(Duration.minutes(waitMinutes))
              tokens = Math.min(6, tokens + waitMinutes / 10)
              const expected = Math.min(requests, Math.floor(tokens + 1e-6))
              expect(yield* passedOf(requests, bucket)).toBe(expected)
              tokens -= expected
            }
          }).pipe(Effect.provideService(TestService, service), Effect.runPromise)
        ),
        { numRuns: 40 }
      )
    )
  })

  it.effect("is forgotten only when it is full again", function* () {
    const { clean } = yield* limits
    const [rested, busy] = [randomUUID(), randomUUID()]
    const minute: RateLimitPolicy = { limit: 3, per: Duration.minutes(1) }
    const daily: RateLimitPolicy = { limit: 3, per: Duration.days(1) }
    const slowly = randomUUID()
    yield* passedOf(3, rested, minute)
    yield* passedOf(3, slowly, daily)
    yield* pass("61 minutes")
    yield* passedOf(3, busy, minute)
    yield* clean
    const left = yield* inDatabase<{ bucket: string }>`
        SELECT bucket FROM payments.rate_limits
        WHERE bucket LIKE ANY (${[rested, busy, slowly].map((name) => `%${name}`)}::text[]) ORDER BY bucket`
    expect(left.map(({ bucket }) => bucket)).toEqual([busy, `long:${slowly}`].toSorted())
    expect(yield* passes(busy, minute)).toBe(false)
    expect(yield* passes(slowly, daily)).toBe(false)
    yield* pass("25 hours")
    yield* clean
    const [rest] = yield* inDatabase`SELECT 1 FROM payments.rate_limits WHERE bucket = ${`long:${slowly}`}`
    expect(rest).toBeUndefined()
  })

  it.effect("takes any name and any limit there can be", function* () {
    for (const bucket of ["", "'; DROP TABLE payments.rate_limits; --", "ключ", "a".repeat(2000)]) {
      expect(yield* passes(`${randomUUID()}${bucket}`)).toBe(true)
    }
    expect(yield* passedOf(3, randomUUID(), { limit: 1, per: Duration.minutes(1) })).toBe(1)
    expect(yield* passedOf(3, randomUUID(), { limit: 100_000_000, per: Duration.minutes(1) })).toBe(3)
  })
})
