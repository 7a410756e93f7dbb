import { SqlClient } from "@effect/sql"
import { describe, expect, it } from "@effect/vitest"
import { Context, Duration, Effect, Layer } from "effect"
import { Plans } from "../../src/engine/queue/Claim.ts"
import { makeFinish, makeRelease } from "../../src/engine/queue/Queue.ts"
import { databaseLayer, reservedPool } from "../../src/platform/storage/Database.ts"
import { makeRunning } from "../../src/platform/storage/Statements.ts"
import { anyDelivery } from "../destinations/deliveries/AnyDelivery.ts"
import { createMigratedDatabase } from "../harness/TestDatabase.ts"
import { keptPlan } from "../platform/storage/PlanRows.ts"
import { finished } from "./QueueBench.ts"

/** Its reads of tables, each with its condition; those of what the statement itself holds left out. */
const readsOf = (plan: ReadonlyArray<string>) =>
  plan.flatMap((line, index) =>
    / Scan .*on deliver/.test(line) ? [`${line.replace("->  ", "")}, ${plan[index + 1]}`] : []
  )

/** Finds a row without reading others: where it is, or by all columns of an index that are needed. */
const oneRow =
  /Tid Scan on delivery_queue q(_\d)?, TID Cond: \(ctid = r(_\d)?\.place\)|Index Scan using .*, Index Cond: \(\(organization_id = .*\) AND \(environment = .*\) AND (\(endpoint_id = .*\) AND )?\(id = /

/** An attempt of a delivery that is nowhere any more. */
const lost = finished(anyDelivery(), 204, { state: "delivered" })

describe("recording attempts", () => {
  it.scopedLive.each([
    ["before PostgreSQL has statistics of a new day", []],
    ["after it has found all tables empty", ["VACUUM ANALYZE"]]
  ] as const)("finds each row by an index, without reading others, %s", ([_, statements]) =>
    Effect.gen(function* () {
      const database = yield* createMigratedDatabase
      const connected = yield* Layer.build(databaseLayer({ url: database.url, poolSize: 1 }))
      yield* Effect.gen(function* () {
        const own = yield* reservedPool(1, { planOnce: true })
        const sql = Context.get(own, SqlClient.SqlClient)
        const run = yield* Effect.provide(makeRunning, own)
        for (const statement of statements) yield* sql.unsafe(statement)
        yield* Effect.withTracerEnabled(makeFinish(sql, run, new Plans(sql))([lost]), false)
        yield* makeRelease(sql, new Plans(sql))([], Duration.zero)
        // Where they are, by their keys, too late, and given back
        const parts = [
          "q.ctid = r.place",
          "q.environment = r.environment",
          "GREATEST(d.attempt_count",
          "attempt_count - 1"
        ]
        for (const [index, count] of [3, 3, 1, 1].entries()) {
          const reads = readsOf(yield* keptPlan(sql, parts[index] ?? ""))
          expect(reads.length).toBeGreaterThanOrEqual(count)
          for (const read of reads) expect(read).toMatch(oneRow)
        }
      }).pipe(Effect.provide(connected), Effect.withTracerEnabled(false))
    })
  )
})
