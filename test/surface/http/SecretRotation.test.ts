import { randomUUID } from "node:crypto"
import { expect } from "@effect/vitest"
import { Context, Effect } from "effect"
import { Endpoints } from "../../../src/destinations/endpoints/Endpoints.ts"
import { endQueued, statesOf } from "../../destinations/deliveries/StoredDeliveries.ts"
import {
  makeDestination,
  payment,
  received,
  signersOf,
  verifies,
  withWorker
} from "../../destinations/endpoints/Delivering.ts"
import { type Answer, inDatabase, onSharedService, TestService } from "../../harness/TestService.ts"
import { subscribe } from "../../inbound/Notifications.ts"
import { expectFailure } from "./Refusals.ts"

const secretIn = (answer: Answer): string => {
  expect(answer.status, answer.text).toBe(200)
  return String(answer.json["signingSecret"])
}

/** Makes all that has happened to an endpoint so much older. */
const later = (endpointId: string, interval: string) =>
  Effect.flatMap(TestService, ({ sql }) =>
    Effect.all([
      sql`
        UPDATE payments.endpoint_secrets SET created_at = created_at - ${interval}::interval,
          retired_at = retired_at - ${interval}::interval WHERE endpoint_id = ${endpointId}`,
      sql`
        UPDATE payments.deliveries SET created_at = created_at - ${interval}::interval,
          finished_at = finished_at - ${interval}::interval WHERE endpoint_id = ${endpointId}`,
      sql`
        UPDATE payments.delivery_queue SET created_at = created_at - ${interval}::interval
        WHERE endpoint_id = ${endpointId}`
    ])
  )

const secretsOf = (endpointId: string) =>
  inDatabase<{ id: string; retired: boolean }>`
    SELECT id, retired_at IS NOT NULL AS retired FROM payments.endpoint_secrets WHERE endpoint_id = ${endpointId}
    ORDER BY created_at`

const clean = Effect.flatMap(TestService, ({ services }) => Context.get(services, Endpoints).clean)

/** What is left of an endpoint's two secrets after the upkeep, so long after the rotation. */
const leftAfter = (id: string, interval: string) =>
  Effect.gen(function* () {
    yield* later(id, interval)
    yield* clean
    return (yield* secretsOf(id)).map(({ retired }) => (retired ? "previous" : "current"))
  })

const day = 24 * 60 * 60 * 1000

const both = ["current", "previous"] as const

