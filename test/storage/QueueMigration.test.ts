import { randomUUID } from "node:crypto"
import { Migrator, SqlClient, type SqlError } from "@effect/sql"
import { describe, expect, it } from "@effect/vitest"
import { Context, Deferred, Effect, Fiber, Layer, Option } from "effect"
import { v7 } from "uuid"
import { Queue } from "../../src/deliveries/sending/Queue.ts"
import { databaseLayer } from "../../src/storage/Database.ts"
import { migrate, migrations } from "../../src/storage/Migrations.ts"
import { sqlState } from "../../src/telemetry/ServerErrors.ts"
import { idle } from "../deliveries/QueueBench.ts"
import { eventually } from "../harness/Eventually.ts"
import { createTestDatabase } from "../harness/TestDatabase.ts"

// From the schema before the queue had a table of its own to the one with it: the step that does more than add

type Row = Readonly<Record<string, unknown>>

const organizationId = randomUUID()
const tenants = ["sandbox", "production"].map((environment) => ({ organizationId, environment }))
const [endpointId, newSecret, oldSecret] = [randomUUID(), randomUUID(), randomUUID()]

interface OldAttempt {
  readonly number: number
  readonly trigger: "automatic" | "manual"
  readonly durationMs: number | null
  readonly httpStatus: number | null
  readonly errorCode: string | null
}

const answered = (number: number, httpStatus = 503, trigger: OldAttempt["trigger"] = "automatic"): OldAttempt => ({
  number,
  trigger,
  durationMs: number * 10,
  httpStatus,
  errorCode: httpStatus < 300 ? null : "http_error"
})

const interrupted = (number: number, trigger: OldAttempt["trigger"] = "automatic"): OldAttempt => ({
  number,
  trigger,
  durationMs: null,
  httpStatus: null,
  errorCode: "interrupted"
})

const upTo = (last: number, attempt: (number: number) => OldAttempt = answered) =>
  Array.from({ length: last }, (_, index) => attempt(index + 1))

/** A delivery as the version before stored it: its columns beyond the keys, and its attempts. */
interface OldDelivery {
  readonly columns: string
  readonly attempts: ReadonlyArray<OldAttempt>
}

const claimed = "lease = gen_random_uuid(), claimed_at = now() - interval '1 second'"

const old = {
  due: { columns: "next_attempt_at = now() - interval '3 minutes', traceparent = '00-aa-bb-01'", attempts: [] },
  waiting: {
    columns: "attempt_count = 2, next_attempt_at = now() + interval '1 hour', last_http_status = 503",
    attempts: [answered(1), interrupted(2)]
  },
  // Claimed once and given back
  released: {
    columns: "claimed_at = now() - interval '1 hour', next_attempt_at = now() - interval '2 minutes'",
    attempts: []
  },
  resent: {
    columns: "attempt_count = 7, next_trigger = 'manual', next_attempt_at = now() - interval '1 minute'",
    attempts: [...upTo(6), interrupted(7, "manual")]
  },
  leased: {
    columns: `attempt_count = 3, ${claimed}, next_attempt_at = now() + interval '1 minute'`,
    attempts: [interrupted(1), answered(2)]
  },
  lastLeased: {
    columns: `attempt_count = 12, next_trigger = 'manual', ${claimed}, next_attempt_at = now() + interval '2 minutes'`,
    attempts: upTo(11)
  },
  delivered: {
    columns: `state = 'delivered', attempt_count = 2, next_attempt_at = NULL, last_http_status = 204,
      finished_at = now() - interval '1 day', secret_ids = ARRAY['${newSecret}', '${oldSecret}']::uuid[]`,
    attempts: [answered(1), answered(2, 204, "manual")]
  },
  failed: {
    columns: `state = 'failed', attempt_count = 12, next_attempt_at = NULL, last_http_status = 503,
      last_error_code = 'http_error', finished_at = now() - interval '5 minutes'`,
    attempts: upTo(12)
  },
  // Of an endpoint that was deleted while nothing had been tried
  ended: {
    columns: `state = 'failed', next_attempt_at = NULL, last_error_code = 'endpoint_deleted',
      finished_at = now() - interval '2 days', test = true`,
    attempts: []
  }
} satisfies Record<string, OldDelivery>

