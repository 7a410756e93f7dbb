import type { SqlClient, SqlError } from "@effect/sql"
import { type Cause, Effect, Fiber, type Scope } from "effect"
import { ServiceUnavailable } from "../errors/Errors.ts"
import { reservedConnections } from "./Database.ts"

/** How long the database may take to answer a question that costs it nothing. */
const patience = "2 seconds"

/**
 * Whether the database answers, over a connection of its own: requests that fill the pool don't make a process look as if
 * its database were away. However many ask at once, there is one question at a time, whose answer is theirs.
 */
export const makeReadiness: Effect.Effect<
  Effect.Effect<void, ServiceUnavailable>,
  never,
  SqlClient.SqlClient | Scope.Scope
> = Effect.gen(function* () {
  const sql = yield* reservedConnections(1)
  const scope = yield* Effect.scope
  const question = Effect.timeout(sql`SELECT 1`, patience)
  let asking: Fiber.RuntimeFiber<unknown, SqlError.SqlError | Cause.TimeoutException> | undefined
  // In the scope of the service: whoever asked first may go away
  const ask = Effect.tap(Effect.forkIn(question, scope), (fiber) =>
    Effect.sync(() => {
      asking = fiber
      fiber.addObserver(() => {
        asking = undefined
      })
    })
  )
  return Effect.suspend(() => (asking === undefined ? ask : Effect.succeed(asking))).pipe(
    Effect.flatMap(Fiber.join),
    Effect.mapError((cause) => new ServiceUnavailable({ cause })),
    Effect.asVoid
  )
})
