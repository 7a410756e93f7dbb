import { randomUUID } from "node:crypto"
import { Context, Deferred, Effect, Fiber, Layer, Option } from "effect"
import { readStream } from "../destinations/event-streams/Reader.ts"
import { eventually, eventuallyTrue } from "../harness/Eventually.ts"
import type { Answer } from "../harness/TestService.ts"
import { expect, layer } from "../harness/Tests.ts"
import { expectFailure } from "../surface/http/Refusals.ts"
import { idOf } from "../surface/http/Samples.ts"
import { type Installation, installation, type ServiceProcess } from "./Processes.ts"

/** Two processes, their rate limit the contract's. */
class Installed extends Context.Tag("test/Installed")<Installed, Installation>() {
  static readonly layer = Layer.scoped(Installed, installation()).pipe(Layer.orDie)
}

const endpointBody = { name: "Orders", url: "http://localhost:1/hook", events: ["payment.succeeded"] }

/** A key of its own, made by hand as another process would: each test has its own rate limit. */
const newKey = Effect.gen(function* () {
  const { key, sql } = yield* Installed
  const id = randomUUID()
  const text = `pk_test_${id.replaceAll("-", "")}00000000000`
  yield* sql`
    INSERT INTO payments.api_keys
      (id, organization_id, environment, name, key_hash, key_prefix, last_four, permissions)
    SELECT ${id}, organization_id, environment, 'Test', sha256(${text}::text::bytea), key_prefix, '0000', permissions
    FROM payments.api_keys WHERE key_hash = sha256(${key}::text::bytea)`
  return { id, text }
})

const post = (
  process: ServiceProcess,
  path: string,
  options: { readonly key: string; readonly idempotencyKey: string; readonly body: unknown }
) =>
  Effect.flatMap(Installed, ({ organizationId }) =>
    process.request("POST", `/v2/organizations/${organizationId}${path}`, {
      key: options.key,
      headers: { "idempotency-key": options.idempotencyKey },
      body: options.body
    })
  )

const listEndpoints = (process: ServiceProcess, key: string) =>
  Effect.flatMap(Installed, ({ organizationId }) =>
    process.request("GET", `/v2/organizations/${organizationId}/integrations/endpoints`, { key })
  )

const endpointIds = Effect.flatMap(Installed, ({ organizationId, sql }) =>
  Effect.map(
    sql<{ id: string }>`SELECT id FROM payments.endpoints WHERE organization_id = ${organizationId} ORDER BY id`,
    (rows) => rows.map(({ id }) => id)
  )
)

/** The ids of the account's products, asked at the provider itself. */
const productIds = Effect.flatMap(Installed, ({ accountId, emulator, providerKey }) =>
  Effect.promise(async () => {
    const response = await fetch(`${emulator.url}/v1/products?limit=100`, {
      headers: { authorization: `Bearer ${providerKey}`, "stripe-account": accountId }
    })
    // The emulator's own tests hold it to this shape
    const { data } = (await response.json()) as { readonly data: ReadonlyArray<{ readonly id: string }> }
    return data.map(({ id }) => id)
  })
)

const recordsOf = (targetId: string) =>
  Effect.flatMap(Installed, ({ sql }) => sql`SELECT 1 FROM payments.audit_log WHERE target_id = ${targetId}`)

/** The state of a request under a key, once there is one. */
const begun = (idempotencyKey: string) =>
  Effect.flatMap(Installed, ({ sql }) =>
    eventually(
      "the request has begun",
      Effect.map(sql`SELECT 1 FROM payments.idempotency_keys WHERE key = ${idempotencyKey}`, ([row]) =>
        Option.fromNullable(row)
      )
    )
  )

/** As if the minute had passed after which a process is taken for dead. */
const passLease = (idempotencyKey: string) =>
  Effect.flatMap(
    Installed,
    ({ sql }) => sql`
      UPDATE payments.idempotency_keys SET locked_until = now() - interval '1 second'
      WHERE key = ${idempotencyKey} AND locked_until IS NOT NULL`
  )

const inProgress = { status: 409, code: "idempotency_request_in_progress" }

/** One effect, one answer: everybody got it, or was told that it is under way. */
const expectOneEffect = (answers: ReadonlyArray<Answer>) => {
  const good = answers.filter(({ status }) => status === 200)
  expect(good.filter(({ headers }) => headers.get("idempotent-replayed") === null)).toHaveLength(1)
  expect(new Set(good.map(({ text }) => text)).size).toBe(1)
  for (const answer of answers) if (answer.status !== 200) expectFailure(answer, inProgress)
}