const names = Object.keys(old)
const ids = new Map(names.map((name) => [name, v7()]))
const idOf = (name: keyof typeof old) => ids.get(name) ?? ""
const nameOf = (id: unknown) => names.find((name) => ids.get(name) === id)

/** The schema as the version before left it. */
const migrateToBefore = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const before = Object.fromEntries(Object.entries(migrations).filter(([key]) => key < "0007"))
  yield* sql`CREATE SCHEMA payments`
  yield* Migrator.make({})({ loader: Migrator.fromRecord(before), table: "payments.migrations" })
})

/** What the version before sends to store a delivery, as a new row of an id. */
const storeAsBefore = (sql: SqlClient.SqlClient, id: string, environment = "sandbox") => sql`
  INSERT INTO payments.deliveries (organization_id, environment, id, endpoint_id, event_id, secret_ids, traceparent)
  SELECT ${organizationId}, ${environment}, ${id}, ${endpointId}, 'svc_evt_1', ARRAY[${newSecret}::uuid], NULL`

const storeTenant = Effect.fnUntraced(function* (sql: SqlClient.SqlClient, environment: string) {
  yield* sql`INSERT INTO payments.workspaces (organization_id, environment) VALUES (${organizationId}, ${environment})`
  yield* sql`
    INSERT INTO payments.endpoints (organization_id, environment, id, name, url)
    VALUES (${organizationId}, ${environment}, ${endpointId}, 'Shop', 'https://shop.example.com/hook')`
  for (const [id, retired] of [
    [newSecret, null],
    [oldSecret, new Date()]
  ]) {
    yield* sql`
      INSERT INTO payments.endpoint_secrets
        (organization_id, environment, id, endpoint_id, master_key_id, ciphertext, retired_at)
      VALUES (${organizationId}, ${environment}, ${id ?? null}, ${endpointId}, 'k', '\\x00', ${retired ?? null})`
  }
  yield* sql`
    INSERT INTO payments.events (organization_id, environment, id, type, payload)
    VALUES (${organizationId}, ${environment}, 'svc_evt_1', 'payment.succeeded', ${`{"of":"${environment}"}`})`
})

/** A database at the schema before, with two environments whose deliveries have the same ids. */
const databaseBefore = Effect.gen(function* () {
  const database = yield* createTestDatabase()
  const connect = Effect.map(
    Layer.build(databaseLayer({ url: database.url, poolSize: 2 })),
    Context.get(SqlClient.SqlClient)
  )
  const sql = yield* connect
  yield* Effect.provideService(migrateToBefore, SqlClient.SqlClient, sql)
  yield* sql`INSERT INTO payments.organizations (id, name) VALUES (${organizationId}, 'Bakery')`
  for (const { environment } of tenants) yield* storeTenant(sql, environment)
  return { connect, migrating: Effect.provideService(migrate, SqlClient.SqlClient, sql), sql }
})

/** Stores all of the deliveries above; the attempts of one environment alone, the last first. */
const storeAll = Effect.fnUntraced(function* (sql: SqlClient.SqlClient) {
  for (const { environment } of tenants) {
    for (const [name, { attempts, columns }] of Object.entries<OldDelivery>(old)) {
      const id = ids.get(name) ?? ""
      yield* storeAsBefore(sql, id, environment)
      yield* sql`
        UPDATE payments.deliveries SET ${sql.literal(columns)}
        WHERE organization_id = ${organizationId} AND environment = ${environment} AND id = ${id}`
      if (environment === "production") continue
      for (const attempt of attempts.toReversed()) {
        yield* sql`
          INSERT INTO payments.delivery_attempts (organization_id, environment, delivery_id, number, trigger, started_at,
            duration_ms, http_status, error_code)
          VALUES (${organizationId}, ${environment}, ${id}, ${attempt.number}, ${attempt.trigger},
            now() - ${13 - attempt.number} * interval '1 minute', ${attempt.durationMs}, ${attempt.httpStatus},
            ${attempt.errorCode})`
      }
    }
  }
})

