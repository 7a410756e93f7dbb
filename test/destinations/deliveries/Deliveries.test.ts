import { expect, vi } from "@effect/vitest"
import { Context, Duration, Effect } from "effect"
import pg from "pg"
import { queueStart } from "../../../src/engine/queue/Claim.ts"
import { Queue } from "../../../src/engine/queue/Queue.ts"
import { EndpointId } from "../../../src/platform/kit/Ids.ts"
import { searchTimeout } from "../../../src/platform/storage/BoundedReads.ts"
import { finished, idle } from "../../engine/QueueBench.ts"
import { failedPaymentIntent } from "../../events/ProviderEvents.ts"
import { type Answer, inDatabase, onSharedService, TestService } from "../../harness/TestService.ts"
import { asTenant, makeSubscriber, notification, notify } from "../../inbound/Notifications.ts"
import { expectFailure } from "../../surface/http/Refusals.ts"
import { endDeliveries } from "./StoredDeliveries.ts"

type Json = Record<string, unknown>

const dataOf = (answer: Answer) => {
  expect(answer.status, answer.text).toBe(200)
  return answer.json["data"] as ReadonlyArray<Json> // the API's JSON: the assertions on it are the check
}

const endpointWith = Effect.fnUntraced(function* (count: number) {
  const { tenant, ...endpoint } = yield* makeSubscriber(["payment.succeeded", "payment.failed"])
  yield* Effect.forEach(Array.from({ length: count }), () => notify(notification(tenant.accountId)))
  const rows = yield* inDatabase<{ id: string }>`
    SELECT id FROM payments.deliveries WHERE endpoint_id = ${endpoint.id} ORDER BY created_at DESC, id DESC`
  return { tenant, endpoint, ids: rows.map(({ id }) => id), path: `/endpoints/${endpoint.id}/deliveries` }
})

const idsIn = (answer: Answer) => dataOf(answer).map(({ id }) => id)

