import { randomUUID } from "node:crypto"
import { BlockList, connect } from "node:net"
import { Effect, Option, Tracer } from "effect"
import { type LineLevel, type LogLine, LogLines } from "../../../src/platform/telemetry/LogLines.ts"
import { eventuallyIs, eventuallyTrue } from "../../harness/Eventually.ts"
import { createMigratedDatabase } from "../../harness/TestDatabase.ts"
import { testReturnUrls } from "../../harness/TestService.ts"
import { expect, it } from "../../harness/Tests.ts"
import { signature } from "../../inbound/Notifications.ts"
import { makeOrganization, startService } from "./StartedService.ts"

const provider = { sandbox: Option.none(), production: Option.none(), apiUrl: Option.none(), ...testReturnUrls }

const toolCall = (name: string, args: Readonly<Record<string, unknown>>) => ({
  jsonrpc: "2.0",
  id: 1,
  method: "tools/call",
  params: { name, arguments: args }
})

/** The service under a tracer that takes every request, or none, for its traces. */
const traced = (sampled: boolean, settings: Parameters<typeof startService>[0]["settings"] = {}) =>
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
    const { url: databaseUrl } = yield* createMigratedDatabase
    const service = yield* startService({ databaseUrl, provider, settings }).pipe(Effect.withTracer(tracer))
    const { id, key } = yield* makeOrganization(service.services, { name: "traced" })
    const during = Effect.fnUntraced(function* (asking: ReturnType<typeof service.request>) {
      spans.length = 0
      const answer = yield* asking
      // The service looks after other things as well; those are of other traces
      const request = spans.find(({ kind }) => kind === "server")
      return { answer, request, spans: spans.filter(({ traceId }) => traceId === request?.traceId) }
    })
    const requestSpan = (
      headers: Readonly<Record<string, string>>,
      { credential = key, method = "GET", path = `/v2/organizations/${id}/integrations/endpoints` } = {}
    ) =>
      Effect.map(during(service.request(method, path, { key: credential, headers })), ({ answer, request: span }) => ({
        status: answer.status,
        traceId: span?.traceId,
        parent: Option.getOrUndefined(Option.flatMap(Option.fromNullable(span), ({ parent }) => parent)),
        links: span?.links.map((link) => link.span)
      }))
    const spansOf = (path: string) =>
      during(service.request("GET", `/v2/organizations/${id}/integrations/${path}`, { key }))
    const callTool = (name: string, args: Readonly<Record<string, unknown>>) =>
      during(service.request("POST", "/mcp", { key, body: toolCall(name, args) }))
    return { spansOf, requestSpan, callTool, organizationId: id }
  })

it.scopedLive("a request that is traced has a span of its own and one of each statement, under its id", function* () {
  const { organizationId, spansOf } = yield* traced(true)
  const { answer, request, spans } = yield* spansOf("endpoints")
  expect(answer.status, answer.text).toBe(200)
  expect(request?.attributes.get("request.id")).toBe(answer.headers.get("request-id"))
  expect(request?.attributes.get("organization.id")).toBe(organizationId)
  expect(spans.filter(({ name }) => name === "sql.execute").length).toBeGreaterThanOrEqual(2)
  const refused = yield* spansOf(`endpoints/${randomUUID()}`)
  expect(refused.answer.status).toBe(404)
  expect(refused.request?.attributes.get("api.error.code")).toBe("resource_not_found")
  expect(refused.request?.attributes.has("error.type")).toBe(false)
})

it.scopedLive("a tool's refusal has its code on the request's span and on its own, and fails neither", function* () {
  const { callTool } = yield* traced(true)
  const { answer, request, spans } = yield* callTool("get_webhook_delivery", { deliveryId: randomUUID() })
  for (const name of ["POST /mcp", "tools/call get_webhook_delivery"]) {
    const span = spans.find((one) => one.name === name)
    expect([name, span?.attributes.get("api.error.code")]).toEqual([name, "resource_not_found"])
    expect(span?.status).toMatchObject({ exit: { _tag: "Success" } })
  }
  expect(request?.attributes.get("request.id")).toBe(answer.headers.get("request-id"))
  expect(request?.attributes.get("gen_ai.tool.name")).toBe("get_webhook_delivery")
})

const caller = { traceId: "4bf92f3577b34da6a3ce929d0e0e4736", spanId: "00f067aa0ba902b7" }
const traceparent = `00-${caller.traceId}-${caller.spanId}-01`

