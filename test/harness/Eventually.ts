import { Clock, Data, Effect, Fiber, Option, Schedule } from "effect"

export class NeverHappened extends Data.TaggedError("NeverHappened")<{ readonly message: string }> {}

/** The pauses between looks, in milliseconds: short at first, and longer when it takes long anyway, since looks cost too. */
const firstPause = 20
const longestPause = 250
const growth = 1.15

/**
 * Looks again, in real time, until a look finds something. Fails after the limit, by default shortly before a test's own:
 * that is the only thing that time decides in a test.
 */
export const eventually = <A, E, R>(
  what: string,
  look: Effect.Effect<Option.Option<A>, E, R>,
  limitMillis = 50_000
): Effect.Effect<A, E | NeverHappened, R> =>
  Effect.gen(function* () {
    const startedAt = Date.now()
    for (let pause = firstPause; Date.now() - startedAt < limitMillis; pause = Math.min(growth * pause, longestPause)) {
      const found = yield* look
      if (Option.isSome(found)) {
        return found.value
      }
      yield* Effect.sleep(pause)
    }
    return yield* new NeverHappened({ message: `${what}: not within ${limitMillis} ms` })
  }).pipe(Effect.withClock(Clock.make()))

export const eventuallyIs = <A, E, R>(
  what: string,
  look: Effect.Effect<A, E, R>,
  isExpected: (found: A) => boolean,
  limitMillis?: number
) => eventually(what, Effect.map(look, Option.liftPredicate(isExpected)), limitMillis)

/** `eventuallyIs` for a condition on values that others change. */
export const eventuallyTrue = (what: string, condition: () => boolean, limitMillis?: number) =>
  eventuallyIs(what, Effect.sync(condition), (holds) => holds, limitMillis)

export const eventuallyDone = <E, R>(what: string, isDone: Effect.Effect<boolean, E, R>, limitMillis = 60_000) =>
  Effect.orDie(eventuallyIs(what, isDone, (done) => done, limitMillis))

/** Does something ten times a second for as long as a fiber runs, and returns what that ends with. */
export const whileRunning = <A, E, E1, R>(fiber: Fiber.Fiber<A, E>, work: Effect.Effect<unknown, E1, R>) =>
  Effect.zipRight(work, Fiber.poll(fiber)).pipe(
    Effect.repeat({ until: Option.isSome, schedule: Schedule.spaced("100 millis") }),
    Effect.zipRight(Fiber.join(fiber))
  )
