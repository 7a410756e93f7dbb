import { createServer, type ServerResponse } from "node:http"
import { Effect } from "effect"
import { cuttingProxy } from "../harness/CuttingProxy.ts"
import { eventuallyDone, eventuallyTrue } from "../harness/Eventually.ts"
import { listening } from "../harness/Listening.ts"
import { describe, expect, it } from "../harness/Tests.ts"
import { allDelivered, expectTrueHistory, storedDeliveries } from "./History.ts"
import { installation } from "./Installation.ts"
import { makeProvider } from "./Provider.ts"
import { Randomness } from "./Randomness.ts"

/** What is in flight as the database is lost: of each endpoint no more than a worker begins at once. */
const paths = ["a", "b", "c", "d", "e", "f"]
const events = 4
const deliveries = paths.length * events

const timeout = 3000
const margin = 2000

/** An API and a worker whose database can be cut off from it alone. */
const severable = Effect.gen(function* () {
  const service = yield* installation([{ role: "api" }], {
    DELIVERY_TIMEOUT: `${timeout} millis`,
    DELIVERY_LEASE_MARGIN: `${margin} millis`
  })
  const proxy = yield* cuttingProxy(service.server.port)
  const url = new URL(service.server.url)
  url.port = String(proxy.port)
  yield* service.start({ role: "worker", settings: { DATABASE_URL: url.href } })
  return { service, proxy }
})

/** A consumer that leaves what it gets unanswered, until it is told to confirm it, and answers what comes again as it is told. */
const holding = Effect.fnUntraced(function* (again: (nth: number) => number) {
  const seen = new Set<string>()
  const held: Array<ServerResponse> = []
  let repeated = 0
  const server = createServer((request, response) => {
    request.resume().on("end", () => {
      const id = String(request.headers["service-delivery-id"])
      if (!seen.has(id)) {
        seen.add(id)
        return void held.push(response)
      }
      repeated += 1
      response.writeHead(again(repeated)).end()
    })
  })
  return {
    url: `http://127.0.0.1:${yield* listening(server)}/hook`,
    held: () => held.length,
    confirm: () => {
      for (const response of held.splice(0)) response.writeHead(204).end()
    },
    again: () => repeated
  }
})

/** A worker all of whose attempts are confirmed once its database is away; `again` as in `holding`. */
const confirmedWhileAway = Effect.fnUntraced(function* (again: (nth: number) => number) {
  const { proxy, service } = yield* severable
  const consumer = yield* holding(again)
  yield* Effect.forEach(paths, (path) => service.subscribe(`${consumer.url}/${path}`))
  const provider = makeProvider(service, new Randomness())
  yield* Effect.all(
    Array.from({ length: events }, () => provider.notify),
    { concurrency: "unbounded" }
  )
  yield* eventuallyTrue("all in flight", () => consumer.held() === deliveries)
  proxy.cut()
  consumer.confirm()
  return { consumer, proxy, service }
})

describe("a worker whose database is away for longer than a lease, while its attempts are confirmed,", () => {
  it.scopedLive("records them before it claims anything, and sends none of them again", function* () {
    const { consumer, proxy, service } = yield* confirmedWhileAway(() => 409)
    yield* Effect.sleep(timeout + margin + 1000)
    proxy.mend()
    yield* allDelivered(service)

    expect(consumer.again()).toBe(0)
    for (const delivery of yield* storedDeliveries(service)) {
      expectTrueHistory(delivery)
      expect(delivery).toMatchObject({ state: "delivered", attemptCount: 1, attempts: [{ httpStatus: 204 }] })
    }
  })

  it.scopedLive("has them delivered even if another worker has sent them again since, and was refused", function* () {
    const { consumer, proxy, service } = yield* confirmedWhileAway((nth) => (nth % 2 === 0 ? 409 : 503))
    yield* service.start({ role: "worker" })
    const recorded = service.query<{ count: number }>(
      "SELECT count(*)::int AS count FROM payments.deliveries WHERE cardinality(attempts) = 2"
    )
    yield* eventuallyDone(
      "all of them sent again and refused",
      Effect.map(recorded, ([row]) => row?.count === deliveries)
    )
    expect(new Set((yield* storedDeliveries(service)).map(({ state }) => state))).toEqual(new Set(["queued", "failed"]))
    proxy.mend()
    yield* eventuallyDone(
      "all of them delivered, long before their next attempt",
      Effect.map(storedDeliveries(service), (all) => all.every(({ state }) => state === "delivered"))
    )

    expect(consumer.again()).toBe(deliveries)
    for (const delivery of yield* storedDeliveries(service)) {
      expectTrueHistory(delivery)
      expect(delivery).toMatchObject({ attemptCount: 2, attempts: [{ httpStatus: 204 }, {}] })
    }
    expect(yield* service.query("SELECT id FROM payments.delivery_queue")).toEqual([])
  })
})