it.scopedLive("a stranger's trace is linked to, not continued, with a good, bad or no credential", function* () {
  const { requestSpan } = yield* traced(true)
  const cases = [
    [200, {}],
    [401, { credential: "" }],
    [401, { credential: "not a key" }],
    [400, { credential: "", method: "POST", path: "/webhooks/provider" }],
    [200, { credential: "", path: "/openapi.json" }],
    [404, { credential: "", path: "/nowhere" }]
  ] as const
  for (const [status, request] of cases) {
    const span = yield* requestSpan({ traceparent }, request)
    expect([span.status, span.parent, span.links]).toMatchObject([status, undefined, [{ ...caller, sampled: true }]])
    expect(span.traceId).not.toBe(caller.traceId)
  }
})

it.scopedLive("the trace of a caller at a trusted address is continued, and its choice of sampling", function* () {
  const trustedTraceParents = new BlockList()
  trustedTraceParents.addAddress("127.0.0.1")
  const { requestSpan } = yield* traced(true, { trustedTraceParents })
  for (const [flags, sampled] of [
    ["01", true],
    ["00", false]
  ] as const) {
    const span = yield* requestSpan({ traceparent: traceparent.replace(/01$/, flags) })
    expect(span).toMatchObject({ status: 200, traceId: caller.traceId, parent: { ...caller, sampled }, links: [] })
  }
  const many = yield* requestSpan({
    b3: `${caller.traceId}-${caller.spanId}-1`,
    "x-b3-traceid": caller.traceId,
    "x-b3-spanid": caller.spanId,
    tracestate: "a".repeat(6000),
    traceparent: "0".repeat(6000)
  })
  expect([many.status, many.parent, many.links]).toEqual([200, undefined, []])
})

it.scopedLive("the trace of a caller behind a trusted proxy is continued if its address is trusted", function* () {
  const trustedProxies = new BlockList()
  trustedProxies.addAddress("127.0.0.1")
  const trustedTraceParents = new BlockList()
  trustedTraceParents.addSubnet("10.0.0.0", 8)
  const { requestSpan } = yield* traced(true, { trustedProxies, trustedTraceParents })
  expect((yield* requestSpan({ traceparent, "x-forwarded-for": "10.1.2.3" })).parent).toMatchObject(caller)
  const outside = yield* requestSpan({ traceparent, "x-forwarded-for": "10.1.2.3, 203.0.113.7" })
  expect([outside.parent, outside.links]).toMatchObject([undefined, [caller]])
})

