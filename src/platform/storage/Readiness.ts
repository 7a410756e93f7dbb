import type { SqlClient, SqlError } from "@effect/sql"
import { type Cause, Effect, Fiber, type Scope } from "effect"
import { ServiceUnavailable } from "../errors/Errors.ts"
import { reservedConnections } from "./Database.ts"

const patience = "2 seconds"

/**
 * Whether the database answers, over a separate connection, so that a full pool does not look like an unreachable
 * database. Only one query runs at a time, and all concurrent callers share its answer.
 *
 * @param options.session whether to bypass a connection pooler, as a worker's claims do
 */
export const makeReadiness = Effect.fnUntraced(function* ({
  session = false
}: {
  readonly session?: boolean
} = {}): Effect.fn.Return<Effect.Effect<void, ServiceUnavailable>, never, SqlClient.SqlClient | Scope.Scope> {
  const sql = yield* reservedConnections(1, { session })
  const scope = yield* Effect.scope
  const question = Effect.timeout(sql`SELECT 1`, patience)
  let asking: Fiber.RuntimeFiber<unknown, SqlError.SqlError | Cause.TimeoutException> | undefined
  // In the service's scope, since the first caller may be interrupted
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
