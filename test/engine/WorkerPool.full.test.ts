import { Duration, Effect, Exit, Fiber, Layer, Logger, Option, Scope } from "effect"
import { deliveryLayer, servicesLayer, storageLayer } from "../../src/app/Service.ts"
import { enqueue } from "../../src/engine/queue/Enqueue.ts"
import { storeDeliveries } from "../destinations/deliveries/StoredDeliveries.ts"
import { tell } from "../harness/Connection.ts"
import { makeConsumer } from "../harness/Consumer.ts"
import { eventually, eventuallyIs, eventuallyTrue } from "../harness/Eventually.ts"
import { inDatabase, onService, TestService, testSettings } from "../harness/TestService.ts"
import { expect, layer as suite } from "../harness/Tests.ts"
import { makeSubscriber, makeTenant, notification, notify, subscribe } from "../inbound/Notifications.ts"
import { attempted, deliveriesOf, send } from "./Sending.ts"

/** An attempt that hangs, hangs for the whole test: whatever waits for it waits too long. */
const noTimeout = { ...testSettings.delivery, timeout: Duration.minutes(5) }

onService({ delivery: { ...noTimeout, concurrency: 8, concurrencyPerEndpoint: 4 } })("a dead endpoint", (it) => {
  it.scoped("does not delay another's deliveries, however many of its own are due", function* () {
    const dead = yield* makeConsumer
    const release = dead.hold()
    const { tenant } = yield* makeSubscriber(["payment.failed"], dead.url)
    const healthy = yield* makeConsumer
    const other = yield* makeTenant
    const endpoint = yield* subscribe(other, ["payment.succeeded"], healthy.url)
    const dying = yield* subscribe(tenant, ["payment.succeeded"], dead.url)
    yield* Effect.forEach(Array.from({ length: 50 }), () => notify(notification(tenant.accountId)), {
      concurrency: 5
    })
    yield* eventuallyTrue("the dead endpoint at its cap", () => dead.received.length === 4)
    for (let event = 1; event <= 10; event += 1) {
      yield* notify(notification(other.accountId))
      yield* eventuallyTrue("the healthy one's delivery", () => healthy.received.length === event)
    }
    // All this while, the dead one's first attempts had not even ended
    expect(dead.received.length).toBe(4)
    expect(
      yield* inDatabase`SELECT 1 FROM payments.deliveries d, unnest(d.attempts) WHERE d.endpoint_id = ${dying.id}`
    ).toEqual([])
    yield* eventuallyIs(
      "the records",
      deliveriesOf(other, endpoint.id),
      (all) => all.length === 10 && all.every(({ state }) => state === "delivered")
    )
    release()
  })
})

onService()("a delivery that was stored late, as by a transaction that took a minute", (it) => {
  it.scoped("is found while others come due all the time", function* () {
    const [busy, late] = [yield* makeConsumer, yield* makeConsumer]
    const queued = Effect.fnUntraced(function* (url: string, count: number) {
      const { id, tenant } = yield* makeSubscriber(["payment.succeeded"], url)
      return yield* storeDeliveries({ organizationId: tenant.id, endpointId: id, state: "queued", count })
    })
    const comeDue = (id: string, secondsAgo: number) => inDatabase`
        UPDATE payments.delivery_queue SET next_attempt_at = now() - ${secondsAgo} * interval '1 second' WHERE id = ${id}`
    // Each claim finds some of them, and the next one goes on behind those
    const others = yield* queued(busy.url, 2000)
    yield* Effect.forkScoped(Effect.forEach(others, (id) => Effect.zipRight(comeDue(id, 0), Effect.sleep("20 millis"))))
    const [stored = ""] = yield* queued(late.url, 1)
    yield* eventuallyTrue("some of the others", () => busy.received.length > 20)
    yield* comeDue(stored, 60)
    yield* eventuallyTrue("its delivery", () => late.received.length === 1)
    expect(busy.received.length).toBeLessThan(others.length)
  })
})

/** What is found, is found without a poll: tests have long given up before the first. */
const slowPoll = { ...testSettings.delivery, pollInterval: Duration.minutes(5) }

