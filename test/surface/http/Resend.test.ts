import { createHmac, randomUUID } from "node:crypto"
import type { SqlClient } from "@effect/sql"
import { expect } from "@effect/vitest"
import { Context, Deferred, Effect, Option } from "effect"
import { Deliveries } from "../../../src/destinations/deliveries/Deliveries.ts"
import { WakeUp } from "../../../src/engine/queue/WakeUp.ts"
import { endQueued, queueAgain } from "../../destinations/deliveries/StoredDeliveries.ts"
import { answering, attempted, attemptsIn, send } from "../../engine/Sending.ts"
import { inDatabase, onService, onSharedServiceWithWorker, TestService } from "../../harness/TestService.ts"
import { asTenant, makeSubscriber, notification, notify, type Tenant } from "../../inbound/Notifications.ts"
import { waitsForLock } from "../../platform/storage/PartitionBed.ts"
import { expectFailure } from "./Refusals.ts"

const failedDelivery = Effect.fnUntraced(function* (attempts = 6) {
  const { sql } = yield* TestService
  const { tenant, ...endpoint } = yield* makeSubscriber()
  yield* notify(notification(tenant.accountId))
  const [row] = yield* endQueued(sql, sql`endpoint_id = ${endpoint.id}`, "failed")
  yield* sql`
    UPDATE payments.deliveries SET attempt_count = ${attempts}, last_http_status = 503, last_error_code = 'http_error'
    WHERE endpoint_id = ${endpoint.id}`
  return { tenant, endpoint, id: row?.id ?? "" }
})

const retry = (tenant: Pick<Tenant, "id" | "key">, id: string, key?: string) =>
  asTenant(tenant, "POST", `/deliveries/${id}/retry`, key === undefined ? {} : { headers: { "idempotency-key": key } })

/** As its rows say it: the history's, and the queue's where it waits. */
const stored = (id: string) =>
  Effect.map(
    inDatabase<Record<string, unknown>>`
      SELECT d.state, d.attempt_count, d.finished_at, d.secret_ids, q.next_trigger, q.next_attempt_at <= now() AS due,
        q.attempt_count AS queued_count, q.secret_ids AS signing_ids
      FROM payments.deliveries d LEFT JOIN payments.delivery_queue q ON q.id = d.id WHERE d.id = ${id}`,
    ([row]) => row
  )

/** What the queue holds of a delivery that was re-sent after so many attempts. */
const waitingFor = (attempts: number) => ({ next_trigger: "manual", due: true, queued_count: attempts })

/** The secrets that a waiting delivery is bound to, as the history says, and as the queue does. */
const boundTo = (secretIds: ReadonlyArray<string | undefined>) => ({ secret_ids: secretIds, signing_ids: secretIds })

const recordsOf = (id: string) =>
  inDatabase`
    SELECT action, author_kind, target_type, environment, request_id FROM payments.audit_log WHERE target_id = ${id}`

const secretsOf = (endpointId: string) =>
  Effect.map(
    inDatabase<{ id: string }>`
      SELECT id FROM payments.endpoint_secrets WHERE endpoint_id = ${endpointId} ORDER BY created_at`,
    (rows) => rows.map(({ id }) => id)
  )

/** Retires the endpoint's secret so long ago, and gives it another one, as a rotation does. */
const rotated = Effect.fnUntraced(function* (endpointId: string, ago: string) {
  yield* inDatabase`
    UPDATE payments.endpoint_secrets SET retired_at = now() - ${ago}::interval
    WHERE endpoint_id = ${endpointId} AND retired_at IS NULL`
  yield* inDatabase`
    INSERT INTO payments.endpoint_secrets (organization_id, environment, id, endpoint_id, master_key_id, ciphertext)
    SELECT organization_id, environment, ${randomUUID()}, endpoint_id, master_key_id, ciphertext
    FROM payments.endpoint_secrets WHERE endpoint_id = ${endpointId} LIMIT 1`
})

