import { createMigratedDatabase } from "../../harness/TestDatabase.ts"
import { describe, expect, it } from "../../harness/Tests.ts"
import { connect } from "./PartitionBed.ts"

describe("an index over text", () => {
  it.scopedLive("compares bytes, so that no upgrade of the operating system reorders it", function* () {
    const sql = yield* connect(yield* createMigratedDatabase)
    const ordered = yield* sql<{ index: string; collations: ReadonlyArray<string> }>`
        SELECT c.relname AS index, array_agg(DISTINCT o.collname::text) AS collations
        FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
        CROSS JOIN LATERAL unnest(i.indcollation) AS used (ordering)
        JOIN pg_collation o ON o.oid = used.ordering
        WHERE c.relnamespace = 'payments'::regnamespace GROUP BY 1`
    expect(ordered.length).toBeGreaterThan(20)
    expect(ordered.filter(({ collations }) => collations.join() !== "C")).toEqual([])
  })
})
