import { describe, expect, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { Plans } from "../../src/deliveries/sending/Plans.ts"
import { makeFinish } from "../../src/deliveries/sending/RecordStatements.ts"
import { databaseLayer, reservedConnections } from "../../src/storage/Database.ts"
import { createMigratedDatabase } from "../harness/TestDatabase.ts"

describe("recording attempts", () => {
  it.scopedLive("finds each delivery by all columns of an index, before PostgreSQL has statistics of a new day", () =>
    Effect.gen(function* () {
      const database = yield* createMigratedDatabase
      const connected = yield* Layer.build(databaseLayer({ url: database.url, poolSize: 1 }))
      yield* Effect.gen(function* () {
        const sql = yield* reservedConnections(1, { planOnce: true })
        yield* makeFinish(sql, new Plans(sql))([])
        const [statement] = yield* sql<{ readonly name: string; readonly parameters: number }>`
          SELECT name, cardinality(parameter_types) AS parameters FROM pg_prepared_statements
          WHERE statement LIKE '%recorded AS (%'`
        const none = Array.from({ length: statement?.parameters ?? 0 }, () => "'{}'").join(", ")
        const plan = yield* sql.unsafe<{ readonly "QUERY PLAN": string }>(
          `EXPLAIN EXECUTE "${statement?.name}" (${none})`
        )
        const lines = plan.map((line) => line["QUERY PLAN"])
        const scans = lines.flatMap((line, index) =>
          / Scan .*on deliveries_/.test(line) ? [`${line.trim()}, ${lines[index + 1]?.trim()}`] : []
        )
        expect(scans.length).toBeGreaterThan(0)
        for (const scan of scans)
          expect(scan).toMatch(/Index Scan using .*_pkey|Index Cond: .*endpoint_id = .*AND \(id = /)
      }).pipe(Effect.provide(connected), Effect.withTracerEnabled(false))
    })
  )
})