onService({ roles: { api: true, worker: false } })("a re-send", (it) => {
  it.effect("queues the failed delivery at once for a manual attempt, and answers it", function* () {
    const { endpoint, id, tenant } = yield* failedDelivery()
    const answer = yield* retry(tenant, id)
    expect(answer.status, answer.text).toBe(200)
    expect(answer.json).toEqual({
      id,
      endpointId: endpoint.id,
      eventId: expect.stringMatching(/^svc_evt_/),
      type: "payment.succeeded",
      state: "queued",
      test: false,
      attemptCount: 6,
      nextAttemptAt: expect.any(String),
      createdAt: expect.any(String),
      finishedAt: null,
      lastHttpStatus: 503,
      lastErrorCode: "http_error",
      paymentId: expect.stringMatching(/^pi_/),
      amount: expect.any(Number),
      currency: expect.stringMatching(/^[a-z]{3}$/)
    })
    expect(yield* stored(id)).toMatchObject({ state: "queued", attempt_count: 6, ...waitingFor(6) })
    expect((yield* asTenant(tenant, "GET", `/deliveries/${id}`)).json).toMatchObject(answer.json)
  })

  it.effect("is done once under a key, whatever became of the delivery since", function* () {
    const { sql } = yield* TestService
    const { id, tenant } = yield* failedDelivery()
    const first = yield* retry(tenant, id, "send-it-again")
    expect(first.status, first.text).toBe(200)
    yield* endQueued(sql, sql`id = ${id}`, "failed")
    const repeated = yield* retry(tenant, id, "send-it-again")
    expect([repeated.status, repeated.text]).toEqual([200, first.text])
    expect(repeated.headers.get("idempotent-replayed")).toBe("true")
    expect(yield* stored(id)).toMatchObject({ state: "failed" })
    expect(yield* recordsOf(id)).toHaveLength(1)

    const other = yield* retry(tenant, randomUUID(), "send-it-again")
    expectFailure(other, { status: 409, code: "idempotency_key_reused", fields: [] })
    const short = yield* retry(tenant, id, "short")
    expectFailure(short, { status: 422, code: "validation_failed", fields: ["idempotency-key"] })
    expect((yield* retry(tenant, id, "and-once-more")).status).toBe(200)
    expect(yield* recordsOf(id)).toHaveLength(2)
  })

  it.effect("without a key counts as new each time, and keeps no answer", function* () {
    const { sql } = yield* TestService
    const { id, tenant } = yield* failedDelivery()
    const kept = sql`SELECT key FROM payments.idempotency_keys WHERE organization_id = ${tenant.id}`
    const before = yield* kept
    for (const _ of [1, 2]) {
      expect((yield* retry(tenant, id)).status).toBe(200)
      yield* endQueued(sql, sql`id = ${id}`, "failed")
    }
    expect(yield* recordsOf(id)).toHaveLength(2)
    expect(yield* kept).toEqual(before)
  })

  it.effect("is recorded with its author and request, and wakes the workers", function* () {
    const { services } = yield* TestService
    const { id, tenant } = yield* failedDelivery()
    const woken = Context.get(services, WakeUp).await()
    // What the notification told them
    yield* woken.pipe(Effect.timeoutOption("1 second"), Effect.repeat({ while: Option.isSome }))
    const answer = yield* retry(tenant, id)
    expect(yield* recordsOf(id)).toEqual([
      {
        action: "delivery.resent",
        author_kind: "api_key",
        target_type: "delivery",
        environment: "sandbox",
        request_id: answer.headers.get("request-id")
      }
    ])
    yield* woken
  })

  it.effect("that waits for the record of the delivery's attempt is judged by what that says", function* () {
    const { sql } = yield* TestService
    const { id, tenant } = yield* failedDelivery()
    yield* queueAgain(sql, sql`id = ${id}`)
    const ended = yield* Deferred.make<void>()
    const [, answer] = yield* Effect.all(
      [
        sql.withTransaction(
          Effect.zipRight(
            Effect.zipRight(endQueued(sql, sql`id = ${id}`, "failed"), Deferred.succeed(ended, undefined)),
            // Until the re-send stands in line
            waitsForLock(sql, "a statement that waits for the row", "%")
          )
        ),
        Effect.zipRight(Deferred.await(ended), retry(tenant, id))
      ],
      { concurrency: 2 }
    )
    expect(answer.status, answer.text).toBe(200)
    expect(yield* stored(id)).toMatchObject({ state: "queued", ...waitingFor(6) })
  })

  it.effect("that comes at once with many others, and with records of attempts, is queued or refused", function* () {
    const { sql } = yield* TestService
    const { id, tenant } = yield* failedDelivery()
    let asking = true
    const fail = endQueued(sql, sql`id = ${id}`, "failed").pipe(
      Effect.zipRight(Effect.sleep("2 millis")),
      Effect.repeat({ while: () => asking })
    )
    const ask = Effect.forEach(Array.from({ length: 120 }), () => retry(tenant, id), { concurrency: 20 }).pipe(
      Effect.ensuring(
        Effect.sync(() => {
          asking = false
        })
      )
    )
    const [answers] = yield* Effect.all([ask, fail], { concurrency: 2 })
    const statuses = new Set(answers.map(({ status }) => status))
    expect([...statuses].filter((status) => status !== 200 && status !== 409)).toEqual([])
    for (const answer of answers.filter(({ status }) => status === 409)) {
      expectFailure(answer, { status: 409, code: "delivery_not_failed", fields: [] })
    }
    const queued = answers.filter(({ status }) => status === 200).length
    expect(queued).toBeGreaterThan(0)
    expect(yield* recordsOf(id)).toHaveLength(queued)
  })

  const set = (columns: string) => (sql: SqlClient.SqlClient, id: string) =>
    sql`UPDATE payments.deliveries SET ${sql.literal(columns)} WHERE id = ${id}`
  const deleteEndpoint = (sql: SqlClient.SqlClient, id: string) => sql`
    UPDATE payments.endpoints SET deleted_at = now()
    WHERE id = (SELECT endpoint_id FROM payments.deliveries WHERE id = ${id})`
  const tooOld = "created_at = now() - interval '72 hours 1 second'"
  for (const [what, code, change] of [
    ["is queued", "delivery_not_failed", (sql: SqlClient.SqlClient, id: string) => queueAgain(sql, sql`id = ${id}`)],
    ["was delivered", "delivery_not_failed", set("state = 'delivered'")],
    ["has had its 12 attempts", "delivery_retry_limit_reached", set("attempt_count = 12")],
    ["was made more than 72 hours ago", "delivery_window_expired", set(tooOld)],
    ["has had its 12 attempts and is too old", "delivery_retry_limit_reached", set(`attempt_count = 12, ${tooOld}`)],
    ["went to an endpoint that is deleted", "endpoint_deleted", deleteEndpoint]
  ] as const) {
    it.effect(`is refused of a delivery that ${what}, which stays as it is`, function* () {
      const { sql } = yield* TestService
      const { id, tenant } = yield* failedDelivery()
      yield* change(sql, id)
      const before = yield* stored(id)
      expectFailure(yield* retry(tenant, id), { status: 409, code, fields: [] })
      expect(yield* stored(id)).toEqual(before)
      expect(yield* recordsOf(id)).toEqual([])
    })
  }

  it.effect("passes just within the limits: after 11 attempts, before 72 hours, of a paused endpoint", function* () {
    const { endpoint, id, tenant } = yield* failedDelivery(11)
    yield* inDatabase`UPDATE payments.deliveries SET created_at = now() - interval '71 hours 59 minutes' WHERE id = ${id}`
    yield* asTenant(tenant, "PATCH", `/endpoints/${endpoint.id}`, { body: { active: false } })
    expect((yield* retry(tenant, id)).status).toBe(200)
  })

  it.effect("is signed by the endpoint's secret of now where none of its own signs any more", function* () {
    const { endpoint, id, tenant } = yield* failedDelivery()
    const bound = yield* secretsOf(endpoint.id)
    // Bound to a secret that was retired before the delivery was stored: it signs for 24 hours and no longer
    yield* rotated(endpoint.id, "25 hours")
    const [current] = (yield* secretsOf(endpoint.id)).filter((secret) => !bound.includes(secret))
    yield* retry(tenant, id)
    expect(yield* stored(id)).toMatchObject(boundTo([current]))
  })

  it.effect("is not needed for a queued delivery that outlived its secrets: it is bound to today's", function* () {
    const { services, sql } = yield* TestService
    const { endpoint, id: young } = yield* failedDelivery()
    const bound = yield* secretsOf(endpoint.id)
    yield* sql`SELECT payments.add_day(payments.day_of(uuidv7(interval '-73 hours')))`
    const [old] = yield* sql<{ id: string }>`
        UPDATE payments.deliveries SET created_at = now() - interval '73 hours', id = uuidv7(interval '-73 hours')
        WHERE id = ${young} RETURNING id`
    const id = old?.id ?? ""
    yield* queueAgain(sql, sql`id = ${id}`)
    const rebind = Context.get(services, Deliveries).rebind
    yield* rebind
    expect(yield* stored(id)).toMatchObject(boundTo(bound))
    yield* rotated(endpoint.id, "1 hour")
    yield* rebind
    // Queued before the rotation: the old secret still signs it
    expect(yield* stored(id)).toMatchObject(boundTo(bound))
    yield* sql`DELETE FROM payments.endpoint_secrets WHERE id = ANY (${bound}::uuid[])`
    yield* rebind
    expect(yield* stored(id)).toMatchObject({ ...boundTo(yield* secretsOf(endpoint.id)), state: "queued" })
  })
})

