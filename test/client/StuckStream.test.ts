import { createServer, type RequestListener } from "node:http"
import { FetchHttpClient } from "@effect/platform"
import { Effect, Fiber, Redacted, Stream, TestClock } from "effect"
import { type EventStreamItem, eventStream } from "../../src/client/index.ts"
import { eventuallyTrue } from "../harness/Eventually.ts"
import { listening } from "../harness/Listening.ts"
import { describe, expect, it } from "../harness/Tests.ts"

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

describe("the client's stream of events", () => {
  it.scoped("does not wait for ever for the rest of an answer that refuses it", function* () {
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

  it.scoped("resumes at the place of the last heartbeat, and breaks off a message that has no end", function* () {
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
})
