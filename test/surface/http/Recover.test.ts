import { expect } from "@effect/vitest"
import { Deferred, Effect, Fiber, Option } from "effect"
import { Recoveries } from "../../../src/destinations/recoveries/Recoveries.ts"
import { mostCounted } from "../../../src/platform/kit/Request.ts"
import { endQueued, makeEndpoint, statesOf, storeDeliveries } from "../../destinations/deliveries/StoredDeliveries.ts"
import { eventually } from "../../harness/Eventually.ts"
import { type Answer, inAnotherProcess, inDatabase, onService, TestService } from "../../harness/TestService.ts"
import { asTenant, subscribe, type Tenant } from "../../inbound/Notifications.ts"
import { expectFailure } from "./Refusals.ts"

const hour = 3600

const hoursAgo = (hours: number) => new Date(Date.now() - hours * hour * 1000).toISOString()

const recover = (tenant: Pick<Tenant, "id" | "key">, endpointId: string, since: string) =>
  asTenant(tenant, "POST", `/endpoints/${endpointId}/recover`, { body: { since } })

/** Waits until the recovery of an answer is finished, and reads it. */
const untilFinished = (tenant: Tenant, started: Answer) =>
  eventually(
    "the recovery's end",
    Effect.map(
      asTenant(tenant, "GET", `/endpoints/${started.json["endpointId"]}/recoveries/${started.json["id"]}`),
      ({ json }) => (json["state"] === "finished" ? Option.some(json) : Option.none())
    )
  )

/** The recoveries of another process: with nothing in common but the database. */
const otherProcess = inAnotherProcess(Recoveries, Recoveries.layer)

/** Keeps everybody from taking a recovery on while the effect runs. */
const heldBack = <A, E, R>(id: string, effect: Effect.Effect<A, E, R>) =>
  Effect.gen(function* () {
    const { sql } = yield* TestService
    const held = yield* Deferred.make<void>()
    const release = yield* Deferred.make<void>()
    const holder = yield* sql`SELECT 1 FROM payments.recoveries WHERE id = ${id} FOR UPDATE`.pipe(
      Effect.zipRight(Deferred.succeed(held, undefined)),
      Effect.zipRight(Deferred.await(release)),
      sql.withTransaction,
      Effect.fork
    )
    yield* Deferred.await(held)
    return yield* Effect.ensuring(effect, Effect.zipRight(Deferred.succeed(release, undefined), Fiber.await(holder)))
  })

