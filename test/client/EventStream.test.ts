import { createServer, type RequestListener } from "node:http"
import { FetchHttpClient } from "@effect/platform"
import { describe, expect, it } from "@effect/vitest"
import { Chunk, Effect, Fiber, Redacted, Stream, TestClock } from "effect"
import { type EventStreamItem, eventStream } from "../../src/client/index.ts"
import { cuttableLine } from "../harness/CuttableLine.ts"
import { eventuallyTrue } from "../harness/Eventually.ts"
import { listening } from "../harness/Listening.ts"
import { onSharedService, TestService } from "../harness/TestService.ts"
import { accepted, makeTenant, notification, notify } from "../inbound/Notifications.ts"

const collect = (options: Parameters<typeof eventStream>[0]) =>
  Effect.gen(function* () {
    const items: Array<EventStreamItem> = []
    const fiber = yield* eventStream(options).pipe(
      Stream.runForEach((item) => Effect.sync(() => items.push(item))),
      Effect.provide(FetchHttpClient.layer),
      Effect.forkScoped
    )
    return { items, fiber, tags: () => items.map(({ _tag }) => _tag) }
  })

onSharedService("the client's stream of events", (it) => {
  it.scoped("gives each event once, over a break, and can be taken up where another ended", () =>
    Effect.gen(function* () {
      const { baseUrl } = yield* TestService
      const tenant = yield* makeTenant
      const pay = Effect.suspend(() => accepted(notify(notification(tenant.accountId))))
      const line = yield* cuttableLine(baseUrl)
      const options = { baseUrl: line.url, organizationId: tenant.id, apiKey: Redacted.make(tenant.key) }
      const { fiber, items, tags } = yield* collect({ ...options, types: ["payment.succeeded"] })
      yield* eventuallyTrue("it is connected", () => tags().includes("Connected"))
      yield* pay
      yield* eventuallyTrue("the first event", () => items.length === 2)
      line.cut()
      yield* eventuallyTrue("the break", () => tags().includes("Interrupted"))
      yield* pay
      line.mend()
      yield* eventuallyTrue("the second event", () => tags().filter((tag) => tag === "Event").length === 2)
      const events = items.flatMap((item) => (item._tag === "Event" ? [item] : []))
      expect(new Set(events.map(({ id }) => id)).size).toBe(2)
      for (const { id, text } of events) expect(JSON.parse(text)).toMatchObject({ id, type: "payment.succeeded" })
      expect(tags().slice(0, 3)).toEqual(["Connected", "Event", "Interrupted"])
      expect(items.at(-2)).toMatchObject({ _tag: "Connected", lookBackExceeded: false })
      yield* Fiber.interrupt(fiber)
      yield* pay
      const resumed = yield* collect({ ...options, after: events.at(-1)?.place ?? "" })
      yield* eventuallyTrue("the third event", () =>
        resumed.items.some((item) => item._tag === "Event" && !events.some(({ id }) => id === item.id))
      )
    })
  )

  it.scoped("fails with the API's code if it is refused, and tries again if the service can't answer", () =>
    Effect.gen(function* () {
      const { baseUrl, organization } = yield* TestService
      const refused = yield* eventStream({
        baseUrl,
        organizationId: organization.id,
        apiKey: Redacted.make(organization.liveKey)
      }).pipe(Stream.runDrain, Effect.provide(FetchHttpClient.layer), Effect.flip)
      expect(refused).toMatchObject({ _tag: "EventStreamRefused", status: 409, code: "test_environment_required" })
      const busy = createServer((_, response) => response.writeHead(503, { "retry-after": "1" }).end("busy"))
      const port = yield* listening(busy)
      const items = yield* eventStream({
        baseUrl: `http://127.0.0.1:${port}`,
        organizationId: organization.id,
        apiKey: Redacted.make("pk_test_any")
      }).pipe(Stream.take(2), Stream.runCollect, Effect.provide(FetchHttpClient.layer))
      expect(Chunk.toReadonlyArray(items)).toMatchObject([
        { _tag: "Interrupted", reason: "HTTP 503" },
        { _tag: "Interrupted", reason: "HTTP 503" }
      ])
    })
  )
})

/** What the client makes of a server that answers so. */
const streamOf = Effect.fnUntraced(function* (answer: RequestListener) {
  const port = yield* listening(createServer(answer))
  const items: Array<EventStreamItem> = []
  let heads = 0
  const fiber = yield* eventStream({
    baseUrl: `http://127.0.0.1:${port}`,
    organizationId: "0190a0a0-0000-7000-8000-000000000000",
    apiKey: Redacted.make("pk_test_any")
  }).pipe(
    Stream.runForEach((item) => Effect.sync(() => items.push(item))),
    Effect.provide(FetchHttpClient.layer),
    Effect.provideService(FetchHttpClient.Fetch, async (...request) => {
      const answer = await fetch(...request)
      heads += 1
      return answer
    }),
    Effect.fork
  )
  return { items, fiber, heads: () => heads }
})

describe("the client's stream of events from a server that is stuck", () => {
  it.scoped("does not wait for ever for the rest of an answer that refuses it", () =>
    Effect.gen(function* () {
      let answers = 0
      // A proxy that begins to answer for a service that is gone, and falls silent
      const { fiber, heads, items } = yield* streamOf((_, response) => {
        response.writeHead(502, { "content-length": "100" }).write("Bad gate")
        answers += 1
      })
      yield* eventuallyTrue("the beginning of an answer", () => answers === 1)
      yield* eventuallyTrue("its head at the client", () => heads() === 1)
      yield* TestClock.adjust("31 seconds")
      yield* eventuallyTrue("the break", () => items.length > 0)
      expect(items.map(({ _tag }) => _tag)).toEqual(["Interrupted"])
      yield* Fiber.interrupt(fiber)
    })
  )

  it.scoped("resumes at the place of the last heartbeat, and breaks off a message that has no end", () =>
    Effect.gen(function* () {
      const resumedAt: Array<unknown> = []
      const { fiber, items } = yield* streamOf((request, response) => {
        resumedAt.push(request.headers["last-event-id"])
        response.writeHead(200, { "content-type": "text/event-stream" })
        if (resumedAt.length === 1) response.end(": heartbeat\nid: 7\n\n")
        else response.write(`data: ${"x".repeat(2 * 1024 * 1024)}`)
      })
      yield* eventuallyTrue("the end of the first answer", () => items.length === 1)
      yield* TestClock.adjust("1 second")
      yield* eventuallyTrue("the end of the second answer", () => items.length === 2)
      expect(items.at(-1)).toMatchObject({ _tag: "Interrupted", reason: "a message has no end" })
      expect(resumedAt).toEqual([undefined, "7"])
      yield* Fiber.interrupt(fiber)
    })
  )
})
