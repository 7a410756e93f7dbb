import { SqlClient, SqlError, type Statement } from "@effect/sql"
import { Effect, FiberRef, Option } from "effect"
import { DatabasePool, isInTransaction } from "./Database.ts"
import { databaseAttributes } from "./Schema.ts"

/** The values are those of its parameters, in order. */
export type PreparedStatement<Row> = (
  values: ReadonlyArray<unknown>
) => Effect.Effect<ReadonlyArray<Row>, SqlError.SqlError>

type Execute = <Row extends object>(
  text: string,
  values: ReadonlyArray<unknown>
) => Effect.Effect<ReadonlyArray<Row>, SqlError.SqlError>

/**
 * Runs straight on the pool if that is ours and the fiber is not inside a transaction: this saves two thirds of the CPU
 * time of a `SqlClient` statement. Otherwise like any other statement. A traced one has the same span either way. An
 * interrupted statement is left to finish: statements are short, and bounded by the statement timeout.
 */
const makeExecute: Effect.Effect<Execute, never, SqlClient.SqlClient> = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const pool = yield* Effect.serviceOption(DatabasePool)
  const attributes = yield* databaseAttributes
  const asUsual: Execute = <Row extends object>(text: string, values: ReadonlyArray<unknown>) =>
    sql.unsafe<Row>(text, values)
  return Option.match(pool, {
    onNone: () => asUsual,
    onSome:
      (pool): Execute =>
      <Row extends object>(text: string, values: ReadonlyArray<unknown>) =>
        Effect.withFiberRuntime<ReadonlyArray<Row>, SqlError.SqlError>((fiber) => {
          if (isInTransaction(fiber)) return asUsual<Row>(text, values)
          const statement = direct<Row>(pool, text, values)
          return fiber.getFiberRef(FiberRef.currentTracerEnabled)
            ? Effect.withSpan(statement, "sql.execute", {
                kind: "client",
                captureStackTrace: false,
                attributes: { ...attributes, "db.query.text": text }
              })
            : statement
        })
  })
})

/** Prepares statements that every request runs, each straight on the pool if possible. */
export const makePreparing: Effect.Effect<
  <Row extends object>(statement: Statement.Fragment) => PreparedStatement<Row>,
  never,
  SqlClient.SqlClient
> = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const execute = yield* makeExecute
  return <Row extends object>(statement: Statement.Fragment): PreparedStatement<Row> => {
    const [text] = sql`${statement}`.compile()
    return (values) => execute<Row>(text, values)
  }
})

/** There are few: the bound only guards against a mistake. */
const maxKnownTexts = 200
const knownTexts = new Map<string, string>()

/** Runs a statement that was built for one use. */
export type RunStatement = <Row extends object>(
  statement: Statement.Statement<Row>
) => Effect.Effect<ReadonlyArray<Row>, SqlError.SqlError>

/**
 * Runs statements that are built each time, straight on the pool if possible, and reuses the first string with the same
 * text. A statement that waited for an answer keeps its text until the next major garbage collection; a new string of
 * kilobytes for each would bring that forward.
 */
export const makeRunning: Effect.Effect<RunStatement, never, SqlClient.SqlClient> = Effect.map(
  makeExecute,
  (execute): RunStatement =>
    <Row extends object>(statement: Statement.Statement<Row>) => {
      const [text, values] = statement.compile()
      const known = knownTexts.get(text)
      if (known === undefined && knownTexts.size < maxKnownTexts) knownTexts.set(text, text)
      return execute<Row>(known ?? text, values)
    }
)

/** Named parameters: each may appear in several places of the statement, and is sent once. */
export const parametersOf = <const Name extends string>(
  sql: SqlClient.SqlClient,
  names: ReadonlyArray<Name>
): Readonly<Record<Name, Statement.Fragment>> =>
  // The names are the keys; the type of `fromEntries` loses that
  Object.fromEntries(names.map((name, index) => [name, sql.literal(`$${index + 1}`)])) as Record<
    Name,
    Statement.Fragment
  >

const direct = <Row extends object>(pool: DatabasePool["Type"], text: string, values: ReadonlyArray<unknown>) =>
  Effect.async<ReadonlyArray<Row>, SqlError.SqlError>((resume) => {
    pool.query<Row>(text, [...values], (cause, result) =>
      resume(
        cause === null || cause === undefined
          ? Effect.succeed(result.rows)
          : Effect.fail(new SqlError.SqlError({ cause, message: "Failed to execute statement" }))
      )
    )
  })
