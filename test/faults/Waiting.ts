import { Effect } from "effect"
import { eventuallyIs } from "../harness/Eventually.ts"

/** `eventually` for a question to others, such as the database. */
export const eventuallyDone = <E, R>(what: string, isDone: Effect.Effect<boolean, E, R>, limitMillis = 60_000) =>
  Effect.orDie(eventuallyIs(what, isDone, (done) => done, limitMillis))

/** How long an effect took, in milliseconds. */
export const timed = <E, R>(effect: Effect.Effect<unknown, E, R>): Effect.Effect<number, E, R> =>
  Effect.suspend(() => {
    const startedAt = performance.now()
    return Effect.map(effect, () => performance.now() - startedAt)
  })
