import { SqlClient } from "@effect/sql"
import { describe, expect, it } from "@effect/vitest"
import { Context, Duration, Effect, Layer } from "effect"
import { type ClaimOptions, makeClaim, Plans } from "../../src/engine/queue/Claim.ts"
import { makeFinish, makeRelease } from "../../src/engine/queue/Queue.ts"
import { databaseLayer, reservedPool } from "../../src/platform/storage/Database.ts"
import { makeRunning } from "../../src/platform/storage/Statements.ts"
import { anyDelivery } from "../destinations/deliveries/AnyDelivery.ts"
import { connectionTo } from "../harness/Connection.ts"
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

/** A connection that is set up like those of the queue, to a new database. */
const connected = Effect.gen(function* () {
  const { url } = yield* createMigratedDatabase
  const shared = yield* Layer.build(databaseLayer({ url, poolSize: 1 }))
  const own = yield* Effect.provide(reservedPool(1, { planOnce: true }), shared)
  return { url, sql: Context.get(own, SqlClient.SqlClient), run: yield* Effect.provide(makeRunning, own) }
})

describe("claiming", () => {
  const wanted = { limit: 10, lease: Duration.seconds(30), perEndpoint: 4, inFlight: new Map() } as const
  const looks: ReadonlyArray<readonly [string, Partial<ClaimOptions>]> = [
    ["in the order of time", {}],
    ["in that order beside endpoints at their caps", { hides: true }],
    ["the newest", { look: "newest" }],
    ["of endpoints by name", { look: "asked" }]
  ]
  it.scopedLive.each(looks)(
    "follows indexes in their order, as far as the limit, although the queue was found empty in many pages: %s",
    ([_, look]) =>
      Effect.gen(function* () {
        const { run, sql, url } = yield* connected
        const filling = yield* connectionTo(url)
        // PostgreSQL knows how its columns are filled, then finds it empty while what fills it again is not yet committed
        const fill = `INSERT INTO payments.delivery_queue
               (organization_id, environment, id, endpoint_id, event_id, secret_ids, next_attempt_at, created_at)
             SELECT gen_random_uuid(), 'sandbox', uuidv7(), endpoint, uuidv7(), ARRAY[endpoint],
               now() - n * interval '1 ms', now()
             FROM generate_series(1, 20000) AS n, LATERAL (SELECT md5((n % 32)::text)::uuid AS endpoint) AS e`
        yield* sql.unsafe(fill)
        yield* sql`VACUUM ANALYZE payments.delivery_queue`
        yield* sql`TRUNCATE payments.delivery_queue`
        yield* Effect.promise(() => filling.query(`BEGIN; ${fill}`))
        yield* sql`VACUUM ANALYZE payments.delivery_queue`
        yield* Effect.promise(() => filling.query("COMMIT"))
        yield* makeClaim(sql, run, new Plans(sql))({ ...wanted, ...look })
        const plan = yield* keptPlan(sql, "unconfirmed_claims")
        const byPlace = plan.filter(
          (line) => / on delivery_queue/.test(line) && !/Tid Scan|Update on|Delete on/.test(line)
        )
        expect(byPlace.length).toBeGreaterThanOrEqual(3)
        for (const line of byPlace)
          expect(line).toMatch(/Index (?:Only )?Scan (?:Backward )?using delivery_queue_(?:due|of_endpoint) /)
        // Of the queue's rows; what a claim has chosen of them is sorted
        expect(plan.filter((line) => /Sort Key: delivery_queue/.test(line))).toEqual([])
      }).pipe(Effect.withTracerEnabled(false))
  )
})

describe("recording attempts", () => {
  it.scopedLive.each([
    ["before PostgreSQL has statistics of a new day", []],
    ["after it has found all tables empty", ["VACUUM ANALYZE"]]
  ] as const)("finds each row by an index, without reading others, %s", ([_, statements]) =>
    Effect.gen(function* () {
      const { run, sql } = yield* connected
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
    }).pipe(Effect.withTracerEnabled(false))
  )
})