onSharedService("the history of deliveries", (it) => {
  it.effect("shows a delivery in the documented form, in the list and by itself", function* () {
    const { ids, path, tenant } = yield* endpointWith(1)
    const record = {
      id: ids[0],
      endpointId: path.split("/")[2],
      eventId: expect.stringMatching(/^svc_evt_[0-9a-f]{64}$/),
      type: "payment.succeeded",
      paymentId: "pi_1",
      amount: 1500,
      currency: "brl",
      state: "queued",
      test: false,
      attemptCount: 0,
      nextAttemptAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      createdAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      finishedAt: null,
      lastHttpStatus: null,
      lastErrorCode: null
    }
    expect((yield* asTenant(tenant, "GET", path)).json).toEqual({ data: [record], has_more: false })
    const detail = yield* asTenant(tenant, "GET", `/deliveries/${ids[0]}`)
    expect(detail.json).toEqual({
      ...record,
      attempts: [],
      event: expect.objectContaining({ version: 1, livemode: false, organization_id: tenant.id })
    })
    expect(detail.json["eventId"]).toBe((detail.json["event"] as Json)["id"])
  })

  it.effect("tells each attempt in order, and where one was cut off", function* () {
    const { services, sql } = yield* TestService
    const queue = Context.get(services, Queue)
    const { endpoint, ids, tenant } = yield* endpointWith(1)
    const makeDue = sql`
        UPDATE payments.delivery_queue SET
          next_attempt_at = now(), leased_until = CASE WHEN lease IS NOT NULL THEN now() END
        WHERE id = ${ids[0] ?? ""}`
    // Of this endpoint alone: other suites share the service, and what they have left may come due at any time
    const claim = Effect.flatMap(
      queue.claim({
        ...idle,
        look: "asked",
        askedFor: [{ endpointId: EndpointId.make(endpoint.id), from: queueStart, room: 1 }]
      }),
      ({ deliveries: [claimed] }) =>
        claimed === undefined ? Effect.dieMessage("nothing was due") : Effect.succeed(claimed)
    )
    yield* queue.finish([
      { ...finished(yield* claim, 503, { state: "queued", delay: Duration.seconds(30) }), startedAt: 1000 }
    ])
    yield* makeDue
    yield* claim
    yield* makeDue
    yield* queue.finish([finished(yield* claim, 410, { state: "failed" })])
    const { json } = yield* asTenant(tenant, "GET", `/deliveries/${ids[0]}`)
    expect(json).toMatchObject({
      state: "failed",
      attemptCount: 3,
      nextAttemptAt: null,
      finishedAt: expect.any(String),
      lastHttpStatus: 410,
      lastErrorCode: "http_error"
    })
    const attempt = { trigger: "automatic", startedAt: expect.any(String), durationMs: 12 }
    expect(json["attempts"]).toEqual([
      { ...attempt, number: 1, startedAt: "1970-01-01T00:00:01.000Z", httpStatus: 503, errorCode: "http_error" },
      { ...attempt, number: 2, durationMs: null, httpStatus: null, errorCode: "interrupted" },
      { ...attempt, number: 3, httpStatus: 410, errorCode: "http_error" }
    ])
  })

  it.effect("comes newest first, in pages that meet without gap or overlap", function* () {
    const { ids, path, tenant } = yield* endpointWith(25)
    expect(idsIn(yield* asTenant(tenant, "GET", path))).toEqual(ids.slice(0, 10))
    const pages: Array<unknown> = []
    let cursor = ""
    for (const [size, hasMore] of [
      [10, true],
      [10, true],
      [5, false]
    ] as const) {
      const page = yield* asTenant(tenant, "GET", `${path}?limit=10${cursor}`)
      expect(page.json["has_more"]).toBe(hasMore)
      expect(dataOf(page)).toHaveLength(size)
      pages.push(...idsIn(page))
      cursor = `&starting_after=${pages.at(-1)}`
    }
    expect(pages).toEqual(ids)
    const whole = yield* asTenant(tenant, "GET", `${path}?limit=25`)
    expect([idsIn(whole), whole.json["has_more"]]).toEqual([ids, false])
    expect((yield* asTenant(tenant, "GET", `${path}?limit=100`)).json["has_more"]).toBe(false)
    expect(idsIn(yield* asTenant(tenant, "GET", `${path}?limit=1`))).toEqual(ids.slice(0, 1))
    expect((yield* asTenant(tenant, "GET", `${path}${cursor.replace("&", "?")}`)).json).toEqual({
      data: [],
      has_more: false
    })
  })

  it.effect("is filtered by state, type and time", function* () {
    const { ids, path, tenant } = yield* endpointWith(3)
    const [newest, middle, oldest] = ids
    yield* endDeliveries([middle ?? ""], "delivered")
    // Ids are made of the time too: an event is stored after it came in, not before
    const base = Math.floor(Date.now() / 1000)
    for (const [id, seconds] of [
      [newest, base + 2000.999],
      [middle, base + 1000.5],
      [oldest, base + 1000]
    ] as const) {
      yield* inDatabase`UPDATE payments.deliveries SET created_at = to_timestamp(${seconds}) WHERE id = ${id ?? ""}`
    }
    const body = notification(tenant.accountId, {
      type: "payment_intent.payment_failed",
      object: failedPaymentIntent
    })
    yield* notify(body)
    const found = (query: string) => Effect.map(asTenant(tenant, "GET", `${path}?${query}`), idsIn)
    expect(yield* found("state=delivered")).toEqual([middle])
    expect(yield* found("state=failed")).toEqual([])
    expect(yield* found("state=queued&type=payment.succeeded")).toEqual([newest, oldest])
    expect(yield* found("type=payment.failed")).toHaveLength(1)
    expect(yield* found(`type=payment.succeeded&created_lte=${base + 2000}`)).toEqual([newest, middle, oldest])
    expect(yield* found(`type=payment.succeeded&created_lte=${base + 1999}`)).toEqual([middle, oldest])
    expect(yield* found(`type=payment.succeeded&created_lte=${base + 1000}`)).toEqual([middle, oldest])
    expect(yield* found(`created_gte=${base + 1001}&created_lte=${base + 2000}`)).toEqual([newest])
    expect(yield* found(`created_gte=${base + 1000}&type=payment.succeeded`)).toEqual([newest, middle, oldest])
    expect(yield* found(`created_gte=${base + 2001}&created_lte=${base + 1000}`)).toEqual([])
  })

  it.scoped("is looked for during a bounded time under filters: then the answer is 503", function* () {
    const { sql } = yield* TestService
    const { ids, path, tenant } = yield* endpointWith(1)
    const query = vi.spyOn(pg.Client.prototype, "query")
    const answer = yield* sql.withTransaction(
      Effect.zipRight(
        sql`LOCK TABLE payments.events IN ACCESS EXCLUSIVE MODE`,
        asTenant(tenant, "GET", `${path}?type=payout.paid`)
      )
    )
    const sent = query.mock.calls.map(([text]) => String(text))
    query.mockRestore()
    expectFailure(answer, { status: 503, code: "service_unavailable" })
    expect(answer.headers.get("retry-after")).toBe("2")
    // A statement of the service may take longer
    expect(sent).toContain(`SET LOCAL statement_timeout = ${searchTimeout}`)
    expect(idsIn(yield* asTenant(tenant, "GET", path))).toEqual(ids)
  })

  it.effect("comes in pages under filters too, whatever happens to other deliveries meanwhile", function* () {
    const { ids, path, tenant } = yield* endpointWith(9)
    const failed = ids.filter((_, index) => index % 2 === 0)
    yield* endDeliveries(failed, "failed")
    const query = "?state=failed&type=payment.succeeded&created_gte=0&created_lte=4102444800&limit=2"
    const first = yield* asTenant(tenant, "GET", `${path}${query}`)
    expect([idsIn(first), first.json["has_more"]]).toEqual([failed.slice(0, 2), true])
    // A new delivery stands before the first page, and the cursor's own state is of no matter
    yield* notify(notification(tenant.accountId))
    yield* inDatabase`UPDATE payments.deliveries SET state = 'delivered' WHERE id = ${failed[1] ?? ""}`
    const second = yield* asTenant(tenant, "GET", `${path}${query}&starting_after=${failed[1]}`)
    expect([idsIn(second), second.json["has_more"]]).toEqual([failed.slice(2, 4), true])
    const third = yield* asTenant(tenant, "GET", `${path}${query}&starting_after=${failed[3]}`)
    expect([idsIn(third), third.json["has_more"]]).toEqual([failed.slice(4), false])
  })

  it.effect("does not take another endpoint's delivery for a place in it", function* () {
    const { path, tenant } = yield* endpointWith(2)
    const answer = yield* asTenant(tenant, "GET", `${path}?starting_after=${(yield* endpointWith(1)).ids[0]}`)
    expect([answer.status, answer.json["code"], answer.json["fields"]]).toEqual([
      422,
      "validation_failed",
      ["starting_after"]
    ])
  })

  it.effect("never shows a secret", function* () {
    const { endpoint, ids, path, tenant } = yield* endpointWith(1)
    for (const shown of [path, `/deliveries/${ids[0]}`]) {
      const { text } = yield* asTenant(tenant, "GET", shown)
      expect(text).not.toContain(endpoint.secret)
      expect(text).not.toMatch(/whsec_|ciphertext|secret|lease|traceparent/i)
    }
  })
})
