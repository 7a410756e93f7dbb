import { createServer } from "node:http"
import { FetchHttpClient } from "@effect/platform"
import { expect } from "@effect/vitest"
import { Chunk, Effect, Fiber, Redacted, Stream } from "effect"
import { type EventStreamItem, eventStream } from "../../src/client/index.ts"
import { cuttingProxy } from "../harness/CuttingProxy.ts"
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
  it.scoped("gives each event once, over a break, and can be taken up where another ended", function* () {
    const { baseUrl } = yield* TestService
    const tenant = yield* makeTenant
    const pay = Effect.suspend(() => accepted(notify(notification(tenant.accountId))))
    const line = yield* cuttingProxy(baseUrl)
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

  it.scoped("fails with the API's code if it is refused, and tries again if the service can't answer", function* () {
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
})
