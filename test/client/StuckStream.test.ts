import { createServer } from "node:http"
import { FetchHttpClient } from "@effect/platform"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Fiber, Redacted, Stream, TestClock } from "effect"
import { eventStream } from "../../src/client/index.ts"
import { eventuallyTrue } from "../harness/Eventually.ts"

describe("the client's stream of events", () => {
  it.scoped("does not wait for ever for the rest of an answer that refuses it", () =>
    Effect.gen(function* () {
      let answers = 0
      const server = yield* Effect.acquireRelease(
        Effect.async<ReturnType<typeof createServer>>((resume) => {
          // A proxy that begins to answer for a service that is gone, and falls silent
          const stuck = createServer((_, response) => {
            response.writeHead(502, { "content-length": "100" }).write("Bad gate")
            answers += 1
          })
          stuck.listen(0, "127.0.0.1", () => resume(Effect.succeed(stuck)))
        }),
        (stuck) =>
          Effect.sync(() => stuck.closeAllConnections()).pipe(Effect.zipRight(Effect.sync(() => stuck.close())))
      )
      const address = server.address()
      const port = typeof address === "object" && address !== null ? address.port : 0
      const tags: Array<string> = []
      let heads = 0
      const fiber = yield* eventStream({
        baseUrl: `http://127.0.0.1:${port}`,
        organizationId: "0190a0a0-0000-7000-8000-000000000000",
        apiKey: Redacted.make("pk_test_any")
      }).pipe(
        Stream.runForEach(({ _tag }) => Effect.sync(() => tags.push(_tag))),
        Effect.provide(FetchHttpClient.layer),
        Effect.provideService(FetchHttpClient.Fetch, async (...request) => {
          const answer = await fetch(...request)
          heads += 1
          return answer
        }),
        Effect.fork
      )
      yield* eventuallyTrue("the beginning of an answer", () => answers === 1)
      yield* eventuallyTrue("its head at the client", () => heads === 1)
      yield* TestClock.adjust("31 seconds")
      yield* eventuallyTrue("the break", () => tags.length > 0)
      expect(tags).toEqual(["Interrupted"])
      yield* Fiber.interrupt(fiber)
    })
  )
})
