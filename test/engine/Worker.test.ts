import { createServer, type Socket } from "node:net"
import { expect } from "@effect/vitest"
import { Effect } from "effect"
import { version } from "../../src/platform/settings/Version.ts"
import { verifyWebhook } from "../../src/webhooks/index.ts"
import { makeConsumer } from "../harness/Consumer.ts"
import { eventuallyTrue } from "../harness/Eventually.ts"
import { listening } from "../harness/Listening.ts"
import { inDatabase, onService, TestService, testSettings } from "../harness/TestService.ts"
import { answering, attempted, attemptsIn, send } from "./Sending.ts"

type Json = Record<string, unknown>

/** Seconds from the end of the last attempt to the next, as the API says them. */
const waitOf = (delivery: Json): number => {
  const last = attemptsIn(delivery).at(-1)
  const endedAt = Date.parse(String(last?.["startedAt"])) + Number(last?.["durationMs"])
  return (Date.parse(String(delivery["nextAttemptAt"])) - endedAt) / 1000
}

/** The wait that is within the jitter of ±20 %, recording included. */
const expectWait = (delivery: Json, seconds: number) => {
  expect(waitOf(delivery)).toBeGreaterThanOrEqual(seconds * 0.8 - 0.01)
  expect(waitOf(delivery)).toBeLessThanOrEqual(seconds * 1.2 + 2)
}

/** Brings the next attempt of an endpoint's deliveries forward to now. */
const dueNow = (endpointId: string) =>
  Effect.flatMap(
    TestService,
    ({ sql }) => sql`
      UPDATE payments.delivery_queue SET next_attempt_at = now() WHERE endpoint_id = ${endpointId}`
  )

const rawDestination = (onRequest: (socket: Socket) => void) =>
  Effect.map(listening(createServer((socket) => socket.once("data", () => onRequest(socket)))), (port) => ({
    url: `http://127.0.0.1:${port}/hook`
  }))

const quickAttempts = { delivery: { ...testSettings.delivery, timeout: testSettings.delivery.leaseMargin } }

