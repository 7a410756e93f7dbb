import { randomUUID } from "node:crypto"
import { expect, it } from "@effect/vitest"
import { Effect, Option, Tracer } from "effect"
import { createTestDatabase } from "../harness/TestDatabase.ts"
import { testReturnUrls } from "../harness/TestService.ts"
import { makeOrganization, startService } from "./StartedService.ts"

/** The service under a tracer that takes every request, or none, for its traces. */
const traced = (sampled: boolean) =>
  Effect.gen(function* () {
    const spans: Array<Tracer.Span> = []
    const native = yield* Effect.tracer
    const tracer = Tracer.make({
      span: (...args) => {
        const span = native.span(...args)
        Object.defineProperty(span, "sampled", { value: sampled })
        spans.push(span)
        return span
      },
      context: (execution) => execution()
    })
    const { url: databaseUrl } = yield* createTestDatabase()
    const provider = { sandbox: Option.none(), production: Option.none(), apiUrl: Option.none(), ...testReturnUrls }
    const service = yield* startService({ databaseUrl, provider }).pipe(Effect.withTracer(tracer))
    const { id, key } = yield* makeOrganization(service.services, { name: "traced" })
    const spansOf = (path: string, headers: Readonly<Record<string, string>> = {}) =>
      Effect.gen(function* () {
        spans.length = 0
        const answer = yield* service.request("GET", `/v2/organizations/${id}/integrations/${path}`, { key, headers })
        // The service looks after other things as well; those are of other traces
        const request = spans.find(({ kind }) => kind === "server")
        return { answer, request, spans: spans.filter(({ traceId }) => traceId === request?.traceId) }
      })
    return { spansOf, organizationId: id }
  })

it.scopedLive("a request that is traced has a span of its own and one of each statement, under its id", () =>
  Effect.gen(function* () {
    const { organizationId, spansOf } = yield* traced(true)
    const { answer, request, spans } = yield* spansOf("endpoints")
    expect(answer.status, answer.text).toBe(200)
    expect(request?.attributes.get("request.id")).toBe(answer.headers.get("request-id"))
    expect(request?.attributes.get("organization.id")).toBe(organizationId)
    expect(spans.filter(({ name }) => name === "sql.execute").length).toBeGreaterThanOrEqual(2)
    const refused = yield* spansOf(`endpoints/${randomUUID()}`)
    expect(refused.answer.status).toBe(404)
    expect(refused.request?.attributes.get("error.type")).toBe("resource_not_found")
  })
)

it.scopedLive("a request that is not traced has its own span alone, and the same answer", () =>
  Effect.gen(function* () {
    const { spansOf } = yield* traced(false)
    for (const [path, status] of [
      ["endpoints", 200],
      [`endpoints/${randomUUID()}`, 404]
    ] as const) {
      const { answer, spans } = yield* spansOf(path)
      expect(answer.status, answer.text).toBe(status)
      expect(answer.headers.get("request-id")).toMatch(/^req_/)
      expect(spans.map(({ kind }) => kind)).toEqual(["server"])
    }
  })
)