onService({ delivery: { ...slowPoll, concurrency: 2 } })("a worker with little room", (it) => {
  it.scoped("goes on as soon as an attempt ends, without waiting for its next poll", function* () {
    const consumer = yield* makeConsumer
    const { tenant } = yield* makeSubscriber(["payment.succeeded"], consumer.url)
    const release = consumer.hold()
    yield* Effect.forEach(Array.from({ length: 20 }), () => notify(notification(tenant.accountId)))
    yield* eventuallyTrue("two in flight", () => consumer.received.length === 2)
    release()
    yield* eventuallyTrue("all of them", () => consumer.received.length === 20)
  })
})

onService({ delivery: { ...slowPoll, concurrencyPerEndpoint: 2 } })("an endpoint at its cap", (it) => {
  it.scoped("gets all that is due, without waiting for the next poll", function* () {
    const { sql } = yield* TestService
    const consumer = yield* makeConsumer
    const { endpoint } = yield* send(consumer.url)
    yield* eventuallyTrue("the first", () => consumer.received.length === 1)
    yield* sql`
        WITH delivery AS (
          INSERT INTO payments.deliveries (organization_id, environment, id, endpoint_id, event_id, secret_ids, attempts)
          SELECT organization_id, environment, uuidv7(), endpoint_id, event_id, secret_ids, '{}'
          FROM payments.deliveries, generate_series(1, 200) WHERE endpoint_id = ${endpoint.id}
          RETURNING *
        ) ${enqueue(sql, "delivery")}`
    yield* sql`SELECT pg_notify('connected_payments_payments', 'test')`
    yield* eventuallyTrue("all of them", () => consumer.received.length === 201)
  })
})

/** A worker of its own on the service's database, as in another process; it ends with the scope. */
const startWorker = Effect.gen(function* () {
  const { options } = yield* TestService
  const storage = yield* Layer.build(storageLayer(options))
  const services = yield* Layer.build(servicesLayer(options)).pipe(Effect.provide(storage))
  yield* Layer.build(deliveryLayer(options)).pipe(Effect.provide(services), Effect.provide(storage))
}).pipe(Effect.orDie)

/** A worker of its own whose consumer holds its one attempt back. Closing the scope tells it to stop. */
const heldAttempt = Effect.gen(function* () {
  const consumer = yield* makeConsumer
  const release = consumer.hold()
  const scope = yield* Scope.make()
  yield* Scope.extend(startWorker, scope)
  const sent = yield* send(consumer.url)
  yield* eventuallyTrue("an attempt in flight", () => consumer.received.length === 1)
  return { ...sent, consumer, release, scope }
})

/** Longer than a test itself: what is waited for is the attempt's end. */
const patientStop = { roles: { api: true, worker: false }, shutdownTimeout: Duration.minutes(5) }

onService(patientStop)("a worker that is told to stop", (it) => {
  it.scoped("claims nothing more, finishes what is in flight, and records it", function* () {
    const { consumer, release, scope, ...inFlight } = yield* heldAttempt
    const stopping = yield* Effect.fork(Scope.close(scope, Exit.void))
    // Its polls would find this one; that it stays untouched is looked at when all is over
    const later = yield* send(consumer.url)
    release()
    yield* Fiber.join(stopping)
    expect(yield* deliveriesOf(inFlight.tenant, inFlight.endpoint.id)).toMatchObject([
      { state: "delivered", attemptCount: 1, attempts: [{ number: 1, httpStatus: 204 }] }
    ])
    const [waiting] = yield* deliveriesOf(later.tenant, later.endpoint.id)
    expect(["queued", "delivered"]).toContain(waiting?.["state"])
    expect(waiting?.["attemptCount"]).toBe(waiting?.["state"] === "queued" ? 0 : 1)
    // Another one finds what is left, and repeats nothing
    yield* startWorker
    yield* attempted(later.tenant, later.endpoint.id)
    expect(new Set(consumer.received.map(({ headers }) => headers["service-delivery-id"])).size).toBe(2)
    expect(consumer.received).toHaveLength(2)
  })
})

onService({ ...patientStop, delivery: { ...testSettings.delivery, timeout: Duration.seconds(3) } })(
  "a worker that is told to stop",
  (it) => {
    it.scoped("waits for no consumer longer than its attempt's timeout, and records that", function* () {
      const { endpoint, scope, tenant } = yield* heldAttempt
      yield* Scope.close(scope, Exit.void)
      expect(yield* deliveriesOf(tenant, endpoint.id)).toMatchObject([
        { state: "queued", attemptCount: 1, lastErrorCode: "timeout" }
      ])
    })
  }
)

