import { SqlClient } from "@effect/sql"
import { Effect, Layer } from "effect"
import {
  batchSql,
  makeReceiptPartitions,
  type ReceiptsRow,
  receiptValues,
  type VersionedReceipt
} from "../../src/inbound/ReceiptStatement.ts"
import { databaseLayer } from "../../src/platform/storage/Database.ts"
import { makePreparing } from "../../src/platform/storage/Statements.ts"
import { createMigratedDatabase } from "../harness/TestDatabase.ts"
import { describe, expect, it } from "../harness/Tests.ts"
import { keptPlan } from "../platform/storage/PlanRows.ts"
import { anyReceipt } from "./Notifications.ts"

const receiptNow = (): VersionedReceipt => ({ ...anyReceipt("acct_1", null), tenantVersion: null })

const part = "source AS MATERIALIZED"

/** PostgreSQL makes a new plan for the first executions of a statement, to compare. */
const compared = 5

describe("storing receipts", () => {
  it.scopedLive("takes one plan for all batches, small ones too, and joins its parts by hashes alone", function* () {
    const database = yield* createMigratedDatabase
    // One connection: it says what it planned
    const connected = yield* Layer.build(databaseLayer({ url: database.url, poolSize: 1 }))
    const plans = yield* Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const [[place] = []] = yield* Effect.flatten(
        Effect.map(makeReceiptPartitions, (placesOf) => placesOf([receiptNow()]))
      )
      expect(place).toMatchObject({ kind: "month" })
      if (place === undefined) return []
      const store = (yield* makePreparing)<ReceiptsRow>(batchSql(sql, place))
      for (const size of [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 3, 1, 1, 1, 4, 1, 1, 1]) {
        const rows = yield* store(receiptValues(Array.from({ length: size }, receiptNow), null))
        expect(rows[0]?.receipts).toHaveLength(size)
      }
      const counts = yield* sql<{ made: string; shared: string }>`
          SELECT custom_plans AS made, generic_plans AS shared FROM pg_prepared_statements
          WHERE statement LIKE ${`%${part}%`}`
      const plan = yield* keptPlan(sql, part)
      expect(plan.length).toBeGreaterThan(40)
      // Two of its parts are compared by hashes; only endpoints are looked up one by one
      expect(plan.filter((line) => line.includes("Nested Loop"))).toHaveLength(1)
      expect(plan.filter((line) => line.includes("endpoints p"))).toHaveLength(1)
      return counts
    }).pipe(Effect.provide(connected), Effect.withTracerEnabled(false))
    expect(plans.map(({ made, shared }) => [Number(made), Number(shared)])).toEqual([[compared, 20 - compared]])
  })
})