onSharedService("rotating a secret", (it) => {
  it.scoped("gives an endpoint a new one whose secret was deleted, because its master key was lost", function* () {
    const { consumer, id, rotate, send, tenant } = yield* makeDestination()
    yield* inDatabase`DELETE FROM payments.endpoint_secrets WHERE endpoint_id = ${id}`
    const rotated = yield* rotate()
    const secret = secretIn(rotated)
    expect(rotated.json["previousSecretExpiresAt"]).toBeNull()
    expect((yield* send("GET")).json["previousSecretExpiresAt"]).toBeNull()
    yield* payment(tenant)
    expect(signersOf(yield* withWorker(received(consumer, 1)), { secret })).toEqual(["secret"])
  })

  it.scoped("is the only thing that an endpoint needs whose secret was deleted: nobody waits for it", function* () {
    const { request, sql } = yield* TestService
    const { base, consumer, id, rotate, send, tenant, test } = yield* makeDestination()
    const { id: other } = yield* subscribe(tenant)
    yield* payment(tenant)
    yield* endQueued(sql, sql`endpoint_id = ${id}`, "failed")
    yield* sql`DELETE FROM payments.endpoint_secrets WHERE endpoint_id = ${id}`
    yield* payment(tenant)
    expect(yield* statesOf(other)).toEqual({ queued: 2 })
    expect(yield* statesOf(id)).toEqual({ failed: 1 })
    const since = new Date(Date.now() - 60_000).toISOString()
    const replay = () => send("POST", "/replay", { headers: { "idempotency-key": randomUUID() }, body: { since } })
    for (const refused of [yield* test("payment.succeeded"), yield* replay()]) {
      expectFailure(refused, { status: 409, code: "endpoint_paused" })
      expect(refused.json["error"]).toContain("no signing secret")
    }
    const recovery = yield* send("POST", "/recover", { body: { since } })
    expect(recovery.json, recovery.text).toMatchObject({ state: "finished", queued: 1 })
    yield* endQueued(sql, sql`endpoint_id = ${id}`, "failed")
    const [failed] = yield* sql<{ id: string }>`SELECT id FROM payments.deliveries WHERE endpoint_id = ${id}`
    const resent = yield* request("POST", `${base}/deliveries/${failed?.id}/retry`, { key: tenant.key })
    expect([resent.status, resent.json["state"]], resent.text).toEqual([200, "queued"])

    const secret = secretIn(yield* rotate())
    expect((yield* send("GET", "/skipped")).json["data"]).toHaveLength(1)
    expect((yield* replay()).json).toMatchObject({ state: "finished", queued: 2 })
    yield* withWorker(received(consumer, 3))
    expect(consumer.received.map((one) => signersOf(one, { secret }))).toEqual([["secret"], ["secret"], ["secret"]])
  })

  it.scoped("answers the endpoint with a new secret, shown this once and kept encrypted", function* () {
    const { base, id, rotate, secret, send, tenant } = yield* makeDestination()
    const before = (yield* send("GET")).json
    const rotated = yield* rotate()
    const { signingSecret, standardWebhooksSecret, previousSecretExpiresAt, updatedAt, ...record } = rotated.json
    expect(signingSecret).toMatch(/^whsec_[A-Za-z0-9_-]{43}$/)
    expect(signingSecret).not.toBe(secret)
    expect(Math.abs(Date.parse(String(previousSecretExpiresAt)) - Date.now() - day)).toBeLessThan(60_000)
    expect({ ...record, updatedAt: before["updatedAt"], previousSecretExpiresAt: null }).toEqual(before)
    expect(String(updatedAt) > String(before["updatedAt"])).toBe(true)
    const shown = yield* send("GET")
    expect(shown.json).toEqual({ ...record, updatedAt, previousSecretExpiresAt })
    const { request } = yield* TestService
    const list = yield* request("GET", `${base}/endpoints`, { key: tenant.key })
    const log = yield* request("GET", `${base}/audit-log`, { key: tenant.key })
    const [dump] = yield* inDatabase<{ text: string }>`
      SELECT string_agg(t::text, ' ') AS text FROM payments.endpoint_secrets t WHERE endpoint_id = ${id}`
    for (const text of [shown.text, list.text, log.text, dump?.text ?? ""]) {
      expect(text).not.toContain(String(signingSecret).slice(6))
      expect(text).not.toContain(secret.slice(6))
      expect(text).not.toContain(String(standardWebhooksSecret).slice(6))
    }
    expect(JSON.parse(log.text).data[0]).toMatchObject({
      action: "endpoint.secret_rotated",
      author: { kind: "api_key" },
      target: { type: "endpoint", id },
      requestId: rotated.headers.get("request-id")
    })
  })

  for (const [what, paid, wait, signers] of [
    ["has new events signed by the new secret first and by the previous one", "then", "23 hours 59 minutes", both],
    ["leaves new events to the new secret alone", "then", "24 hours 1 second", ["current"]],
    ["ends the previous secret's part for what was made of both", "between", "24 hours 1 second", ["current"]],
    ["leaves what was queued before to the previous secret alone", "before", "0 seconds", ["previous"]],
    ["leaves what was queued before to the previous secret alone", "before", "25 hours", ["previous"]],
    ["leaves what was queued before to the previous secret alone", "before", "71 hours 59 minutes", ["previous"]]
  ] as const) {
    it.scoped(`${what}, ${wait} later`, function* () {
      const { consumer, id, rotate, secret, send, tenant } = yield* makeDestination()
      if (paid === "before") yield* payment(tenant)
      const secrets = { previous: secret, current: secretIn(yield* rotate()) }
      if (paid === "between") yield* payment(tenant)
      yield* later(id, wait)
      yield* clean
      if (paid === "then") yield* payment(tenant)
      const request = yield* withWorker(received(consumer, 1))
      expect(signersOf(request, secrets)).toEqual(signers)
      // Whichever of the signers' secrets a consumer knows, it can verify
      expect(signers.map((one) => verifies(request, secrets[one]))).toEqual(signers.map(() => true))
      const isOver = !["0 seconds", "23 hours 59 minutes"].includes(wait)
      expect((yield* send("GET")).json["previousSecretExpiresAt"] === null).toBe(isOver)
    })
  }

  it.scoped("keeps the previous secret for the re-send of what has failed before", function* () {
    const { request, sql } = yield* TestService
    const { base, consumer, id, rotate, secret, tenant } = yield* makeDestination()
    yield* payment(tenant)
    const [delivery] = yield* endQueued(sql, sql`endpoint_id = ${id}`, "failed")
    yield* sql`UPDATE payments.deliveries SET attempt_count = 6 WHERE endpoint_id = ${id}`
    const secrets = { previous: secret, current: secretIn(yield* rotate()) }
    yield* later(id, "71 hours")
    yield* clean
    const resent = yield* request("POST", `${base}/deliveries/${delivery?.id}/retry`, { key: tenant.key })
    expect(resent.status, resent.text).toBe(200)
    expect(signersOf(yield* withWorker(received(consumer, 1)), secrets)).toEqual(["previous"])
  })

  it.scoped("twice within 24 hours leaves new events to the newest secret and its predecessor", function* () {
    const { consumer, id, rotate, secret, send, tenant } = yield* makeDestination()
    yield* payment(tenant)
    const second = secretIn(yield* rotate())
    yield* later(id, "1 hour")
    yield* payment(tenant)
    const answer = yield* rotate()
    const secrets = { first: secret, second, third: secretIn(answer) }
    yield* payment(tenant)
    yield* withWorker(received(consumer, 3))
    const signers = consumer.received.map((request) => signersOf(request, secrets).join())
    expect(signers.toSorted()).toEqual(["first", "second,first", "third,second"])
    const { previousSecretExpiresAt } = (yield* send("GET")).json
    expect(previousSecretExpiresAt).toBe(answer.json["previousSecretExpiresAt"])
  })

  it.scoped("ten times at once makes ten secrets, of which one is current and two sign", function* () {
    const { consumer, id, rotate, secret, send, tenant } = yield* makeDestination()
    const answers = yield* Effect.all(
      Array.from({ length: 10 }, () => rotate()),
      { concurrency: "unbounded" }
    )
    const made = answers.map(secretIn)
    expect(new Set([secret, ...made]).size).toBe(11)
    const stored = yield* secretsOf(id)
    expect(stored).toHaveLength(11)
    // The current one is the newest: what was waited for came before
    expect(stored.map(({ retired }) => retired)).toEqual([...Array.from({ length: 10 }, () => true), false])
    yield* payment(tenant)
    const request = yield* withWorker(received(consumer, 1))
    const signers = signersOf(request, Object.fromEntries(made.map((one) => [one, one])))
    const ends = answers.map(({ json }) => String(json["previousSecretExpiresAt"])).toSorted()
    expect(signers).toHaveLength(2)
    expect(new Set(signers).size).toBe(2)
    const last = answers.find(({ json }) => json["signingSecret"] === signers[0])
    expect(last?.json["previousSecretExpiresAt"]).toBe(ends.at(-1))
    expect((yield* send("GET")).json["previousSecretExpiresAt"]).toBe(ends.at(-1))
  })

  it.scoped("without end keeps the 64 newest replaced secrets; what waited for others gets the current", function* () {
    const { consumer, id, rotate, secret, tenant } = yield* makeDestination()
    yield* payment(tenant)
    for (let round = 0; round < 64; round++) yield* rotate()
    expect(yield* secretsOf(id)).toHaveLength(1 + 64)
    const secrets = { first: secret, previous: secretIn(yield* rotate()), current: secretIn(yield* rotate()) }
    expect(yield* secretsOf(id)).toHaveLength(1 + 64)
    yield* payment(tenant)
    yield* withWorker(received(consumer, 2))
    const signers = consumer.received.map((request) => signersOf(request, secrets).join())
    expect(signers.toSorted()).toEqual(["current", "current,previous"])
  })

  it.scoped("again with the same Idempotency-Key is no second rotation, and without one it is", function* () {
    const { id, rotate, test } = yield* makeDestination()
    const headers = { "idempotency-key": randomUUID() }
    const first = yield* rotate({ headers })
    const again = yield* rotate({ headers })
    expect(again.text).toBe(first.text)
    expect(again.headers.get("idempotent-replayed")).toBe("true")
    expect(yield* secretsOf(id)).toHaveLength(2)
    const other = yield* test("payment.succeeded", headers["idempotency-key"])
    expectFailure(other, { status: 409, code: "idempotency_key_reused", fields: [] })
    expect(secretIn(yield* rotate())).not.toBe(secretIn(yield* rotate()))
    expect(yield* secretsOf(id)).toHaveLength(4)
    const bad = yield* rotate({ headers: { "idempotency-key": "short" } })
    expectFailure(bad, { status: 422, code: "validation_failed", fields: ["idempotency-key"] })
  })

  it.scoped("erases the previous one after 24 hours if nothing can need it, and never the current one", function* () {
    const { id, rotate, tenant } = yield* makeDestination()
    yield* payment(tenant)
    yield* withWorker(
      Effect.repeat(inDatabase`SELECT 1 FROM payments.deliveries WHERE endpoint_id = ${id} AND state = 'delivered'`, {
        until: (rows) => rows.length > 0
      })
    )
    yield* rotate()
    expect(yield* leftAfter(id, "23 hours 59 minutes")).toEqual(["previous", "current"])
    expect(yield* leftAfter(id, "2 minutes")).toEqual(["current"])
    expect(yield* leftAfter(id, "1000 days")).toEqual(["current"])
  })

  it.scoped("keeps the previous one for what still waits or may be re-sent, until 72 hours have passed", function* () {
    const { sql } = yield* TestService
    for (const state of ["queued", "failed"]) {
      const { id, rotate, tenant } = yield* makeDestination()
      yield* payment(tenant)
      if (state === "failed") yield* endQueued(sql, sql`endpoint_id = ${id}`, "failed")
      yield* rotate()
      expect(yield* leftAfter(id, "71 hours 59 minutes"), state).toEqual(["previous", "current"])
      expect(yield* leftAfter(id, "2 minutes"), state).toEqual(["current"])
    }
  })

  it.scoped("keeps the previous one for the 72 hours if there are too many deliveries to look through", function* () {
    const { sql } = yield* TestService
    const { id, rotate, tenant } = yield* makeDestination()
    yield* payment(tenant)
    yield* sql`
        INSERT INTO payments.deliveries (organization_id, environment, id, endpoint_id, event_id, secret_ids, state,
          attempts, finished_at)
        SELECT d.organization_id, d.environment, uuidv7(), d.endpoint_id, d.event_id, d.secret_ids, 'delivered',
          '{}', now()
        FROM payments.deliveries d, generate_series(1, 1000) WHERE d.endpoint_id = ${id}`
    yield* endQueued(sql, sql`endpoint_id = ${id}`, "delivered")
    yield* rotate()
    expect(yield* leftAfter(id, "25 hours")).toEqual(["previous", "current"])
    expect(yield* leftAfter(id, "48 hours")).toEqual(["current"])
  })
})
