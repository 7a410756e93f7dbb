import { randomUUID } from "node:crypto"
import type { Statement } from "@effect/sql"
import { expect, vi } from "@effect/vitest"
import { Context, Effect, Predicate, Redacted } from "effect"
import pg from "pg"
import { Keys } from "../../../src/identity/keys/Keys.ts"
import { type Answer, inDatabase, onService, type RequestOptions, TestService } from "../../harness/TestService.ts"
import { expectFailure } from "./Refusals.ts"
import { idOf } from "./Samples.ts"

interface Shown {
  readonly id: string
  readonly environment: string | null
  readonly author: { readonly kind: string; readonly id: string }
  readonly action: string
  readonly target: { readonly type: string; readonly id: string }
  readonly requestId: string
  readonly at: string
}

const recordsIn = (answer: Answer): ReadonlyArray<Shown> => {
  expect(answer.status, answer.text).toBe(200)
  // The shape is what the tests hold against the contract
  return (JSON.parse(answer.text) as { readonly data: ReadonlyArray<Shown> }).data
}

const endpointBody = { name: "Orders", url: "http://localhost:1/hook", events: ["payment.succeeded"] }

const call = (method: string, path: string, options: RequestOptions = {}) =>
  Effect.flatMap(TestService, ({ organization, request }) =>
    request(method, `/v2/organizations/${organization.id}${path}`, { key: organization.testKey, ...options })
  )

const create = (path: string, body: unknown, options: RequestOptions = {}) =>
  call("POST", path, { headers: { "idempotency-key": randomUUID() }, body, ...options })

const log = (query = "", options: RequestOptions = {}) => call("GET", `/integrations/audit-log${query}`, options)

/** All records of the first organization, newest first, straight from the database. */
const stored = Effect.flatMap(
  TestService,
  ({ organization, sql }) => sql<{ id: string; action: string; environment: string | null }>`
    SELECT id, action, environment FROM payments.audit_log
    WHERE organization_id = ${organization.id} ORDER BY id DESC`
)

const leftBy = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.gen(function* () {
    const before = new Set((yield* stored).map(({ id }) => id))
    return { answer: yield* effect, left: (yield* stored).filter(({ id }) => !before.has(id)) }
  })

/** The writes of the API: what they do and to what, as a record says it. */
const writes = Effect.gen(function* () {
  const endpointId = idOf(yield* create("/integrations/endpoints", endpointBody))
  const product = idOf(yield* create("/provider/products", { name: "Coffee" }))
  const price = idOf(yield* create("/provider/prices", { product, currency: "brl", unit_amount: 1500 }))
  const checkout = { mode: "payment", line_items: [{ price, quantity: 1 }] }
  return [
    ["endpoint.created", "endpoint", create("/integrations/endpoints", endpointBody)],
    [
      "endpoint.updated",
      "endpoint",
      call("PATCH", `/integrations/endpoints/${endpointId}`, { body: { active: false } })
    ],
    ["product.created", "product", create("/provider/products", { name: "Tea" })],
    ["price.created", "price", create("/provider/prices", { product, currency: "brl", unit_amount: 900 })],
    ["checkout_session.created", "checkout_session", create("/provider/checkout/sessions", checkout)]
  ] as const
})

/** Has the database refuse every new record, as a full disk or a bug would, while the effect runs. */
const withoutRecords = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.flatMap(TestService, ({ sql }) =>
    Effect.acquireUseRelease(
      Effect.zipRight(
        sql`
          CREATE FUNCTION payments.refuse_record() RETURNS trigger LANGUAGE plpgsql
          AS ${sql.literal("$$ BEGIN RAISE EXCEPTION 'no space left on device' USING ERRCODE = '53100'; END $$")}`,
        sql`
          CREATE TRIGGER refuse_record BEFORE INSERT ON payments.audit_log
          FOR EACH ROW EXECUTE FUNCTION payments.refuse_record()`
      ),
      () => effect,
      () => Effect.orDie(sql`DROP FUNCTION payments.refuse_record CASCADE`)
    )
  )

