import { expect, inject } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { escapeIdentifier } from "pg"
import { tell } from "../harness/Connection.ts"
import { inDatabase, onService, TestService } from "../harness/TestService.ts"
import { makeSubscriber, newEventId, notification, notify } from "./Notifications.ts"

/** Statements of an operator who reaches the server from another database. */
const administer = (...statements: ReadonlyArray<string>) => tell(inject("databaseAdminUrl"), ...statements)

/** While the scope is open, the service's database takes no connections, and those that it had are cut. */
const withoutDatabase = Effect.gen(function* () {
  const { options } = yield* TestService
  const name = new URL(Redacted.value(options.databaseUrl)).pathname.slice(1)
  yield* Effect.acquireRelease(
    administer(
      `ALTER DATABASE ${escapeIdentifier(name)} WITH ALLOW_CONNECTIONS false`,
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '${name}'`
    ),
    () => administer(`ALTER DATABASE ${escapeIdentifier(name)} WITH ALLOW_CONNECTIONS true`)
  )
})

/** While the scope is open, storing a row of this table fails: after whatever the same statement stored before it. */
const refusing = (table: "events" | "deliveries" | "receipts", sqlState: string) =>
  Effect.gen(function* () {
    const { sql } = yield* TestService
    yield* sql.unsafe(`
      CREATE FUNCTION payments.refuse() RETURNS trigger LANGUAGE plpgsql AS
      $$ BEGIN RAISE EXCEPTION 'refused by the test' USING ERRCODE = '${sqlState}'; END $$`)
    yield* Effect.acquireRelease(
      sql.unsafe(`
        CREATE TRIGGER refuse AFTER INSERT ON payments.${table}
        FOR EACH ROW EXECUTE FUNCTION payments.refuse()`),
      () => Effect.orDie(sql.unsafe("DROP FUNCTION payments.refuse CASCADE"))
    )
  })

const countsOf = (providerEventId: string) =>
  inDatabase`
    SELECT
      (SELECT count(*)::int FROM payments.receipts WHERE provider_event_id = ${providerEventId}) AS receipts,
      (SELECT count(*)::int FROM payments.events WHERE provider_event_id = ${providerEventId}) AS events,
      (SELECT count(*)::int FROM payments.deliveries d JOIN payments.events e ON e.id = d.event_id
       WHERE e.provider_event_id = ${providerEventId}) AS deliveries`

const storedOnce = [{ receipts: 1, events: 1, deliveries: 1 }]
const nothing = [{ receipts: 0, events: 0, deliveries: 0 }]

onService({ roles: { api: true, worker: false } })("the provider's entry while storing fails", (it) => {
  it.effect("answers 503 with Retry-After without a database, and the provider's retry is stored once", function* () {
    const { tenant } = yield* makeSubscriber()
    const id = newEventId()
    const body = notification(tenant.accountId, { id })
    yield* Effect.scoped(
      Effect.gen(function* () {
        yield* withoutDatabase
        const answers = yield* Effect.all(
          Array.from({ length: 4 }, () => notify(body)),
          { concurrency: 4 }
        )
        for (const answer of answers) {
          expect([answer.status, answer.json["code"]]).toEqual([503, "service_unavailable"])
          expect(Number(answer.headers.get("retry-after"))).toBeGreaterThan(0)
          expect(answer.text).not.toContain("ALLOW_CONNECTIONS")
          expect(answer.text).not.toContain("test_")
        }
        // What is not the provider's is refused all the same, without a look at the database
        expect((yield* notify(body, "t=1,v1=00")).status).toBe(400)
      })
    )
    expect(yield* countsOf(id)).toEqual(nothing)
    expect((yield* notify(body)).status).toBe(200)
    expect((yield* notify(body)).status).toBe(200)
    expect(yield* countsOf(id)).toEqual(storedOnce)
  })

  for (const table of ["receipts", "events", "deliveries"] as const) {
    for (const [what, sqlState] of [
      ["a full disk", "53100"],
      ["an error that nobody foresaw", "P0001"]
    ] as const) {
      it.effect(`answers 503 on ${what} in ${table}, stores no part, and takes the retry`, function* () {
        const { tenant } = yield* makeSubscriber()
        const id = newEventId()
        const body = notification(tenant.accountId, { id })
        yield* Effect.scoped(
          Effect.gen(function* () {
            yield* refusing(table, sqlState)
            const answer = yield* notify(body)
            expect([answer.status, answer.json["code"]]).toEqual([503, "service_unavailable"])
            expect(Number(answer.headers.get("retry-after"))).toBeGreaterThan(0)
            expect(answer.text).not.toContain("refused by the test")
            expect(yield* countsOf(id)).toEqual(nothing)
          })
        )
        expect((yield* notify(body)).status).toBe(200)
        expect(yield* countsOf(id)).toEqual(storedOnce)
      })
    }
  }
})
