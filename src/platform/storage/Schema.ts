import * as Reactivity from "@effect/experimental/Reactivity"
import { SqlClient, SqlError, type Statement } from "@effect/sql"
import type { Connection } from "@effect/sql/SqlConnection"
import { PgClient } from "@effect/sql-pg"
import { Effect, Layer, Option } from "effect"
import { isSchemaName, schemaNames } from "../settings/DatabaseUrl.ts"

/**
 * The schema of the service's tables. All statements say `payments`, quoted or before a dot; a client made for another
 * schema puts that name in its place when it compiles them. They don't depend on `search_path`, which would have to be set
 * on the connections: those of an embedding team, or of a pooler, are not the service's alone.
 */
const written = /"payments"|\bpayments(?=\.)/g

/** The name of the schema that this client's statements use. */
export const schemaOf = (sql: SqlClient.SqlClient): string => sql`"payments"`.compile()[0].slice(1, -1)

/** SQL: an advisory lock's key, other schemas of the same database have others. */
export const lockKey = (key: number): string => `hashtextextended('"payments"', ${key})`

/** The database's attributes on the spans of statements. */
export const databaseAttributes: Effect.Effect<Readonly<Record<string, unknown>>> = Effect.map(
  Effect.serviceOption(PgClient.PgClient),
  Option.match({
    onNone: () => ({}),
    onSome: ({ config: { database, host, port, username } }) => ({
      "db.system.name": "postgresql",
      "db.namespace": database ?? username ?? "postgres",
      "server.address": host ?? "localhost",
      "server.port": port ?? 5432
    })
  })
)

/** A connection of the client's own choice for each statement: a caller who leaves while waiting for it leaves none taken. */
const through = (sql: SqlClient.SqlClient): Connection => {
  // The statement has a span of its own
  const ask = (text: string, values: ReadonlyArray<unknown>) =>
    Effect.withTracerEnabled(sql.unsafe(text, values), false)
  return {
    execute: ask,
    executeUnprepared: ask,
    executeRaw: (text, values) => sql.unsafe(text, values).raw,
    executeStream: (text, values) => sql.unsafe(text, values).stream,
    executeValues: (text, values) => sql.unsafe(text, values).values
  }
}

/** The client with statements for this schema, without transforms of names; the same client if it is the default one. */
export const inSchema = (
  sql: SqlClient.SqlClient,
  schema: string
): Effect.Effect<SqlClient.SqlClient, SqlError.SqlError> =>
  Effect.gen(function* () {
    if (schema === schemaOf(sql)) return sql
    if (!isSchemaName(schema)) {
      const message = `The schema ${JSON.stringify(schema)} can't be used: its name ${schemaNames}`
      return yield* new SqlError.SqlError({ cause: new Error(message), message })
    }
    const plain = PgClient.makeCompiler()
    const compiler: Statement.Compiler = {
      dialect: plain.dialect,
      compile: (statement) => {
        const [text, values] = plain.compile(statement, true)
        return [text.replaceAll(written, `"${schema}"`), values]
      },
      get withoutTransform() {
        return this
      }
    }
    return yield* SqlClient.make({
      acquirer: Effect.succeed(through(sql)),
      transactionAcquirer: sql.reserve,
      compiler,
      spanAttributes: Object.entries(yield* databaseAttributes)
    }).pipe(Effect.provideServiceEffect(Reactivity.Reactivity, Reactivity.make))
  })

/** The given client with the tables in this schema of its database, for layers that are used alone. */
export const schemaLayer = (schema: string): Layer.Layer<SqlClient.SqlClient, SqlError.SqlError, SqlClient.SqlClient> =>
  Layer.effect(
    SqlClient.SqlClient,
    Effect.flatMap(SqlClient.SqlClient, (sql) => inSchema(sql.withoutTransforms(), schema))
  )