onService({ roles: { api: true, worker: false }, endpointLimit: 100 })("the audit log", (it) => {
  it.effect("has one record of each write: who did what to which object, when, under which request", function* () {
    const { organization, services, sql } = yield* TestService
    const keys = Context.get(services, Keys)
    const [key] = yield* keys.list({ organizationId: organization.id, environment: "sandbox" })
    const authors = yield* sql<{ id: string }>`
        SELECT id FROM payments.api_keys WHERE organization_id = ${organization.id} AND environment = 'sandbox'`
    expect(authors).toHaveLength(1)
    for (const [action, type, write] of yield* writes) {
      const before = Date.now()
      const { answer, left } = yield* leftBy(write)
      expect(answer.status, answer.text).toBe(200)
      expect(left, action).toHaveLength(1)
      const [newest] = recordsIn(yield* log("?limit=1"))
      const { at, id, ...rest } = newest ?? { at: "", id: "" }
      expect(id).toBe(left[0]?.id)
      expect(rest).toEqual({
        environment: "sandbox",
        author: { kind: "api_key", id: key?.id },
        action,
        target: { type, id: idOf(answer) },
        requestId: answer.headers.get("request-id")
      })
      expect(at).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
      expect(Math.abs(Date.parse(at) - before)).toBeLessThan(30_000)
    }
  })

  it.effect("has none of a repeat", function* () {
    const calls = [
      ["/integrations/endpoints", endpointBody],
      ["/provider/products", { name: "Coffee" }]
    ] as const
    for (const [path, body] of calls) {
      const headers = { "idempotency-key": randomUUID() }
      yield* create(path, body, { headers })
      const { answer, left } = yield* leftBy(create(path, body, { headers }))
      expect(answer.headers.get("idempotent-replayed")).toBe("true")
      expect(left).toEqual([])
    }
  })

  it.effect("has none of what was refused or only read", function* () {
    const { makeKey, organization } = yield* TestService
    const poor = yield* makeKey(organization.id, ["products:read"])
    const attempts = [
      create("/integrations/endpoints", { ...endpointBody, url: "http://shop.example/" }),
      create("/integrations/endpoints", {}),
      create("/integrations/endpoints", endpointBody, { key: poor }),
      create("/provider/prices", { product: "prod_missing1", currency: "brl", unit_amount: 1 }),
      call("PATCH", `/integrations/endpoints/${randomUUID()}`, { body: { active: false } }),
      call("GET", "/integrations/endpoints"),
      log()
    ]
    for (const attempt of attempts) expect((yield* leftBy(attempt)).left).toEqual([])
  })

  it.effect("and the change stand or fall together", function* () {
    const { organization, sql } = yield* TestService
    const state = sql`
        SELECT e.id, e.active, e.updated_at, (SELECT count(*) FROM payments.endpoint_secrets) AS secrets
        FROM payments.endpoints e WHERE organization_id = ${organization.id} ORDER BY id`
    const all = yield* writes
    const before = yield* state
    yield* withoutRecords(
      Effect.forEach(all, ([, , write]) =>
        Effect.map(write, (answer) => {
          expectFailure(answer, { status: 503, code: "service_unavailable" })
          expect(answer.text).not.toContain("space")
        })
      )
    )
    expect(yield* state).toEqual(before)
  })

  it.effect("gets its record when a write that could not be recorded is repeated; nothing is made twice", function* () {
    const products = Effect.map(call("GET", "/provider/products?limit=100"), ({ json }) => Object(json["data"]).length)
    const headers = { "idempotency-key": randomUUID() }
    const before = yield* products
    const failed = yield* withoutRecords(create("/provider/products", { name: "Coffee" }, { headers }))
    expect(failed.status).toBe(503)
    const { answer, left } = yield* leftBy(create("/provider/products", { name: "Coffee" }, { headers }))
    expect(answer.status, answer.text).toBe(200)
    expect(left.map(({ action }) => action)).toEqual(["product.created"])
    expect(yield* products).toBe(before + 1)
  })

  it.effect("is read in pages, newest first, each record once", function* () {
    for (let n = 0; n < 6; n++) yield* create("/integrations/endpoints", endpointBody)
    const expected = (yield* stored).filter(({ environment }) => environment !== "production").map(({ id }) => id)
    const seen: Array<string> = []
    let cursor = ""
    for (;;) {
      const page = yield* log(`?limit=4${cursor}`)
      const ids = recordsIn(page).map(({ id }) => id)
      seen.push(...ids)
      expect(Object.keys(page.json).toSorted()).toEqual(["data", "has_more"])
      if (page.json["has_more"] !== true) break
      expect(ids).toHaveLength(4)
      cursor = `&starting_after=${ids.at(-1)}`
    }
    expect(seen).toEqual(expected)
    expect(recordsIn(yield* log())).toHaveLength(Math.min(10, seen.length))
  })

  it.effect("shows an environment's own records and those of the organization, and no other tenant's", function* () {
    const { organization, request, sql, stranger } = yield* TestService
    const live = { key: organization.liveKey }
    const made = yield* create("/integrations/endpoints", { ...endpointBody, url: "https://93.184.215.14/hook" }, live)
    expect(made.status, made.text).toBe(200)
    const whole = randomUUID()
    yield* sql`
        INSERT INTO payments.audit_log
          (organization_id, id, environment, author_kind, author_id, action, target_type, target_id, request_id)
        VALUES (${organization.id}, ${"ffffffff-0000-7000-8000-000000000000"}, NULL, 'person', 'p', 'member.updated',
          'member', ${whole}, 'req_0')`
    const ofProduction = recordsIn(yield* log("?limit=100", { key: organization.liveKey }))
    const ofSandbox = recordsIn(yield* log("?limit=100"))
    const ofStranger = recordsIn(
      yield* request("GET", `/v2/organizations/${stranger.id}/integrations/audit-log?limit=100`, {
        key: stranger.testKey
      })
    )
    expect(new Set(ofProduction.map(({ environment }) => environment))).toEqual(new Set(["production", null]))
    expect(new Set(ofSandbox.map(({ environment }) => environment))).toEqual(new Set(["sandbox", null]))
    expect(ofProduction.map(({ target }) => target.id)).toContain(idOf(made))
    expect(ofSandbox.map(({ target }) => target.id)).toContain(whole)
    const mine = new Set((yield* stored).map(({ id }) => id))
    expect(ofStranger.filter(({ id }) => mine.has(id))).toEqual([])
  })

  it.effect("shows a record whose author is of a kind that a later version has added", function* () {
    const { organization, sql } = yield* TestService
    // The newest
    const id = "ffffffff-1000-7000-8000-000000000000"
    yield* sql`ALTER TABLE payments.audit_log DROP CONSTRAINT audit_log_author_kind_check`
    yield* insertRecords(sql`
        SELECT ${organization.id}::uuid, ${id}::uuid, 'sandbox', 'later_kind', 'one', 'endpoint.created', 'endpoint', 'e', 'r'`)
    const [shown] = recordsIn(yield* log("?limit=1"))
    expect(shown).toMatchObject({ id, author: { kind: "later_kind", id: "one" } })
  })

  it.effect("is read without reading the other environment's records", function* () {
    const { organization, sql } = yield* TestService
    // Newer than all that the sandbox has
    yield* insertRecords(sql`
        SELECT ${organization.id}::uuid, ('ffffffff-ffff-7000-8000-' || lpad(n::text, 12, '0'))::uuid, 'production', 'operator',
          'root', 'endpoint.created', 'endpoint', 'e', 'r' FROM generate_series(1, 5000) AS n`)
    yield* sql`ANALYZE payments.audit_log`
    const spy = vi.spyOn(pg.Client.prototype, "query")
    const page = recordsIn(yield* log("?limit=3"))
    const next = recordsIn(yield* log(`?limit=3&starting_after=${page[2]?.id}`))
    const statements = spy.mock.calls
      .map(([query]): Record<string, unknown> => Object(query))
      .filter(({ text }) => String(text).includes("FROM payments.audit_log"))
    spy.mockRestore()
    expect([page.length, next.length]).toEqual([3, 3])
    // Two pages, and the look at the cursor
    expect(statements).toHaveLength(3)
    for (const { text, values } of statements) {
      const [plan] = yield* sql.unsafe<{ "QUERY PLAN": unknown }>(
        `EXPLAIN (ANALYZE, FORMAT JSON) ${text}`,
        Object(values)
      )
      expect(rowsRead(plan?.["QUERY PLAN"])).toBeLessThan(30)
    }
  })

  it.effect("is searched by action, author, object and time, and by all of them together", function* () {
    const { organization, services } = yield* TestService
    const { key, record } = yield* Context.get(services, Keys).create({
      organizationId: organization.id,
      name: "Clerk",
      permissions: ["*", "webhook-endpoints:*", "audit-log:read"],
      author: { kind: "operator", id: "root" }
    })
    const clerk = { key: Redacted.value(key) }
    const endpointId = idOf(yield* create("/integrations/endpoints", endpointBody, clerk))
    yield* call("PATCH", `/integrations/endpoints/${endpointId}`, { ...clerk, body: { active: false } })
    yield* create("/provider/products", { name: "Coffee" }, clerk)
    yield* create("/integrations/endpoints", endpointBody)
    const now = Math.floor(Date.now() / 1000)
    const mine = `author_id=${record.id}`
    const actions = (query: string) =>
      Effect.map(log(`?${query}&limit=100`), (answer) => recordsIn(answer).map(({ action }) => action))
    expect(yield* actions(mine)).toEqual(["product.created", "endpoint.updated", "endpoint.created"])
    expect(yield* actions(`author_id=${record.id.toUpperCase()}`)).toEqual(yield* actions(mine))
    expect(yield* actions(`${mine}&action=endpoint.updated`)).toEqual(["endpoint.updated"])
    expect(yield* actions(`${mine}&target_type=endpoint`)).toEqual(["endpoint.updated", "endpoint.created"])
    expect(yield* actions(`target_id=${endpointId}`)).toEqual(["endpoint.updated", "endpoint.created"])
    expect(yield* actions(`${mine}&created_gte=${now - 3600}&created_lte=${now + 3600}`)).toHaveLength(3)
    expect(yield* actions(`${mine}&created_gte=${now + 7200}`)).toEqual([])
    expect(yield* actions(`${mine}&created_lte=${now - 7200}`)).toEqual([])
    expect(yield* actions(`${mine}&action=endpoint.created&target_id=${organization.id}`)).toEqual([])
    // In pages
    const [first] = recordsIn(yield* log(`?${mine}&limit=1`))
    const next = yield* log(`?${mine}&limit=1&starting_after=${first?.id}`)
    expect(recordsIn(next).map(({ action }) => action)).toEqual(["endpoint.updated"])
    expect(next.json["has_more"]).toBe(true)
  })

  it.effect("finds all records of an object, whatever the case of its id in the paths of the requests", function* () {
    const { makeKey, organization } = yield* TestService
    const clerk = { key: yield* makeKey(organization.id, ["webhook-endpoints:*", "audit-log:read"]) }
    const endpointId = idOf(yield* create("/integrations/endpoints", endpointBody, clerk))
    const path = `/integrations/endpoints/${endpointId.toUpperCase()}`
    expect((yield* call("PATCH", path, { ...clerk, body: { active: false } })).status).toBe(200)
    expect((yield* call("DELETE", path, clerk)).status).toBe(204)
    for (const id of [endpointId, endpointId.toUpperCase()]) {
      const found = recordsIn(yield* log(`?target_id=${id}`, clerk))
      expect(found.map(({ action, target }) => [action, target.id])).toEqual([
        ["endpoint.deleted", endpointId],
        ["endpoint.updated", endpointId],
        ["endpoint.created", endpointId]
      ])
    }
  })

  it.effect("holds no secret and no key", function* () {
    const { organization, sql } = yield* TestService
    const created = yield* create("/integrations/endpoints", endpointBody)
    const [dump] = yield* sql<{ text: string }>`SELECT string_agg(t::text, ' ') AS text FROM payments.audit_log t`
    expect(dump?.text).not.toContain("whsec_")
    expect(dump?.text).not.toContain(String(created.json["signingSecret"]).slice(6))
    expect(dump?.text).not.toContain(organization.testKey)
  })
})

const insertRecords = (rows: Statement.Fragment) =>
  inDatabase`
    INSERT INTO payments.audit_log
      (organization_id, id, environment, author_kind, author_id, action, target_type, target_id, request_id)
    ${rows}`

/** How many rows the scans of a plan have read, kept or not. */
const rowsRead = (plan: unknown): number => {
  if (Array.isArray(plan)) return plan.reduce((sum: number, part) => sum + rowsRead(part), 0)
  if (!Predicate.isRecord(plan)) return 0
  const number = (name: string) => Number(plan[name] ?? 0)
  const own = String(plan["Node Type"] ?? "").includes("Scan")
    ? (number("Actual Rows") + number("Rows Removed by Filter")) * number("Actual Loops")
    : 0
  return own + rowsRead(plan["Plan"]) + rowsRead(plan["Plans"])
}