/** All rows of a table as JSON of the database, so that nothing is lost on the way. */
const rowsOf = (sql: SqlClient.SqlClient, table: string, order: string) =>
  Effect.map(
    sql<{ row: Row }>`
      SELECT to_jsonb(t) AS row FROM ${sql.literal(`payments.${table} t`)} ORDER BY ${sql.literal(order)}`,
    (rows) => rows.map(({ row }) => row)
  )

const pick = (row: Row, columns: ReadonlyArray<string>) => Object.fromEntries(columns.map((name) => [name, row[name]]))

const without = (row: Row, columns: ReadonlyArray<string>) =>
  Object.fromEntries(Object.entries(row).filter(([name]) => !columns.includes(name)))

const refused = (statement: Effect.Effect<unknown, SqlError.SqlError>) => Effect.map(Effect.flip(statement), sqlState)

describe("the step to the queue's own table", () => {
  it.scopedLive("keeps every delivery and attempt, has in the queue what waits, and refuses the old statements", () =>
    Effect.gen(function* () {
      const { migrating, sql } = yield* databaseBefore
      yield* storeAll(sql)
      const deliveriesBefore = yield* rowsOf(sql, "deliveries", "environment, id")
      const attemptsBefore = yield* rowsOf(sql, "delivery_attempts", "environment, delivery_id, number")
      expect(deliveriesBefore).toHaveLength(2 * names.length)
      expect(attemptsBefore).toHaveLength(Object.values(old).flatMap(({ attempts }) => attempts).length)

      yield* migrating

      const deliveries = yield* rowsOf(sql, "deliveries", "environment, id")
      expect(deliveries.map((row) => without(row, ["attempts", "failed_at"]))).toEqual(
        deliveriesBefore.map((row) => without(row, ["lease", "claimed_at", "next_attempt_at", "next_trigger"]))
      )
      for (const { failed_at, finished_at, state } of deliveries) {
        expect(failed_at).toBe(state === "failed" ? finished_at : null)
      }
      // The n-th of a delivery's attempts is the one with number n
      const attempts = yield* sql<{ environment: string; id: string; place: number; attempt: Row }>`
        SELECT d.environment, d.id, place::int, to_jsonb(d.attempts[place]) AS attempt
        FROM payments.deliveries d CROSS JOIN LATERAL generate_subscripts(d.attempts, 1) AS place
        ORDER BY d.environment, d.id, place`
      expect(attempts.map(({ attempt, environment, id }) => ({ environment, delivery_id: id, ...attempt }))).toEqual(
        attemptsBefore.map((row) => without(row, ["organization_id"]))
      )
      for (const { attempt, place } of attempts) expect(attempt["number"]).toBe(place)

      const kept = ["organization_id", "environment", "id", "endpoint_id", "event_id", "secret_ids", "attempt_count"]
      const moved = [...kept, "next_trigger", "next_attempt_at", "lease", "claimed_at", "traceparent", "created_at"]
      expect(yield* rowsOf(sql, "delivery_queue", "environment, id")).toEqual(
        deliveriesBefore
          .filter(({ state }) => state === "queued")
          .map((row) => ({ ...pick(row, moved), leased_until: row["lease"] === null ? null : row["next_attempt_at"] }))
      )

      expect(yield* refused(storeAsBefore(sql, v7()))).toBe("23502")
      const claimAsBefore = sql`
        UPDATE payments.deliveries SET lease = gen_random_uuid(), claimed_at = now(), attempt_count = attempt_count + 1
        WHERE state = 'queued' AND next_attempt_at <= now()`
      expect(yield* refused(claimAsBefore)).toBe("42703")
      expect(yield* rowsOf(sql, "deliveries", "environment, id")).toEqual(deliveries)
    })
  )

  it.scopedLive("leaves a queue that goes on where it was: due at once, at its time, when its lease ends", () =>
    Effect.gen(function* () {
      const { migrating, sql } = yield* databaseBefore
      yield* storeAll(sql)
      yield* migrating
      const { claim } = Context.get(
        yield* Layer.build(Layer.provide(Queue.layer, Layer.succeed(SqlClient.SqlClient, sql))),
        Queue
      )
      const claimedNow = Effect.map(claim({ ...idle, limit: 50, perEndpoint: 50 }), ({ deliveries }) =>
        deliveries
          .filter(({ environment }) => environment === "sandbox")
          .map(({ attempt, id, payload, secretIds, trigger }) => [nameOf(id), attempt, trigger, secretIds, payload])
          .sort()
      )
      const of = [[newSecret], '{"of":"sandbox"}']
      expect(yield* claimedNow).toEqual([
        ["due", 1, "automatic", ...of],
        ["released", 1, "automatic", ...of],
        ["resent", 8, "manual", ...of]
      ])
      yield* sql`
        UPDATE payments.delivery_queue SET leased_until = now(), next_attempt_at = now()
        WHERE id = ANY (${[idOf("leased"), idOf("lastLeased")]}::uuid[])`
      expect(yield* claimedNow).toEqual([["leased", 4, "automatic", ...of]])
      const abandoned = yield* sql<{ id: string; state: string; numbers: ReadonlyArray<number>; last: string }>`
        SELECT id, state, ARRAY(SELECT number::int FROM unnest(attempts)) AS numbers,
          attempts[attempt_count].error_code AS last
        FROM payments.deliveries
        WHERE environment = 'sandbox' AND id = ANY (${[idOf("leased"), idOf("lastLeased")]}::uuid[])
        ORDER BY attempt_count`
      expect(abandoned.map(({ last, numbers, state }) => [state, numbers, last])).toEqual([
        ["queued", [1, 2, 3], "interrupted"],
        ["failed", Array.from({ length: 12 }, (_, index) => index + 1), "interrupted"]
      ])
    })
  )

  it.scopedLive("takes in what is being stored when it begins, and refuses what comes while it is under way", () =>
    Effect.gen(function* () {
      const { connect, migrating, sql } = yield* databaseBefore
      const [other, observer] = [yield* connect, yield* connect]
      const lockWaits = (count: number) =>
        eventually(
          `${count} sessions that wait for a lock`,
          Effect.map(
            observer<{ waiting: number }>`
              SELECT count(*)::int AS waiting FROM pg_stat_activity
              WHERE datname = current_database() AND wait_event_type = 'Lock'`,
            ([row]) => (row?.waiting === count ? Option.some(count) : Option.none())
          )
        )
      const [early, late] = [v7(), v7()]
      const [stored, end] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
      const storing = yield* storeAsBefore(other, early).pipe(
        Effect.zipRight(Deferred.succeed(stored, undefined)),
        Effect.zipRight(Deferred.await(end)),
        other.withTransaction,
        Effect.fork
      )
      yield* Deferred.await(stored)
      const migration = yield* Effect.fork(migrating)
      yield* lockWaits(1)
      const refusal = yield* Effect.fork(refused(storeAsBefore(other, late)))
      yield* lockWaits(2)
      yield* Deferred.succeed(end, undefined)
      yield* Fiber.join(storing)
      yield* Fiber.join(migration)
      expect(yield* Fiber.join(refusal)).toBe("23502")
      for (const table of ["deliveries", "delivery_queue"]) {
        expect((yield* rowsOf(sql, table, "id")).map(({ id }) => id)).toEqual([early])
      }
    })
  )
})
