import { SqlClient, SqlError } from "@effect/sql"
import { Effect } from "effect"
import type pg from "pg"

/**
 * Session settings that the service's statements need, whatever the defaults of the server, database or role: how
 * times, arrays and numbers are written, how string literals are read, and that a transaction reads what was committed
 * when it got its locks. Nothing depends on `search_path`, `TimeZone`, `IntervalStyle` or `bytea_output`.
 */
const needed = {
  DateStyle: "ISO",
  array_nulls: "on",
  extra_float_digits: "1",
  standard_conforming_strings: "on",
  default_transaction_isolation: "read committed"
} as const

/** JIT is off: PostgreSQL would compile for a second statements that run for a millisecond. This affects speed only. */
const settings = { ...needed, jit: "off" }

const assignments = Object.entries(settings).map(([name, value]) => `set_config('${name}', '${value}', false)`)

export const setSession = async (client: pg.ClientBase): Promise<void> => {
  await client.query(`SELECT ${assignments.join(", ")}`)
}

const refused = (message: string) => new SqlError.SqlError({ cause: new Error(message), message })

/**
 * Fails if connections lack the needed settings: behind a pooler that keeps no sessions, and in an embedding team's own
 * pool, they have the role's. Also fails if the database's encoding can't store all text.
 */
export const requireSession: Effect.Effect<void, SqlError.SqlError, SqlClient.SqlClient> = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const names = Object.keys(needed)
  const [found] = yield* sql<{ readonly encoding: string; readonly values: ReadonlyArray<string> }>`
    SELECT current_setting('server_encoding') AS encoding,
      (SELECT json_agg(current_setting(n.name) ORDER BY n.place)
       FROM json_array_elements_text(${JSON.stringify(names)}::json) WITH ORDINALITY AS n (name, place)) AS values`
  if (found === undefined) return yield* Effect.dieMessage("A SELECT without FROM has one row")
  if (found.encoding !== "UTF8") {
    return yield* refused(
      `The database's encoding is ${found.encoding}, which can't hold all text: it must be UTF8. Create another one with ENCODING 'UTF8' TEMPLATE template0.`
    )
  }
  for (const [place, [name, value]] of Object.entries(needed).entries()) {
    const actual = found.values[place] ?? ""
    // The order of day and month does not matter
    if (actual.split(",")[0] !== value) {
      return yield* refused(
        `The database's connections have ${name} = '${actual}', but the service needs '${value}': run ALTER ROLE … SET ${name} = '${value}', or remove the setting from the database.`
      )
    }
  }
})
