import { Effect, Option } from "effect"
import { verifyWebhook } from "../../src/webhooks/index.ts"
import { makeConsumer, type ReceivedRequest } from "../harness/Consumer.ts"
import { eventually, eventuallyIs, eventuallyTrue } from "../harness/Eventually.ts"
import { describe, expect, it } from "../harness/Tests.ts"
import { databaseSession, delivered, integrator, payOn } from "./Integrator.ts"
import { dataDirectory, startService, stop } from "./ServiceProcess.ts"

const eventIn = (received: ReceivedRequest | undefined): Record<string, unknown> =>
  JSON.parse(received?.body.toString() ?? "{}")

describe("a process that is killed", () => {
  it.scopedLive("between the consumer's 200 and its record delivers again, and the history tells both", function* () {
    const directory = yield* dataDirectory
    const consumer = yield* makeConsumer
    const release = consumer.hold()
    // Longer than all that happens while the consumer keeps its answer; the lease that is waited for goes with it
    const settings = { DELIVERY_TIMEOUT: "5 seconds" }
    const first = yield* startService(directory, settings)
    const backend = integrator(first.local)
    const endpoint = yield* backend.subscribe(consumer.url)
    const { url } = yield* backend.openCheckout

    yield* Effect.scoped(
      Effect.gen(function* () {
        const holder = yield* databaseSession(first.local)
        const observer = yield* databaseSession(first.local)
        yield* payOn(url)
        yield* eventuallyTrue("the event", () => consumer.received.length === 1)
        // The window is held open: the outcome can't be recorded while this session holds its lock
        yield* Effect.promise(() => holder.query("BEGIN; LOCK TABLE payments.deliveries IN SHARE MODE"))
        release()
        const recording = yield* eventually(
          "a recording that waits for the lock",
          Effect.map(
            Effect.promise(() =>
              observer.query<{ pid: number }>(
                "SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%result AS MATERIALIZED%'"
              )
            ),
            ({ rows }) => Option.fromNullable(rows[0])
          )
        )
        yield* stop(first, "SIGKILL")
        // Its statement has reached the server, which would still run it: it dies here, by this or with the server, which
        // ends with its process
        yield* Effect.ignore(
          Effect.tryPromise(() => observer.query("SELECT pg_terminate_backend($1)", [recording.pid]))
        )
      })
    )

    const second = yield* startService(directory, settings)
    yield* eventuallyTrue("the event again", () => consumer.received.length === 2)
    const delivery = yield* delivered(second.local, endpoint.id)
    expect(delivery).toMatchObject({
      attemptCount: 2,
      lastHttpStatus: 204,
      lastErrorCode: null,
      attempts: [
        { number: 1, trigger: "automatic", httpStatus: null, durationMs: null, errorCode: "interrupted" },
        { number: 2, trigger: "automatic", httpStatus: 204, errorCode: null }
      ]
    })
    const [one, two] = consumer.received
    expect(eventIn(two)).toEqual(eventIn(one))
    expect(eventIn(one)["id"]).toBe(delivery["eventId"])
    expect(two?.headers["service-delivery-id"]).toBe(one?.headers["service-delivery-id"])
    for (const received of consumer.received) {
      verifyWebhook({
        body: received.body,
        header: String(received.headers["service-signature"]),
        secret: endpoint.secret,
        organizationId: second.local.organizationId,
        livemode: false
      })
    }
  })

  it.scopedLive("between the receipt and the first attempt loses nothing, and neither do later stops", function* () {
    const directory = yield* dataDirectory
    const consumer = yield* makeConsumer
    // A process that receives, but does not deliver
    const first = yield* startService(directory, { ROLES: "api" })
    const backend = integrator(first.local)
    const endpoint = yield* backend.subscribe(consumer.url, ["checkout.completed", "payment.succeeded"])
    const { productId, sessionId, url } = yield* backend.openCheckout
    yield* payOn(url)
    yield* eventuallyIs("both deliveries stored", backend.deliveries(endpoint.id), (all) => all.length === 2)
    yield* stop(first, "SIGKILL")
    expect(consumer.received).toEqual([])

    const second = yield* startService(directory)
    yield* eventuallyTrue("both events", () => consumer.received.length === 2)
    expect(new Set(consumer.received.map((received) => eventIn(received)["type"]))).toEqual(
      new Set(["checkout.completed", "payment.succeeded"])
    )
    const all = yield* eventuallyIs("both recorded", integrator(second.local).deliveries(endpoint.id), (deliveries) =>
      deliveries.every(({ state }) => state === "delivered")
    )
    for (const delivery of all) expect(delivery).toMatchObject({ attemptCount: 1, lastErrorCode: null })

    // What it finds again: the same organization and key, the product, the paid session
    const { apiKey, organizationId, ownerEmail } = first.local
    expect(second.local).toMatchObject({ apiKey, organizationId, ownerEmail })
    const finds = (local: typeof first.local) =>
      Effect.gen(function* () {
        const again = integrator(local)
        expect(yield* again.get(`/provider/products/${productId}`)).toMatchObject({ id: productId, name: "Coffee" })
        expect(yield* again.get(`/provider/checkout/sessions/${sessionId}`)).toMatchObject({
          status: "complete",
          payment_status: "paid"
        })
        expect(yield* again.deliveries(endpoint.id)).toEqual(all)
      })
    yield* finds(second.local)
    yield* stop(second, "SIGINT", "group")
    const third = yield* startService(directory)
    expect(third.local).toMatchObject({ apiKey, organizationId, ownerEmail })
    yield* finds(third.local)
    expect(consumer.received).toHaveLength(2)
  })
})
