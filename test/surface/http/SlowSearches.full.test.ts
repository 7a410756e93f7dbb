import { SqlClient } from "@effect/sql"
import { expect } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { databaseLayer } from "../../../src/platform/storage/Database.ts"
import { eventuallyIs, whileRunning } from "../../harness/Eventually.ts"
import { inDatabase, onService, TestService } from "../../harness/TestService.ts"
import { accepted, asTenant, atEndpoints, makeSubscriber, notification, notify } from "../../inbound/Notifications.ts"
import { expectFailure } from "./Refusals.ts"

/** Tables that searches read and nothing else does: while they are locked, a search takes as long as it may. */
const yesterday = new Date(Date.now() - 24 * 3_600_000).toISOString().slice(0, 10).replaceAll("-", "")
const searched = [`deliveries_${yesterday}`, `events_${yesterday}`, "delivery_counts"]

const whileLocked = <A, E, R>(tables: ReadonlyArray<string>, effect: Effect.Effect<A, E, R>) =>
  Effect.gen(function* () {
    const { options } = yield* TestService
    const own = yield* Layer.build(Layer.fresh(databaseLayer({ url: options.databaseUrl, poolSize: 1 })))
    const sql = Context.get(own, SqlClient.SqlClient)
    const names = sql.literal(tables.map((table) => `payments.${table}`).join(", "))
    yield* sql`BEGIN`
    yield* sql`LOCK TABLE ${names} IN ACCESS EXCLUSIVE MODE`
    return yield* Effect.ensuring(effect, Effect.orDie(sql`ROLLBACK`))
  }).pipe(Effect.scoped)

const waiting = Effect.map(
  inDatabase<{ count: number }>`
    SELECT count(DISTINCT l.pid)::int AS count FROM pg_locks l JOIN pg_database d ON d.oid = l.database
    WHERE NOT l.granted AND d.datname = current_database()`,
  ([row]) => row?.count ?? 0
)

/** Every read that goes through a history, or counts. */
const searches = ({ endpointId, eventId }: { readonly endpointId: string; readonly eventId: string }) => [
  "/deliveries",
  "/deliveries?type=payout.canceled",
  "/deliveries?state=failed",
  `/deliveries?event_id=${eventId}`,
  `/endpoints/${endpointId}/deliveries?type=payout.canceled`,
  `/endpoints/${endpointId}/deliveries?state=delivered`,
  "/events?type=payout.canceled",
  "/events?created_gte=1",
  `/events/${eventId}`,
  "/endpoints",
  "/statistics"
]

const makeActive = Effect.gen(function* () {
  const { id, tenant } = yield* makeSubscriber()
  yield* accepted(notify(notification(tenant.accountId)))
  const [event] = yield* inDatabase<{ id: string }>`
    SELECT COALESCE(public_id, id) AS id FROM payments.events WHERE organization_id = ${tenant.id}`
  return { tenant, endpointId: id, eventId: event?.id ?? "" }
})

/** What nobody's searches may hold up: a read by id, a change, and notifications with deliveries and without. */
const othersWork = Effect.fnUntraced(function* ({ endpointId, tenant }: Effect.Effect.Success<typeof makeActive>) {
  yield* atEndpoints(tenant, "GET", `/${endpointId}`)
  yield* atEndpoints(tenant, "PATCH", `/${endpointId}`, { name: "Orders" })
  yield* accepted(notify(notification(tenant.accountId)))
  yield* accepted(notify(notification("acct_unlinked")))
})

onService({ roles: { api: true, worker: false }, databasePoolSize: 10 })("searches that take long", (it) => {
  it.effect("leave others' requests and notifications their connections, and are refused in time", function* () {
    const loud = yield* makeActive
    const quiet = yield* makeActive
    yield* whileLocked(
      searched,
      Effect.gen(function* () {
        const paths = searches(loud).flatMap((path) => [path, path, path, path])
        const asking = yield* Effect.fork(
          Effect.forEach(paths, (path) => asTenant(loud.tenant, "GET", path), { concurrency: "unbounded" })
        )
        yield* eventuallyIs("searches that wait", waiting, (count) => count > 0)
        const answers = yield* whileRunning(asking, othersWork(quiet))
        const refused = answers.filter(({ status }) => status === 429)
        expect(answers.map(({ status }) => status).filter((status) => status !== 429 && status !== 503)).toEqual([])
        // Two ran for as long as a search may, and perhaps two after them
        expect(refused.length).toBeGreaterThanOrEqual(paths.length - 4)
        for (const answer of refused) {
          expectFailure(answer, { status: 429, code: "rate_limit_exceeded", fields: [] })
          expect(answer.headers.get("retry-after")).toBe("3")
        }
      })
    )
    for (const path of searches(loud)) {
      const answer = yield* asTenant(loud.tenant, "GET", path)
      expect(answer.status, answer.text).toBe(200)
    }
  })

  it.effect("of many organizations together leave half of the connections", function* () {
    const loud = yield* Effect.replicateEffect(makeActive, 4)
    const quiet = yield* makeActive
    yield* whileLocked(
      searched,
      Effect.gen(function* () {
        const asking = yield* Effect.fork(
          Effect.forEach(
            loud.flatMap(({ tenant }) => Array.from({ length: 10 }, () => tenant)),
            (tenant) => asTenant(tenant, "GET", "/deliveries?type=payout.canceled"),
            { concurrency: "unbounded" }
          )
        )
        yield* eventuallyIs("searches of several organizations that wait", waiting, (count) => count > 2)
        for (const answer of yield* whileRunning(asking, othersWork(quiet))) {
          expect([429, 503]).toContain(answer.status)
          expect(Number(answer.headers.get("retry-after"))).toBeGreaterThan(0)
        }
      })
    )
  })

  it.effect("through the audit log hold nobody up either", function* () {
    const loud = yield* makeActive
    const quiet = yield* makeActive
    yield* whileLocked(
      ["audit_log"],
      Effect.gen(function* () {
        const asking = yield* Effect.fork(
          Effect.replicateEffect(asTenant(loud.tenant, "GET", "/audit-log?action=endpoint.created"), 40, {
            concurrency: "unbounded"
          })
        )
        const read = Effect.gen(function* () {
          const answer = yield* asTenant(quiet.tenant, "GET", `/endpoints/${quiet.endpointId}`)
          expect(answer.status, answer.text).toBe(200)
          yield* accepted(notify(notification(quiet.tenant.accountId)))
        })
        const statuses = (yield* whileRunning(asking, read)).map(({ status }) => status)
        expect(statuses.filter((status) => status === 429).length).toBeGreaterThanOrEqual(36)
      })
    )
  })
})
