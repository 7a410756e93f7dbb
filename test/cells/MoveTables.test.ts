import { SqlClient } from "@effect/sql"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { cellWideTables, copiedAhead, movedTables } from "../../src/cells/move/MoveTables.ts"
import { databaseLayer } from "../../src/storage/Database.ts"
import { createMigratedDatabase } from "../harness/TestDatabase.ts"

const onSchema = <A, E>(look: Effect.Effect<A, E, SqlClient.SqlClient>) =>
  Effect.scoped(
    Effect.gen(function* () {
      const { url } = yield* createMigratedDatabase
      return yield* Effect.provide(look, Layer.orDie(databaseLayer({ url, poolSize: 1 })))
    })
  )

interface Table {
  readonly name: string
  readonly columns: ReadonlyArray<string>
  /** The columns that identify a row in the log; null if that is the whole row. */
  readonly identity: ReadonlyArray<string> | null
  /** Tables that its rows refer to. */
  readonly parents: ReadonlyArray<string>
}

const catalog = Effect.flatMap(
  SqlClient.SqlClient,
  (sql) => sql<Table>`
    SELECT c.relname AS name,
      ARRAY(SELECT attname::text FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped) AS columns,
      CASE WHEN c.relreplident = 'f' THEN NULL ELSE ARRAY(SELECT attname::text FROM pg_index i JOIN pg_attribute a
        ON a.attrelid = c.oid AND a.attnum = ANY (i.indkey) WHERE i.indrelid = c.oid AND i.indisprimary) END AS identity,
      ARRAY(SELECT f.relname::text FROM pg_constraint k JOIN pg_class f ON f.oid = k.confrelid
        WHERE k.conrelid = c.oid AND k.contype = 'f') AS parents
    FROM pg_class c WHERE c.relnamespace = 'payments'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition
    ORDER BY c.relname`
)

describe("the tables that a move knows", () => {
  it.effect("are all of the schema, each once", () =>
    onSchema(
      Effect.map(catalog, (tables) => {
        const known = [...movedTables.map(({ name }) => name), ...Object.keys(cellWideTables)]
        expect(known.toSorted()).toEqual(tables.map(({ name }) => name))
        const columns = new Map(tables.map((table) => [table.name, table.columns]))
        for (const { by, name } of movedTables) expect(columns.get(name), name).toContain(by)
        // What belongs to an organization stays only if its reason says so
        const kept = Object.keys(cellWideTables).filter((name) => columns.get(name)?.includes("organization_id"))
        expect(kept.toSorted()).toEqual([
          "move_changed_hours",
          "move_conflicts",
          "moved_accounts",
          "moved_credentials",
          "moved_organizations",
          "moves",
          "tenant_versions"
        ])
      })
    )
  )

  it.effect("can be replicated by their organization without a change being refused", () =>
    onSchema(
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const tables = new Map((yield* catalog).map((table) => [table.name, table]))
        for (const { name } of copiedAhead) {
          const identity = tables.get(name)?.identity
          if (identity !== null) expect(identity, name).toContain("organization_id")
        }
        const months = yield* sql<{ name: string }>`
          SELECT relid::regclass::text AS name FROM pg_partition_tree('payments.receipts_by_month') t
          JOIN pg_class c ON c.oid = t.relid WHERE c.relreplident <> 'f'`
        expect(months).toEqual([])
        yield* sql`SELECT payments.add_receipt_month('2001-02-01')`
        const [added] = yield* sql`SELECT relreplident AS identity FROM pg_class WHERE relname = 'receipts_200102'`
        expect(added).toEqual({ identity: "f" })
      })
    )
  )

  it.effect("have the time by which they are compared, and an index to find a part of it", () =>
    onSchema(
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const columns = yield* sql<{ table: string; name: string; type: string; required: boolean }>`
          SELECT c.relname AS table, a.attname AS name, a.atttypid::regtype::text AS type, a.attnotnull AS required
          FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid WHERE c.relnamespace = 'payments'::regnamespace`
        const indexes = yield* sql<{ table: string; columns: string }>`
          SELECT c.relname AS table, (SELECT string_agg(attname, ' ' ORDER BY n) FROM unnest(i.indkey) WITH ORDINALITY AS k (num, n)
            JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = k.num) AS columns
          FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid
          WHERE c.relnamespace = 'payments'::regnamespace AND i.indpred IS NULL`
        for (const { name, timed } of copiedAhead) {
          if (timed === undefined) continue
          const { after, column, type } = timed
          const at = columns.find((one) => one.table === name && one.name === column)
          expect(at, name).toMatchObject({
            type: type === "timestamptz" ? "timestamp with time zone" : type,
            required: true
          })
          const begins = `organization_id ${after === "environment" ? "environment " : ""}${column}`
          const found = indexes.some((index) => index.table === name && `${index.columns} `.startsWith(`${begins} `))
          expect(found, name).toBe(after !== null)
        }
      })
    )
  )

  it.effect("are inserted after what they refer to", () =>
    onSchema(
      Effect.map(catalog, (tables) => {
        const order = new Map(movedTables.map(({ name }, index) => [name, index]))
        const copiedBefore = new Set(copiedAhead.map(({ name }) => name))
        for (const { name, parents } of tables) {
          // What is replicated is not checked against what it refers to
          if (!order.has(name) || copiedBefore.has(name)) continue
          for (const parent of parents)
            expect(order.get(parent), `${name} → ${parent}`).toBeLessThan(order.get(name) ?? -1)
        }
      })
    )
  )
})