onService(quickAttempts)("an attempt", (it) => {
  it.scoped("sends the stored bytes, signed, with the documented headers, and 2xx is delivered", function* () {
    for (const status of [200, 201, 204, 299]) {
      const consumer = yield* answering(status)
      const { endpoint, tenant } = yield* send(consumer.url)
      const delivery = yield* attempted(tenant, endpoint.id)
      const [received] = consumer.received
      if (received === undefined) return yield* Effect.dieMessage("it is delivered but was not received")
      expect(consumer.received).toHaveLength(1)
      const [stored] = yield* inDatabase<{ payload: string }>`
          SELECT e.payload FROM payments.events e WHERE e.organization_id = ${tenant.id}`
      expect(received.body.equals(Buffer.from(stored?.payload ?? ""))).toBe(true)
      expect(received.headers).toMatchObject({
        "content-type": "application/json",
        "content-length": String(received.body.length),
        "service-delivery-id": delivery["id"],
        "service-signature": expect.stringMatching(/^t=\d+,v1=[0-9a-f]{64}$/)
      })
      expect(received.headers["user-agent"]).toBe(`connected-payments/${version}`)
      expect(delivery["id"]).toMatch(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/)
      const event = verifyWebhook({
        body: received.body,
        header: String(received.headers["service-signature"]),
        secret: endpoint.secret,
        organizationId: tenant.id,
        livemode: false
      })
      const sent = JSON.parse(received.body.toString())
      expect(delivery).toEqual({
        id: delivery["id"],
        endpointId: endpoint.id,
        eventId: event.id,
        type: "payment.succeeded",
        state: "delivered",
        test: false,
        attemptCount: 1,
        nextAttemptAt: null,
        createdAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:]+\.\d{3}Z$/),
        finishedAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:]+\.\d{3}Z$/),
        lastHttpStatus: status,
        lastErrorCode: null,
        paymentId: sent.data.payment_id,
        amount: sent.data.amount_received,
        currency: sent.data.currency,
        attempts: [
          {
            number: 1,
            trigger: "automatic",
            startedAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:]+\.\d{3}Z$/),
            durationMs: expect.any(Number),
            httpStatus: status,
            errorCode: null
          }
        ],
        event: sent
      })
    }
  })

  for (const status of [408, 429, 500, 502, 503, 504, 599]) {
    it.scoped(`that is answered ${status} is made again after about 30 seconds`, function* () {
      const { endpoint, tenant } = yield* send((yield* answering(status)).url)
      const delivery = yield* attempted(tenant, endpoint.id)
      expect(delivery).toMatchObject({
        state: "queued",
        attemptCount: 1,
        finishedAt: null,
        lastHttpStatus: status,
        lastErrorCode: "http_error",
        attempts: [{ number: 1, httpStatus: status, errorCode: "http_error" }]
      })
      expectWait(delivery, 30)
    })
  }

  for (const [status, errorCode] of [
    ...([301, 302, 303, 307, 308] as const).map((status) => [status, "redirect_refused"] as const),
    ...([400, 401, 403, 404, 409, 410, 422] as const).map((status) => [status, "http_error"] as const)
  ]) {
    it.scoped(`that is answered ${status} fails for good, and a redirect is not followed`, function* () {
      const elsewhere = yield* makeConsumer
      const headers = { location: elsewhere.url, "retry-after": "1" }
      const { endpoint, tenant } = yield* send((yield* answering(status, headers)).url)
      expect(yield* attempted(tenant, endpoint.id)).toMatchObject({
        state: "failed",
        attemptCount: 1,
        nextAttemptAt: null,
        finishedAt: expect.any(String),
        lastHttpStatus: status,
        lastErrorCode: errorCode
      })
      expect(elsewhere.received).toEqual([])
    })
  }

  it.scoped("that is not answered at all is made again", function* () {
    const hanging = yield* makeConsumer
    const release = hanging.hold()
    const { endpoint, tenant } = yield* send(hanging.url)
    const delivery = yield* attempted(tenant, endpoint.id)
    release()
    expect(delivery).toMatchObject({ state: "queued", lastHttpStatus: null, lastErrorCode: "timeout" })
    expect(attemptsIn(delivery)[0]?.["durationMs"]).toBeGreaterThanOrEqual(900)
    expectWait(delivery, 30)
  })

  it.scoped("whose connection breaks or is refused is made again", function* () {
    for (const [url, errorCode] of [
      [(yield* rawDestination((socket) => socket.resetAndDestroy())).url, "connection_reset"],
      [(yield* Effect.scoped(rawDestination(() => {}))).url, "connection_refused"]
    ] as const) {
      const { endpoint, tenant } = yield* send(url)
      const delivery = yield* attempted(tenant, endpoint.id)
      expect(delivery).toMatchObject({ state: "queued", lastHttpStatus: null, lastErrorCode: errorCode })
      expectWait(delivery, 30)
    }
  })

  it.scoped("that is answered too many bytes to be an answer keeps nothing of them", function* () {
    const talkative = yield* rawDestination((socket) =>
      socket.write(`HTTP/1.1 500 Sorry\r\ncontent-length: 1000000\r\n\r\n${"secret of the consumer ".repeat(10_000)}`)
    )
    const { endpoint, tenant } = yield* send(talkative.url)
    const delivery = yield* attempted(tenant, endpoint.id)
    expect(delivery).toMatchObject({ state: "queued", lastHttpStatus: 500, lastErrorCode: "http_error" })
    expect(JSON.stringify(delivery)).not.toContain("secret of the consumer")
  })

  it.scoped("whose answer asks for a wait gets a longer one, never a shorter one, within bounds", function* () {
    const wait = Effect.fnUntraced(function* (status: number, retryAfter: string) {
      const { endpoint, tenant } = yield* send((yield* answering(status, { "retry-after": retryAfter })).url)
      return waitOf(yield* attempted(tenant, endpoint.id))
    })
    const asked = yield* wait(429, "120")
    expect(asked).toBeGreaterThanOrEqual(119.9)
    expect(asked).toBeLessThan(125)
    expect(yield* wait(503, "1")).toBeGreaterThanOrEqual(23.9)
    expect(yield* wait(503, "0")).toBeGreaterThanOrEqual(23.9)
    expect(yield* wait(429, "soon")).toBeLessThan(40)
    const bounded = yield* wait(503, "1000000000000")
    expect(bounded).toBeGreaterThanOrEqual(299.9)
    expect(bounded).toBeLessThan(305)
    // Asked with a status that may not ask
    expect(yield* wait(500, "200")).toBeLessThan(40)
  })

  it.scoped(
    "is signed anew each time, on the same bytes and delivery id, with the policy's delays in between",
    function* () {
      const consumer = yield* answering(503)
      const { endpoint, tenant } = yield* send(consumer.url)
      const times: Array<number> = []
      for (const [index, delay] of [30, 300, 1800, 10_800, 43_200].entries()) {
        expectWait(yield* attempted(tenant, endpoint.id, index + 1), delay)
        const time = Number(/^t=(\d+)/.exec(String(consumer.received[index]?.headers["service-signature"]))?.[1])
        expect(Math.abs(time - Date.now() / 1000)).toBeLessThan(30)
        times.push(time)
        // A signature is of its second: the next attempt must be made in another one to differ
        yield* eventuallyTrue("the next second", () => Math.floor(Date.now() / 1000) > time)
        yield* dueNow(endpoint.id)
      }
      const last = yield* attempted(tenant, endpoint.id, 6)
      expect(last).toMatchObject({ state: "failed", attemptCount: 6, nextAttemptAt: null, lastHttpStatus: 503 })
      expect(attemptsIn(last).map(({ number, trigger }) => [number, trigger])).toEqual(
        [1, 2, 3, 4, 5, 6].map((number) => [number, "automatic"])
      )
      expect(new Set(times).size).toBe(5)
      expect(new Set(consumer.received.map(({ body }) => body.toString())).size).toBe(1)
      expect(new Set(consumer.received.map(({ headers }) => headers["service-delivery-id"])).size).toBe(1)
      for (const { body, headers } of consumer.received) {
        verifyWebhook({
          body,
          header: String(headers["service-signature"]),
          secret: endpoint.secret,
          organizationId: tenant.id,
          livemode: false
        })
      }
    }
  )

  it.scoped("that is made again and accepted ends delivered, its failures in the history", function* () {
    const consumer = yield* answering(500)
    const { endpoint, tenant } = yield* send(consumer.url)
    yield* attempted(tenant, endpoint.id)
    consumer.answer(200)
    yield* dueNow(endpoint.id)
    expect(yield* attempted(tenant, endpoint.id, 2)).toMatchObject({
      state: "delivered",
      attemptCount: 2,
      lastHttpStatus: 200,
      lastErrorCode: null,
      attempts: [
        { number: 1, httpStatus: 500, errorCode: "http_error" },
        { number: 2, httpStatus: 200, errorCode: null }
      ]
    })
  })

  // The last one: it leaves the clock where it set it
  it.scoped("is dated and signed by the service's own clock", function* () {
    const { clock } = yield* TestService
    clock.forward("2 minutes")
    const consumer = yield* answering(200)
    const { endpoint, tenant } = yield* send(consumer.url)
    const [attempt] = attemptsIn(yield* attempted(tenant, endpoint.id))
    const signedAt = Number(/^t=(\d+)/.exec(String(consumer.received[0]?.headers["service-signature"]))?.[1])
    for (const millis of [signedAt * 1000, Date.parse(String(attempt?.["startedAt"]))]) {
      expect(Math.abs(millis - clock.unsafeCurrentTimeMillis())).toBeLessThan(30_000)
    }
  })
})
