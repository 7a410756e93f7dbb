import type { SqlClient, Statement } from "@effect/sql"
import { Effect, Predicate } from "effect"

/** How many rows the scans of a plan have read from tables and indexes, kept or not. */
const rowsReadIn = (plan: unknown): number => {
  if (Array.isArray(plan)) return plan.reduce((sum: number, part) => sum + rowsReadIn(part), 0)
  if (!Predicate.isRecord(plan)) return 0
  const number = (name: string) => Number(plan[name] ?? 0)
  const type = String(plan["Node Type"] ?? "")
  // Scans of what the statement itself has made read nothing
  const reads = type.endsWith("Scan") && !/^(?:CTE|Subquery|Function|Values|Bitmap Index)/.test(type)
  const own = reads
    ? (number("Actual Rows") + number("Rows Removed by Filter") + number("Rows Removed by Index Recheck")) *
      number("Actual Loops")
    : 0
  return own + rowsReadIn(plan["Plan"]) + rowsReadIn(plan["Plans"])
}

const indexesIn = (plan: unknown): ReadonlyArray<string> =>
  [...JSON.stringify(plan).matchAll(/"Index Name":"([^"]+)"/g)].flatMap(([, name]) => name ?? [])

/** Runs a statement, and answers how many rows it has read from tables and indexes, and along which of these. */
export const readBy = (sql: SqlClient.SqlClient, statement: Statement.Fragment) =>
  Effect.map(sql<{ "QUERY PLAN": unknown }>`EXPLAIN (ANALYZE, FORMAT JSON) ${statement}`, ([row]) => ({
    rows: rowsReadIn(row?.["QUERY PLAN"]),
    indexes: indexesIn(row?.["QUERY PLAN"])
  }))

/** The lines of the plan that this connection keeps of a prepared statement, found by a part of its text. */
export const keptPlan = (sql: SqlClient.SqlClient, part: string) =>
  Effect.gen(function* () {
    const [statement] = yield* sql<{ readonly name: string; readonly types: ReadonlyArray<string> }>`
      SELECT name, parameter_types::text[] AS types FROM pg_prepared_statements WHERE statement LIKE ${`%${part}%`}`
    const values = (statement?.types ?? []).map((type) => (type.endsWith("[]") ? "'{}'" : "NULL")).join(", ")
    const plan = yield* sql.unsafe<{ readonly "QUERY PLAN": string }>(
      `EXPLAIN (COSTS OFF) EXECUTE "${statement?.name}" (${values})`
    )
    return plan.map((line) => line["QUERY PLAN"].trim())
  })