it.scopedLive("a request that is not traced has its own span alone, and the same answer", function* () {
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

/** The service with a log of the test's own: its lines for requests, at these levels and above. */
const logged = (options: { readonly least: LineLevel; readonly requests: boolean }) =>
  Effect.gen(function* () {
    const lines: Array<LogLine> = []
    const levels: ReadonlyArray<LineLevel> = ["INFO", "WARN", "ERROR"]
    const { url: databaseUrl } = yield* createMigratedDatabase
    const service = yield* startService({ databaseUrl, provider }).pipe(
      Effect.provideService(LogLines, {
        writes: (level) => levels.indexOf(level) >= levels.indexOf(options.least),
        requests: options.requests,
        write: (line) => void lines.push(line)
      })
    )
    return { service, lines, ...(yield* makeOrganization(service.services, { name: "logged" })) }
  })

it.scopedLive("a request has one log line, of what it was and came to, without query, headers and body", function* () {
  const { id, key, lines, service } = yield* logged({ least: "INFO", requests: true })
  const endpoints = `/v2/organizations/${id}/integrations/endpoints`
  const found = yield* service.request("GET", endpoints, { key })
  const refused = yield* service.request("POST", `${endpoints}?secret-in-query=1`, {
    key,
    body: { name: "secret-in-body" }
  })
  const unknown = yield* service.request("GET", "/secret-in-path", { key: "secret-in-header" })
  yield* service.request("GET", "/health/ready")
  expect(lines.map(({ attributes, level, message }) => [level, message, attributes["request.id"]])).toEqual([
    ["INFO", "GET /v2/organizations/:organizationId/integrations/endpoints 200", found.headers.get("request-id")],
    ["WARN", "POST /v2/organizations/:organizationId/integrations/endpoints 422", refused.headers.get("request-id")],
    ["WARN", "GET (no route) 404", unknown.headers.get("request-id")]
  ])
  expect(lines[0]?.attributes).toMatchObject({
    "http.request.method": "GET",
    "http.response.status_code": 200,
    "organization.id": id,
    environment: "sandbox",
    "author.kind": "api_key",
    "author.id": expect.stringMatching(/^[0-9a-f-]{36}$/),
    duration_ms: expect.any(Number)
  })
  expect(lines[1]?.attributes["api.error.code"]).toBe("validation_failed")
  expect(JSON.stringify(lines)).not.toContain("secret-in")
  expect(JSON.stringify(lines)).not.toContain(key)
  // What is known of the database's state is told at its own level
  yield* service.sql`ALTER TABLE payments.endpoints RENAME TO away`
  yield* service.request("GET", endpoints, { key })
  expect([lines.at(-1)?.level, lines.at(-1)?.attributes["api.error.code"]]).toEqual(["ERROR", "internal_error"])
})

it.scopedLive("a tool's refusal, which HTTP answers 200, is a warning in the log, by tool, code and id", function* () {
  const { key, lines, service } = yield* logged({ least: "INFO", requests: true })
  const call = (name: string, args: Readonly<Record<string, unknown>>) =>
    service.request("POST", "/mcp", { key, body: toolCall(name, args) })
  const refused = yield* call("get_webhook_delivery", { deliveryId: randomUUID() })
  const unknown = yield* call("drop_tables", {})
  yield* call("list_webhook_endpoints", {})
  expect(
    lines.map(({ attributes, level, message }) => [
      level,
      message,
      attributes["gen_ai.tool.name"],
      attributes["api.error.code"],
      attributes["request.id"]
    ])
  ).toEqual([
    ["WARN", "POST /mcp 200", "get_webhook_delivery", "resource_not_found", refused.headers.get("request-id")],
    ["WARN", "POST /mcp 200", undefined, "validation_failed", unknown.headers.get("request-id")],
    ["INFO", "POST /mcp 200", "list_webhook_endpoints", undefined, expect.stringMatching(/^req_/)]
  ])
  expect(refused.text).toContain(String(refused.headers.get("request-id")))
})

it.scopedLive("log lines below the level that is written are not made, nor any if turned off", function* () {
  for (const [options, expected] of [
    [{ least: "WARN", requests: true }, ["WARN"]],
    [{ least: "INFO", requests: false }, []]
  ] as const) {
    const { id, key, lines, service } = yield* logged(options)
    yield* service.request("GET", `/v2/organizations/${id}/integrations/endpoints`, { key })
    yield* service.request("GET", "/nowhere", { key })
    expect(lines.map(({ level }) => level)).toEqual(expected)
  }
})

it.scopedLive("a request whose client goes away is nobody's failure: 499, and no warning", function* () {
  const { id, key, lines, service } = yield* logged({ least: "INFO", requests: true })
  const lock = yield* Effect.makeLatch(false)
  const locked = yield* Effect.makeLatch(false)
  // What the service waits for while its client leaves
  yield* Effect.fork(
    service.sql.withTransaction(
      Effect.gen(function* () {
        yield* service.sql`LOCK TABLE payments.endpoints IN ACCESS EXCLUSIVE MODE`
        yield* locked.open
        yield* lock.await
      })
    )
  )
  yield* locked.await
  const endpoints = `/v2/organizations/${id}/integrations/endpoints`
  const head = `x-api-key: ${key}\r\nhost: x\r\n`
  const body = "content-type: application/json\r\ncontent-length: 100\r\n"
  const left = [
    // Waiting for the database, half-way through a body, and before the entry has all of a notification
    `GET ${endpoints} HTTP/1.1\r\n${head}\r\n`,
    `POST ${endpoints} HTTP/1.1\r\n${head}idempotency-key: ${randomUUID()}\r\n${body}\r\n{"name":`,
    `POST /webhooks/provider HTTP/1.1\r\n${head}stripe-signature: ${signature("")}\r\n${body}\r\n{"id":`
  ]
  const { port } = new URL(service.baseUrl)
  for (const bytes of left) {
    const count = lines.length
    const socket = connect(Number(port), "127.0.0.1", () => socket.write(bytes))
    socket.on("error", () => {})
    // Until it is being worked on
    yield* eventuallyIs("the request", service.request("GET", "/nowhere"), () => lines.length > count + 2)
    socket.destroy()
  }
  const gone = () => lines.filter(({ attributes }) => attributes["http.response.status_code"] === 499)
  yield* eventuallyTrue("their lines", () => gone().length === left.length)
  yield* lock.open
  expect(gone().map(({ level }) => level)).toEqual(["INFO", "INFO", "INFO"])
  expect(lines.filter(({ level }) => level === "ERROR")).toEqual([])
  expect(service.log.filter(({ level }) => ["WARN", "ERROR", "FATAL"].includes(level))).toEqual([])
})