// Not a shared one: what is left over here goes on in the background
onService({ roles: { api: true, worker: false } })("a recovery", (it) => {
  it.effect("re-sends what failed since then, and nothing else", function* () {
    const { sql } = yield* TestService
    const { endpointId, of, tenant } = yield* makeEndpoint
    const other = yield* subscribe(tenant)
    const ids = [
      ...(yield* storeDeliveries({ ...of, count: 2, finishedAgo: 1.9 * hour })),
      // Made earlier, failed in time
      ...(yield* storeDeliveries({ ...of, createdAgo: 71 * hour, finishedAgo: 60, attempts: 11 }))
    ]
    const untouched = [
      ...(yield* storeDeliveries({ ...of, finishedAgo: 2.1 * hour })),
      ...(yield* storeDeliveries({ ...of, test: true })),
      ...(yield* storeDeliveries({ ...of, state: "delivered" })),
      ...(yield* storeDeliveries({ ...of, state: "queued" })),
      ...(yield* storeDeliveries({ ...of, endpointId: other.id })),
      ...(yield* storeDeliveries({ ...of, createdAgo: 73 * hour, finishedAgo: 60 })),
      ...(yield* storeDeliveries({ ...of, attempts: 12 }))
    ]
    const rows = (of: ReadonlyArray<string>) => sql<{ id: string }>`
        SELECT d.id, d.state, d.attempt_count, d.finished_at, q.next_trigger, q.next_attempt_at
        FROM payments.deliveries d LEFT JOIN payments.delivery_queue q ON q.id = d.id
        WHERE d.id = ANY (${of}::uuid[]) ORDER BY d.id`
    const before = yield* rows(untouched)
    const since = hoursAgo(2)
    const answer = yield* recover(tenant, endpointId, since)
    expect(answer.status, answer.text).toBe(202)
    expect(answer.json).toEqual({
      id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      endpointId,
      since,
      state: "finished",
      total: 5,
      queued: 3,
      skipped: 2,
      createdAt: expect.any(String),
      finishedAt: expect.any(String)
    })
    for (const row of yield* rows(ids)) {
      expect(row).toMatchObject({ state: "queued", next_trigger: "manual", finished_at: null })
    }
    expect(yield* rows(untouched)).toEqual(before)
    const recorded =
      yield* sql`SELECT action, request_id FROM payments.audit_log WHERE target_id = ${String(answer.json["id"])}`
    expect(recorded).toEqual([{ action: "recovery.started", request_id: answer.headers.get("request-id") }])
  })

  it.effect("of very many counts them no further than its bound before it answers, as does the list", function* () {
    const { endpointId, of, tenant } = yield* makeEndpoint
    yield* storeDeliveries({ ...of, attempts: 12, count: mostCounted + 20, finishedAgo: 100 })
    const answer = yield* recover(tenant, endpointId, hoursAgo(1))
    expect(answer.status, answer.text).toBe(202)
    expect(answer.json).toMatchObject({ state: "running", total: mostCounted })
    const list = yield* asTenant(tenant, "GET", "/endpoints")
    expect(list.json["data"]).toMatchObject([{ id: endpointId, recentFailures: mostCounted }])
  })

  it.effect("says in the end how many there were, if it had counted only some", function* () {
    const { endpointId, of, tenant } = yield* makeEndpoint
    yield* storeDeliveries({ ...of, attempts: 12, count: 350, finishedAgo: 100 })
    const answer = yield* recover(tenant, endpointId, hoursAgo(1))
    // As if they were more than are counted
    yield* inDatabase`UPDATE payments.recoveries SET total = 100 WHERE id = ${String(answer.json["id"])} AND state = 'running'`
    expect(yield* untilFinished(tenant, answer)).toMatchObject({ queued: 0, skipped: 350, total: 350 })
  })

  it.effect("of many goes on in the background, and says how far it is", function* () {
    const { endpointId, of, tenant } = yield* makeEndpoint
    yield* storeDeliveries({ ...of, count: 249, finishedAgo: 100 })
    yield* storeDeliveries({ ...of, attempts: 12, finishedAgo: 50 })
    const started = yield* recover(tenant, endpointId, hoursAgo(72))
    expect(started.json).toMatchObject({ state: "running", total: 250, queued: 100, skipped: 0, finishedAt: null })
    expect(yield* untilFinished(tenant, started)).toMatchObject({ total: 250, queued: 249, skipped: 1 })
    expect(yield* statesOf(endpointId)).toEqual({ queued: 249, failed: 1 })
  })

  it.scoped("is finished by other processes where the one that began it is gone, each delivery once", function* () {
    const { endpointId, of, tenant } = yield* makeEndpoint
    yield* storeDeliveries({ ...of, count: 450, finishedAgo: 100 })
    const ended: Array<number> = []
    const started = yield* recover(tenant, endpointId, hoursAgo(1))
    const processes = [yield* otherProcess, yield* otherProcess, yield* otherProcess]
    const work = (recoveries: Recoveries["Type"]) =>
      recoveries.step.pipe(
        Effect.tap((done) => {
          if (Option.isSome(done)) ended.push(done.value.queued)
        }),
        Effect.zipRight(
          inDatabase<{ state: string }>`SELECT state FROM payments.recoveries WHERE id = ${String(started.json["id"])}`
        ),
        Effect.repeat({ until: ([row]) => row?.state === "finished" })
      )
    yield* Effect.forEach(processes, work, { concurrency: 3 })
    const { json } = yield* asTenant(tenant, "GET", `/endpoints/${endpointId}/recoveries/${started.json["id"]}`)
    expect(json).toMatchObject({ state: "finished", total: 450, queued: 450, skipped: 0 })
    expect(ended.length).toBeGreaterThan(0)
    expect(yield* statesOf(endpointId)).toEqual({ queued: 450 })
  })

  it.effect("does not meet a delivery twice that fails again, and counts what others re-sent as skipped", function* () {
    const { sql } = yield* TestService
    const { endpointId, of, tenant } = yield* makeEndpoint
    const ids = yield* storeDeliveries({ ...of, count: 850, finishedAgo: 100 })
    const started = yield* recover(tenant, endpointId, hoursAgo(1))
    const id = String(started.json["id"])
    yield* heldBack(
      id,
      Effect.gen(function* () {
        const again = yield* endQueued(sql, sql`endpoint_id = ${endpointId}`, "failed")
        yield* sql`
            UPDATE payments.deliveries SET attempt_count = attempt_count + 1
            WHERE id = ANY (${again.map((one) => one.id)}::uuid[])`
        const [waiting] = yield* sql<{ id: string }>`
            SELECT d.id FROM payments.deliveries d, payments.recoveries r
            WHERE d.endpoint_id = ${endpointId} AND r.id = ${id} AND d.finished_at < r.created_at LIMIT 1`
        expect(ids).toContain(waiting?.id)
        const retried = yield* asTenant(tenant, "POST", `/deliveries/${waiting?.id}/retry`)
        expect(retried.status, retried.text).toBe(200)
      })
    )
    const finished = yield* untilFinished(tenant, started)
    expect(finished).toMatchObject({ total: 850 })
    expect(Number(finished["queued"]) + Number(finished["skipped"])).toBe(850)
    expect(Number(finished["skipped"])).toBeGreaterThan(0)
    const [met] = yield* sql<{ twice: number }>`
        SELECT count(*)::int AS twice FROM payments.deliveries
        WHERE endpoint_id = ${endpointId} AND attempt_count > 1 AND state = 'queued'`
    expect(met).toEqual({ twice: 0 })
  })

  it.effect("is one at a time per endpoint: asking again answers it, unless it reaches back less", function* () {
    const { endpointId, of, tenant } = yield* makeEndpoint
    const other = yield* subscribe(tenant)
    yield* storeDeliveries({ ...of, count: 250, finishedAgo: 100 })
    const started = yield* recover(tenant, endpointId, hoursAgo(2))
    yield* heldBack(
      String(started.json["id"]),
      Effect.gen(function* () {
        const again = yield* recover(tenant, endpointId, hoursAgo(1))
        expect([again.status, again.json["id"]]).toEqual([202, started.json["id"]])
        expectFailure(yield* recover(tenant, endpointId, hoursAgo(3)), { status: 409, code: "recovery_in_progress" })
        const elsewhere = yield* recover(tenant, other.id, hoursAgo(3))
        expect(elsewhere.json).toMatchObject({ state: "finished", total: 0 })
      })
    )
    yield* untilFinished(tenant, started)
    expect((yield* recover(tenant, endpointId, hoursAgo(3))).json["id"]).not.toBe(started.json["id"])
  })

  it.effect("asked for ten times at once re-sends each delivery once", function* () {
    const { endpointId, of, tenant } = yield* makeEndpoint
    yield* storeDeliveries({ ...of, count: 20, finishedAgo: 100 })
    const since = hoursAgo(1)
    const answers = yield* Effect.all(
      Array.from({ length: 10 }, () => recover(tenant, endpointId, since)),
      { concurrency: 10 }
    )
    expect(answers.map(({ status }) => status)).toEqual(Array.from({ length: 10 }, () => 202))
    expect(answers.map(({ json }) => Number(json["queued"])).reduce((a, b) => a + b)).toBe(20)
    expect(yield* statesOf(endpointId)).toEqual({ queued: 20 })
  })

  it.effect("takes an instant in any zone, up to 72 hours back", function* () {
    const { endpointId, tenant } = yield* makeEndpoint
    const zoned = `${new Date(Date.now() + hour * 1000).toISOString().slice(0, 19)}+02:00`
    for (const since of [zoned, hoursAgo(72), new Date().toISOString()]) {
      const answer = yield* recover(tenant, endpointId, since)
      expect(answer.status, answer.text).toBe(202)
      expect(answer.json["since"]).toBe(new Date(since).toISOString())
    }
    expectFailure(yield* recover(tenant, endpointId, hoursAgo(72.1)), {
      status: 422,
      code: "validation_failed",
      fields: ["since"]
    })
  })

  it.effect("is listed with its endpoint, newest first, in pages", function* () {
    const { endpointId, tenant } = yield* makeEndpoint
    const ids: Array<unknown> = []
    for (let n = 0; n < 5; n++) ids.unshift((yield* recover(tenant, endpointId, hoursAgo(1))).json["id"])
    const page = Effect.fnUntraced(function* (query: string) {
      const { json } = yield* asTenant(tenant, "GET", `/endpoints/${endpointId}/recoveries${query}`)
      const data = json["data"] as ReadonlyArray<Record<string, unknown>> // the API's JSON: asserted below
      return { ids: data.map(({ id }) => id), more: json["has_more"] }
    })
    expect(yield* page("")).toEqual({ ids, more: false })
    expect(yield* page("?limit=2")).toEqual({ ids: ids.slice(0, 2), more: true })
    expect(yield* page(`?limit=3&starting_after=${ids[1]}`)).toEqual({ ids: ids.slice(2), more: false })
  })

  it.effect("is refused of a deleted endpoint, and known to its endpoint alone", function* () {
    const { endpointId, tenant } = yield* makeEndpoint
    const other = yield* subscribe(tenant)
    const notFound = { status: 404, code: "resource_not_found" }
    const one = `/recoveries/${(yield* recover(tenant, endpointId, hoursAgo(1))).json["id"]}`
    expectFailure(yield* asTenant(tenant, "GET", `/endpoints/${other.id}${one}`), notFound)
    yield* inDatabase`UPDATE payments.endpoints SET deleted_at = now() WHERE id = ${endpointId}`
    expectFailure(yield* recover(tenant, endpointId, hoursAgo(1)), { status: 409, code: "endpoint_deleted" })
    expect((yield* asTenant(tenant, "GET", `/endpoints/${endpointId}${one}`)).status).toBe(200)
  })
})
