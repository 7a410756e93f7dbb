import { SqlClient } from "@effect/sql"
import { Effect, Layer } from "effect"
import { housekeepingLayer } from "../../../src/platform/kit/Housekeeping.ts"
import { databaseLayer } from "../../../src/platform/storage/Database.ts"
import { eventuallyTrue } from "../../harness/Eventually.ts"
import { createMigratedDatabase } from "../../harness/TestDatabase.ts"
import { expect, layer } from "../../harness/Tests.ts"

const database = Layer.unwrapScoped(
  Effect.map(createMigratedDatabase, ({ url }) => databaseLayer({ url, poolSize: 2 }))
)

layer(database)("housekeeping", (it) => {
  it.scoped("is done by one process, and by another one once that has been silent", function* () {
    const sql = yield* SqlClient.SqlClient
    const rounds = { ours: 0, others: 0 }
    const keep = (house: keyof typeof rounds) =>
      Layer.build(
        housekeepingLayer(house, Effect.succeed({ rows: Effect.sync(() => void rounds[house]++) }), "20 millis")
      )
    const eventuallyAtLeast = (house: keyof typeof rounds, count: number) =>
      eventuallyTrue(`${count} rounds of ${house}`, () => rounds[house] >= count)
    // Another process does it now, and for the next hour
    yield* sql`
        INSERT INTO payments.housekeeping (name, process, begun_at)
        VALUES ('others', gen_random_uuid(), now() + interval '1 hour')`
    yield* keep("others")
    yield* keep("ours")
    yield* eventuallyAtLeast("ours", 5)
    expect(rounds.others).toBe(0)

    yield* sql`UPDATE payments.housekeeping SET begun_at = now() - interval '1 minute' WHERE name = 'others'`
    yield* eventuallyAtLeast("others", 2)
    const owners = yield* sql<{ process: string }>`SELECT DISTINCT process FROM payments.housekeeping`
    expect(owners).toHaveLength(1)
  })
})
