import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { migrations } from "../../src/storage/Migrations.ts"
import { backdatePartitions } from "./AgedDays.ts"
import { databaseBeforeMigration, on } from "./PartitionBed.ts"

const name = "0023_statistics"
const minute = 60_000

describe("the migration of the statistics", () => {
  it.scopedLive.each([
    ["the oldest day that there is, the first count with the present", 3],
    ["now, in a new installation", undefined]
  ] as const)("begins to count with %s", ([, oldest]) =>
    Effect.gen(function* () {
      const { sql } = yield* databaseBeforeMigration(name)
      if (oldest !== undefined) {
        for (const statement of backdatePartitions(5)) yield* sql.unsafe(statement)
        yield* sql`
          SELECT payments.add_day((now() AT TIME ZONE 'UTC')::date - ago) FROM generate_series(-1, ${oldest}::int) AS ago`
      }
      yield* sql.withTransaction(on(sql, migrations[name] ?? Effect.dieMessage("There is no such migration")))
      const [first, second] = yield* sql<{ since: number; until: number; now: number; day: number }>`
        SELECT extract(epoch FROM since)::float8 * 1000 AS since, extract(epoch FROM until)::float8 * 1000 AS until,
          extract(epoch FROM now())::float8 * 1000 AS now,
          extract(epoch FROM date_trunc('day', now(), 'UTC'))::float8 * 1000 AS day
        FROM payments.count_passes ORDER BY pass`
      if (first === undefined || second === undefined) throw new Error("There are two counts")
      const { day, now } = first
      for (const { since, until } of [first, second]) {
        expect(since).toBe(until)
        expect(since % (5 * minute)).toBe(0)
        expect(since).toBeLessThanOrEqual(now)
      }
      // The time between the migration and here
      const passed = 5 * minute
      if (oldest === undefined) {
        expect(first.since).toBe(second.since)
        expect(first.since).toBeGreaterThan(now - 5 * minute - passed)
      } else {
        expect(second.since).toBe(day - oldest * 24 * 60 * minute)
        expect(first.since).toBeGreaterThan(now - 25 * minute - passed)
        expect(first.since).toBeLessThanOrEqual(now - 20 * minute)
      }
    })
  )
})