layer(Installed.layer)("two processes", (it) => {
  it.effect("together let 600 requests of a key through, not 1200", function* () {
    const { processes } = yield* Installed
    const { text: key } = yield* newKey
    const startedAt = Date.now()
    const answers = yield* Effect.all(
      Array.from({ length: 1500 }, (_, n) =>
        Effect.map(listEndpoints(processes[n % 2 === 0 ? 0 : 1], key), (answer) => ({ process: n % 2, answer }))
      ),
      { concurrency: 48 }
    )
    const seconds = (Date.now() - startedAt) / 1000
    const passed = answers.filter(({ answer }) => answer.status === 200)
    const refused = answers.filter(({ answer }) => answer.status === 429)
    expect(passed.length + refused.length).toBe(1500)
    // What came back while the requests were under way, ten a second, passes too
    expect(passed.length).toBeGreaterThanOrEqual(600 * 0.98)
    expect(passed.length).toBeLessThanOrEqual(600 * 1.02 + 10 * seconds)
    for (const process of [0, 1]) {
      expect(passed.filter((one) => one.process === process).length).toBeGreaterThan(100)
      expect(refused.filter((one) => one.process === process).length).toBeGreaterThan(100)
    }
  })

  it.effect("make one endpoint and one product of 200 requests at once under one idempotency key", function* () {
    const { processes } = yield* Installed
    const { text: key } = yield* newKey
    const made = [
      ["/integrations/endpoints", endpointBody, endpointIds],
      ["/provider/products", { name: "Coffee" }, productIds]
    ] as const
    for (const [path, body, ids] of made) {
      const idempotencyKey = randomUUID()
      const before = yield* ids
      const answers = yield* Effect.all(
        Array.from({ length: 200 }, (_, n) =>
          post(processes[n % 2 === 0 ? 0 : 1], path, { key, idempotencyKey, body })
        ),
        { concurrency: "unbounded" }
      )
      expectOneEffect(answers)
      const [added, ...others] = (yield* ids).filter((id) => !before.includes(id))
      expect(others, path).toEqual([])
      expect(answers.flatMap((answer) => (answer.status === 200 ? [idOf(answer)] : []))).toContain(added)
      expect(yield* recordsOf(added ?? "")).toHaveLength(1)
      for (const process of processes) {
        const again = yield* post(process, path, { key, idempotencyKey, body })
        expect(again.headers.get("idempotent-replayed")).toBe("true")
        expect(idOf(again)).toBe(added)
      }
    }
  })

  it.effect("both soon refuse a key that somebody else has revoked", function* () {
    const { processes, sql } = yield* Installed
    const { id, text: key } = yield* newKey
    for (const process of processes) expect((yield* listEndpoints(process, key)).status).toBe(200)
    yield* sql`UPDATE payments.api_keys SET revoked_at = now() WHERE id = ${id}`
    for (const process of processes) {
      const answer = yield* Effect.repeat(listEndpoints(process, key), { while: ({ status }) => status === 200 })
      expectFailure(answer, { status: 401, code: "api_key_invalid" })
    }
  })

  it.scoped("stream each other's events, and one goes on with the stream of another that is killed", function* () {
    const { organizationId, processes, start } = yield* Installed
    const { text: key } = yield* newKey
    const doomed = yield* start
    const happen = Effect.map(
      post(processes[0], "/integrations/event-triggers", {
        key,
        idempotencyKey: randomUUID(),
        body: { type: "milestone.first_payment" }
      }),
      ({ json }) => String(json["eventId"])
    )
    const path = `/v2/organizations/${organizationId}/integrations/event-stream`
    const first = yield* readStream(doomed.baseUrl, path, { "x-api-key": key })
    yield* eventuallyTrue("it is ready", () => first.messages.length === 1)
    const one = yield* happen
    yield* eventuallyTrue("the first event", () => first.events().includes(one))
    yield* doomed.kill
    yield* eventuallyTrue("its end", first.ended)
    const two = yield* happen
    const second = yield* readStream(processes[1].baseUrl, path, { "x-api-key": key, "last-event-id": first.place() })
    yield* eventuallyTrue("the second event", () => second.events().includes(two))
  })

  it.scoped("make nothing twice when one is killed between the provider's answer and its own", function* () {
    const { losingAnswers, processes, start } = yield* Installed
    const { text: key } = yield* newKey
    const doomed = yield* start
    const idempotencyKey = randomUUID()
    const before = yield* productIds
    const create = (process: ServiceProcess) =>
      post(process, "/provider/products", { key, idempotencyKey, body: { name: "Twice?" } })
    yield* losingAnswers((lost) =>
      Effect.gen(function* () {
        const unanswered = yield* Effect.fork(Effect.exit(create(doomed)))
        yield* eventuallyTrue("the provider has made the product", () => lost.count() === 1)
        yield* doomed.kill
        yield* Fiber.join(unanswered)
      })
    )
    const [made, ...others] = (yield* productIds).filter((id) => !before.includes(id))
    expect(others).toEqual([])
    expectFailure(yield* create(processes[0]), inProgress)
    yield* passLease(idempotencyKey)
    const answers = yield* Effect.all([create(processes[0]), create(processes[1])], { concurrency: 2 })
    expectOneEffect(answers)
    expect(idOf(yield* create(processes[1]))).toBe(made)
    expect((yield* productIds).filter((id) => !before.includes(id))).toEqual([made])
    expect(yield* recordsOf(made ?? "")).toHaveLength(1)
  })

  it.scoped("make nothing twice when one is killed in the midst of its change", function* () {
    const { organizationId, processes, sql, start } = yield* Installed
    const { text: key } = yield* newKey
    const doomed = yield* start
    const idempotencyKey = randomUUID()
    const before = yield* endpointIds
    const create = (process: ServiceProcess) =>
      post(process, "/integrations/endpoints", { key, idempotencyKey, body: endpointBody })
    const [locked, release] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
    const holder = yield* Effect.fork(
      sql.withTransaction(
        Effect.gen(function* () {
          yield* sql`SELECT 1 FROM payments.workspaces WHERE organization_id = ${organizationId} FOR NO KEY UPDATE`
          yield* Deferred.succeed(locked, undefined)
          yield* Deferred.await(release)
        })
      )
    )
    yield* Deferred.await(locked)
    const unanswered = yield* Effect.fork(Effect.exit(create(doomed)))
    yield* begun(idempotencyKey)
    yield* doomed.kill
    yield* Fiber.join(unanswered)
    yield* Deferred.succeed(release, undefined)
    yield* Fiber.join(holder)
    expectFailure(yield* create(processes[0]), inProgress)
    yield* passLease(idempotencyKey)
    const answer = yield* create(processes[1])
    expect(answer.status, answer.text).toBe(200)
    expect((yield* endpointIds).filter((id) => !before.includes(id))).toEqual([idOf(answer)])
  })
})