onSharedServiceWithWorker("a re-sent delivery", (it) => {
  it.scoped("is attempted once for each time it is asked for, and signed anew", function* () {
    const consumer = yield* answering(410)
    const { endpoint, tenant } = yield* send(consumer.url)
    const { id } = yield* attempted(tenant, endpoint.id)
    // What may pass is not tried again by itself either: a person asked for this attempt
    consumer.answer(503)
    expect((yield* retry(tenant, String(id))).status).toBe(200)
    const failedAgain = yield* attempted(tenant, endpoint.id, 2)
    expect(failedAgain).toMatchObject({ state: "failed", attemptCount: 2, nextAttemptAt: null, lastHttpStatus: 503 })
    consumer.answer(204)
    expect((yield* retry(tenant, String(id))).status).toBe(200)
    const delivered = yield* attempted(tenant, endpoint.id, 3)
    expect(delivered).toMatchObject({ state: "delivered", lastErrorCode: null })
    expect(attemptsIn(delivered).map(({ trigger }) => trigger)).toEqual(["automatic", "manual", "manual"])
    expect(consumer.received).toHaveLength(3)
    for (const { body, headers } of consumer.received) {
      expect(headers["service-delivery-id"]).toBe(id)
      expect(body).toEqual(consumer.received[0]?.body)
      const [, t = "", v1 = ""] = /^t=(\d+),v1=([0-9a-f]{64})$/.exec(String(headers["service-signature"])) ?? []
      expect(v1).toBe(createHmac("sha256", endpoint.secret).update(`${t}.`).update(body).digest("hex"))
    }
    expectFailure(yield* retry(tenant, String(id)), { status: 409, code: "delivery_not_failed" })
  })
})