onService({
  roles: { api: true, worker: false },
  shutdownTimeout: Duration.millis(300),
  delivery: noTimeout
})("a worker that is told to stop", (it) => {
  it.scoped("gives up waiting when the shutdown's time is over: the lease will end by itself", function* () {
    const { endpoint, scope, tenant } = yield* heldAttempt
    yield* Scope.close(scope, Exit.void)
    expect(yield* deliveriesOf(tenant, endpoint.id)).toMatchObject([
      { state: "queued", attemptCount: 1, attempts: [], nextAttemptAt: expect.any(String) }
    ])
  })
})

/** Statements on the service's database, past its pool. */
const directly = (...statements: ReadonlyArray<string>) =>
  Effect.flatMap(TestService, ({ options }) => tell(options.databaseUrl, ...statements))

const patientLease = { ...testSettings.delivery, leaseMargin: Duration.seconds(30) }

onService({ delivery: patientLease })("an attempt whose outcome can't be recorded at once", (it) => {
  it.scoped("is recorded when storing works again, and is not made again", function* () {
    const consumer = yield* makeConsumer
    const release = consumer.hold()
    const { endpoint, tenant } = yield* send(consumer.url)
    yield* eventuallyTrue("an attempt in flight", () => consumer.received.length === 1)
    yield* directly("ALTER TABLE payments.deliveries RENAME COLUMN attempts TO away")
    release()
    yield* eventuallyIs(
      "a record that failed",
      inDatabase<{ failed: boolean }>`
        SELECT xact_rollback > 0 AS failed FROM pg_stat_database WHERE datname = current_database()`,
      ([row]) => row?.failed === true
    )
    yield* directly(
      "ALTER TABLE payments.deliveries RENAME COLUMN away TO attempts",
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )
    expect(yield* attempted(tenant, endpoint.id)).toMatchObject({ state: "delivered", attemptCount: 1 })
    expect(consumer.received).toHaveLength(1)
    // The pool has new connections, and the worker goes on
    const next = yield* send(consumer.url)
    expect(yield* attempted(next.tenant, next.endpoint.id)).toMatchObject({ state: "delivered" })
  })
})

const logged: Array<string> = []
const capture = Logger.add(
  Logger.map(Logger.jsonLogger, (line) => {
    logged.push(line)
  })
)

suite(TestService.layer().pipe(Layer.provide(capture)))("a delivery whose secrets can't be decrypted", (it) => {
  it.scoped(
    "waits without losing an attempt, says so to the operator, and goes out when the key is back",
    function* () {
      const consumer = yield* makeConsumer
      const { tenant, ...endpoint } = yield* makeSubscriber(["payment.succeeded"], consumer.url)
      yield* inDatabase`UPDATE payments.endpoint_secrets SET master_key_id = 'lost' WHERE endpoint_id = ${endpoint.id}`
      yield* notify(notification(tenant.accountId))
      yield* eventuallyTrue("an error in the log", () =>
        logged.some((line) => line.includes("ERROR") && line.includes("lost") && line.includes(endpoint.id))
      )
      const waiting = yield* eventually(
        "the delivery given back",
        Effect.map(deliveriesOf(tenant, endpoint.id), ([delivery]) =>
          Option.fromNullable(delivery).pipe(Option.filter(({ attemptCount }) => attemptCount === 0))
        )
      )
      expect(waiting).toMatchObject({ state: "queued", attempts: [], lastErrorCode: null })
      expect(Date.parse(String(waiting["nextAttemptAt"])) - Date.now()).toBeGreaterThan(30_000)
      expect(consumer.received).toEqual([])

      yield* inDatabase`UPDATE payments.endpoint_secrets SET master_key_id = 'test' WHERE endpoint_id = ${endpoint.id}`
      yield* inDatabase`UPDATE payments.delivery_queue SET next_attempt_at = now() WHERE endpoint_id = ${endpoint.id}`
      expect(yield* attempted(tenant, endpoint.id)).toMatchObject({ state: "delivered", attemptCount: 1 })
      for (const line of logged) expect(line).not.toContain(endpoint.secret)
    }
  )
})
