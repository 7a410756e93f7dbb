import type { SqlClient, SqlError } from "@effect/sql"
import { type Cause, Effect, Fiber, Schedule, type Scope } from "effect"
import { ServiceUnavailable } from "../errors/Errors.ts"
import { ClockSkew, compareClock } from "../telemetry/ClockSkew.ts"
import { reservedConnections } from "./Database.ts"

const queryTimeout = "2 seconds"

/** How often the database is asked for its time, even if nobody asks whether the process is ready. */
const comparesEvery = "30 seconds"

/**
 * Whether the database answers and this process's clock is right. Asks over a separate connection, so that a full pool
 * does not look like an unreachable database. Only one query runs at a time, and all concurrent callers share its answer.
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
  const clock = yield* ClockSkew
  const question = sql<{
    readonly now: number
  }>`SELECT extract(epoch FROM clock_timestamp())::float8 * 1000 AS now`.pipe(
    Effect.timeout(queryTimeout),
    Effect.tap(([row]) => (row === undefined ? Effect.void : compareClock("database", row.now)))
  )
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
  const ready = Effect.suspend(() => (asking === undefined ? ask : Effect.succeed(asking))).pipe(
    Effect.flatMap(Fiber.join),
    Effect.mapError((cause) => new ServiceUnavailable({ cause })),
    Effect.filterOrFail(
      () => clock.unfit === undefined,
      () => new ServiceUnavailable({ message: clock.unfit ?? "" })
    ),
    Effect.asVoid
  )
  yield* ready.pipe(Effect.ignore, Effect.repeat(Schedule.spaced(comparesEvery)), Effect.forkScoped)
  return ready
})
