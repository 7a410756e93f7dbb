import { PassThrough } from "node:stream"
import { expect } from "@effect/vitest"
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js"
import { LATEST_PROTOCOL_VERSION } from "@modelcontextprotocol/sdk/types.js"
import { Effect, Fiber, Redacted } from "effect"
import { bridge } from "../../../src/app/cli/McpBridge.ts"
import { eventTypes } from "../../../src/events/Catalog.ts"
import type { Grant } from "../../../src/identity/keys/Permissions.ts"
import { toolSets } from "../../../src/surface/mcp/ToolFilter.ts"
import { cliHere } from "../../app/cli/CliProcess.ts"
import { makeConsumer } from "../../harness/Consumer.ts"
import { eventuallyTrue } from "../../harness/Eventually.ts"
import { program } from "../../harness/Program.ts"
import { type Answer, onService, type RequestOptions, TestService, testPublicUrl } from "../../harness/TestService.ts"
import { sendBytes } from "../http/Refusals.ts"
import { connectTo, overHttp } from "./McpClient.ts"

const accept = "application/json, text/event-stream"

const listTools = { jsonrpc: "2.0", id: 1, method: "tools/list" }

/** A message as a client sends it, with a key of the test's own. */
const start = Effect.gen(function* () {
  const service = yield* TestService
  const makeKey = (...grants: ReadonlyArray<Grant>) => service.makeKey(service.organization.id, grants)
  const key = yield* makeKey("webhook-endpoints:*")
  const post = (body: unknown, { headers = {}, ...options }: RequestOptions = {}) =>
    service.request("POST", "/mcp", { key, body, ...options, headers: { accept, ...headers } })
  return { service, makeKey, key, post }
})

/** The documented code of a refusal in the protocol's own form, under the request's id. */
const refusalOf = (answer: Answer) => {
  const { error, ...envelope } = answer.json
  const { code, data, message, ...rest } = Object(error)
  const { retryAfterSeconds, ...body } = Object(data)
  const wait = answer.headers.get("retry-after")
  expect(retryAfterSeconds).toBe(wait === null ? undefined : Number(wait))
  expect(message).toBe(body.error)
  expect([envelope, rest, typeof message]).toEqual([{ jsonrpc: "2.0", id: null }, {}, "string"])
  expect(answer.headers.get("content-type")).toBe("application/json")
  expect(Object.keys(body)).toEqual(["error", "code", "fields", "requestId"])
  expect(data.requestId).toBe(answer.headers.get("request-id"))
  return { status: answer.status, rpc: code, code: data.code }
}

/** What `node` is given to run the command. */
const mcpCommand = [...program("src/app/cli/main.ts"), "mcp"]

onService({ rateLimitPerMinute: 60 })("the tool server", (it) => {
  it.effect("answers each message by itself, under a request id, and keeps no session", function* () {
    const { post } = yield* start
    const listed = yield* post(listTools)
    expect([listed.status, listed.headers.get("content-type")]).toEqual([200, "application/json"])
    expect(listed.headers.get("request-id")).toMatch(/^req_/)
    expect(listed.headers.get("mcp-session-id")).toBeNull()
    expect(listed.json).toMatchObject({ jsonrpc: "2.0", id: 1, result: { tools: expect.any(Array) } })
    const initialized = yield* post({
      jsonrpc: "2.0",
      id: "two",
      method: "initialize",
      params: {
        protocolVersion: LATEST_PROTOCOL_VERSION,
        capabilities: {},
        clientInfo: { name: "test", version: "1" }
      }
    })
    expect(LATEST_PROTOCOL_VERSION >= "2025-11-25").toBe(true)
    expect(initialized.json).toMatchObject({
      id: "two",
      result: { protocolVersion: LATEST_PROTOCOL_VERSION, capabilities: { tools: {} } }
    })
    const notified = yield* post({ jsonrpc: "2.0", method: "notifications/initialized" })
    expect([notified.status, notified.text]).toEqual([202, ""])
    const unknown = yield* post({ jsonrpc: "2.0", id: 3, method: "prompts/list" })
    expect(unknown.json).toMatchObject({ id: 3, error: { code: -32601 } })
  })

  it.effect("takes an API key in x-api-key or as the bearer's token, and no other credential", function* () {
    const { key, makeKey, post, service } = yield* start
    const revoked = yield* makeKey("webhook-endpoints:*")
    yield* Effect.orDie(
      service.sql`UPDATE payments.api_keys SET revoked_at = now() WHERE last_four = ${revoked.slice(-4)}`
    )
    const cases: ReadonlyArray<readonly [string, RequestOptions]> = [
      ["authentication_required", { key: "" }],
      ["authentication_required", { key: "", headers: { authorization: key } }],
      ["authentication_required", { key: "", headers: { authorization: "Bearer " } }],
      ["authentication_required", { key: "", headers: { authorization: `Bearer ${key} ${key}` } }],
      ["authentication_required", { key: "", headers: { authorization: `Basic ${btoa(`${key}:`)}` } }],
      ["api_key_invalid", { key: "", headers: { authorization: `Bearer ${key}x` } }],
      ["api_key_invalid", { key: "", headers: { authorization: `Bearer ${"x".repeat(10_000)}` } }],
      // The API's own header decides
      ["api_key_invalid", { key: `${key}x`, headers: { authorization: `Bearer ${key}` } }],
      ["authentication_required", { key: "", headers: { cookie: "__Host-svc_session=abc" } }],
      ["api_key_invalid", { key: `${key}x` }],
      ["api_key_invalid", { key: key.replace("_test_", "_live_") }],
      ["api_key_invalid", { key: "x".repeat(1000) }],
      ["api_key_invalid", { key: revoked }]
    ]
    for (const [code, options] of cases) {
      const answer = yield* post(listTools, options)
      expect(refusalOf(answer)).toEqual({ status: 401, rpc: -32_000, code })
      const detail = code === "authentication_required" ? "" : ', error="invalid_token"'
      expect(answer.headers.get("www-authenticate")).toBe(`Bearer realm="connected-payments"${detail}`)
    }
    for (const authorization of [`Bearer ${key}`, `bearer   ${key} `]) {
      expect((yield* post(listTools, { key: "", headers: { authorization } })).status).toBe(200)
    }
    // The API itself has one header for keys (contract 2.1)
    const rest = yield* service.request("GET", `/v2/organizations/${service.organization.id}/provider/account`, {
      headers: { authorization: `Bearer ${key}` }
    })
    expect([rest.status, rest.json["code"]]).toEqual([401, "authentication_required"])
  })

  it.effect("refuses pages of other origins, whatever key they have", function* () {
    const { post } = yield* start
    for (const origin of ["https://evil.example", "http://127.0.0.1", "null", `${testPublicUrl}.evil.example`]) {
      const answer = yield* post(listTools, { headers: { origin } })
      expect(refusalOf(answer), origin).toEqual({ status: 403, rpc: -32_000, code: "origin_not_trusted" })
    }
    expect((yield* post(listTools, { headers: { origin: testPublicUrl } })).status).toBe(200)
  })

  it.effect("takes POST alone: there is no stream to listen to and no session to end", function* () {
    const { key, service } = yield* start
    for (const method of ["GET", "DELETE", "PUT", "PATCH", "OPTIONS"]) {
      const answer = yield* service.request(method, "/mcp", { key, headers: { accept: "text/event-stream" } })
      expect([method, answer.status, answer.headers.get("allow")]).toEqual([method, 405, "POST"])
      expect(refusalOf(answer)).toEqual({ status: 405, rpc: -32_600, code: "method_not_allowed" })
    }
  })

  it.effect("refuses what is no message, in bounds", function* () {
    const { post } = yield* start
    const large = { ...listTools, params: { filler: "x".repeat(256 * 1024) } }
    const json = { "content-type": "application/json" }
    const deep = `${"[".repeat(100)}${"]".repeat(100)}`
    const cases: ReadonlyArray<readonly [number, number, string, RequestOptions]> = [
      [413, -32_600, "payload_too_large", { raw: JSON.stringify(large), headers: json }],
      [422, -32_700, "validation_failed", { raw: "{", headers: json }],
      [422, -32_700, "validation_failed", { raw: Uint8Array.of(0xff), headers: json }],
      [422, -32_600, "validation_failed", { raw: `{"jsonrpc":"2.0","params":${deep}}`, headers: json }],
      [422, -32_600, "validation_failed", { raw: JSON.stringify([listTools, listTools]), headers: json }],
      [422, -32_600, "validation_failed", { body: { hello: "world" } }],
      [422, -32_600, "validation_failed", { body: null }],
      [422, -32_600, "validation_failed", { body: { ...listTools, id: null } }],
      [422, -32_600, "validation_failed", { body: { ...listTools, jsonrpc: "1.0" } }],
      [415, -32_600, "unsupported_media_type", { raw: "{}", headers: { "content-type": "text/plain" } }],
      [415, -32_600, "unsupported_media_type", { raw: Buffer.from(JSON.stringify(listTools)) }]
    ]
    for (const [status, rpc, code, options] of cases) {
      expect(refusalOf(yield* post(undefined, options))).toEqual({ status, rpc, code })
    }
    const { service } = yield* start
    for (const [head, status, rpc, code] of [
      [`x-large: ${"a".repeat(20_000)}\r\n`, 431, -32_600, "headers_too_large"],
      ["content-length: 3\r\ncontent-length: 4\r\n", 422, -32_600, "validation_failed"]
    ] as const) {
      const answer = yield* sendBytes(service.baseUrl, `POST /mcp HTTP/1.1\r\nhost: x\r\n${head}\r\n`)
      expect(refusalOf(answer)).toEqual({ status, rpc, code })
    }
    // What the protocol itself has words for is answered in its words
    const protocol: ReadonlyArray<readonly [number, unknown, Record<string, string>]> = [
      [406, listTools, { accept: "text/html" }],
      [406, listTools, { accept: "text/event-stream" }],
      [406, listTools, { accept: "application/jsonp" }],
      [400, listTools, { "mcp-protocol-version": "1999-01-01" }]
    ]
    for (const [status, body, headers] of protocol) {
      const answer = yield* post(body, { headers })
      expect([answer.status, answer.json["jsonrpc"], answer.json["id"]]).toEqual([status, "2.0", null])
      expect(answer.headers.get("request-id")).toMatch(/^req_/)
    }
  })

  it.effect("answers whoever takes JSON, in whatever words", function* () {
    const { key, post, service } = yield* start
    for (const words of ["*/*", "application/json", "text/html, application/*;q=0.8", "APPLICATION/JSON"]) {
      const answer = yield* post(listTools, { headers: { accept: words } })
      expect([words, answer.status, answer.headers.get("content-type")]).toEqual([words, 200, "application/json"])
    }
    const body = JSON.stringify(listTools)
    const head = `host: x\r\nx-api-key: ${key}\r\ncontent-type: application/json\r\nconnection: close\r\n`
    const silent = `POST /mcp HTTP/1.1\r\n${head}content-length: ${body.length}\r\n\r\n${body}`
    expect((yield* sendBytes(service.baseUrl, silent)).status).toBe(200)
  })

  it.effect("says which parameters of a message it does not take", function* () {
    const { post } = yield* start
    const clientInfo = { name: "test", version: "1" }
    const cases: ReadonlyArray<readonly [method: string, params: unknown, fields: ReadonlyArray<string>]> = [
      ["tools/call", undefined, ["params"]],
      ["tools/call", [], ["params"]],
      ["tools/call", 5, ["params"]],
      ["tools/call", {}, ["params.name"]],
      ["tools/call", { name: 1, arguments: [] }, ["params.name", "params.arguments"]],
      ["tools/call", { name: "drop_tables" }, ["params.name"]],
      ["tools/call", { name: "__proto__" }, ["params.name"]],
      ["tools/list", { cursor: 1 }, ["params.cursor"]],
      ["ping", "now", ["params"]],
      ["initialize", { protocolVersion: 1, capabilities: {}, clientInfo }, ["params.protocolVersion"]],
      ["initialize", { clientInfo: { name: 1 } }, ["params.protocolVersion", "params.capabilities"]],
      ["resources/list", [], ["params"]],
      ["resources/read", {}, ["params.uri"]]
    ]
    for (const [method, params, fields] of cases) {
      for (const id of [7, "seven"]) {
        const answer = yield* post({ jsonrpc: "2.0", id, method, params })
        const { data, ...error } = Object(answer.json["error"])
        const what = [method, params]
        expect([what, answer.status, answer.json["jsonrpc"], answer.json["id"]]).toEqual([what, 200, "2.0", id])
        expect([what, error]).toEqual([what, { code: -32_602, message: data.error }])
        expect([what, data.code, data.requestId]).toEqual([what, "validation_failed", answer.headers.get("request-id")])
        expect(data.fields).toEqual(expect.arrayContaining([...fields]))
      }
    }
    const many = { name: Object.fromEntries(Array.from({ length: 90 }, (_, index) => [`k${index}`, index])) }
    const bounded = yield* post({ jsonrpc: "2.0", id: 1, method: "tools/call", params: many })
    expect(bounded.text.length).toBeLessThan(2000)
  })

  it.effect("offers the few tools that the connection's address names, and calls no other", function* () {
    const { key, service } = yield* start
    const to = (query: string, body: unknown = listTools) =>
      service.request("POST", `/mcp${query}`, { key, body, headers: { accept } })
    const named = (answer: Answer) => Object(answer.json["result"]).tools.map(({ name }: { name: string }) => name)
    const few = "?tools=get_webhook_delivery,list_event_types,list_event_types,list_products"
    // The key has no permission for products
    expect(named(yield* to(few))).toEqual(["get_webhook_delivery", "list_event_types"])
    expect(named(yield* to("?"))).toContain("create_webhook_endpoint")
    expect(named(yield* to("?tools=webhooks,list_products"))).toEqual(toolSets["webhooks"])
    const call = (name: string) => to(few, { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name } })
    expect((yield* call("list_event_types")).json).toMatchObject({ result: { content: expect.any(Array) } })
    expect((yield* call("list_webhook_endpoints")).json).toMatchObject({
      error: { code: -32_602, data: { fields: ["params.name"] } }
    })
    const many = Array.from({ length: 101 }, () => "list_event_types").join(",")
    for (const query of [
      "?tools=",
      "?tools=drop_tables",
      "?tools=list_event_types,",
      "?tools=list_event_types, list_products",
      "?tools=__proto__",
      "?tools=list_event_types&tools=list_products",
      `?tools=${many}`
    ]) {
      const answer = yield* to(query)
      expect([query, refusalOf(answer)]).toEqual([query, { status: 422, rpc: -32_600, code: "validation_failed" }])
      expect([query, Object(answer.json["error"]).data.fields]).toEqual([query, ["tools"]])
    }
    expect(refusalOf(yield* to("?tool=list_products")).code).toBe("validation_failed")
    expect(named(yield* to(`?tools=${many.slice("list_event_types,".length)}`))).toEqual(["list_event_types"])
  })

  it.scoped("has the guide to errors and the schemas of events to read", function* () {
    const { key, post, service } = yield* start
    const { client } = yield* overHttp(service.baseUrl, key)
    const { resources } = yield* Effect.promise(() => client.listResources())
    expect((yield* Effect.promise(() => client.listResourceTemplates())).resourceTemplates).toEqual([])
    expect(resources.length).toBe(eventTypes.length + 2)
    for (const { mimeType, uri } of resources) {
      const { contents } = yield* Effect.promise(() => client.readResource({ uri }))
      const served = yield* service.request("GET", uri.replace("connected-payments:/", ""))
      expect([uri, served.status]).toEqual([uri, 200])
      const [content] = contents
      const text = content !== undefined && "text" in content ? content.text : ""
      expect([uri, contents.length, content?.uri, content?.mimeType]).toEqual([uri, 1, uri, mimeType])
      if (mimeType === "text/markdown") {
        expect(text).toMatch(/^# Errors/)
        expect(text).toContain("`rate_limit_exceeded`")
      } else {
        expect(JSON.parse(text)).toEqual(JSON.parse(served.text))
      }
    }
    for (const uri of ["connected-payments://docs/none", "file:///etc/passwd", "__proto__", ""]) {
      const answer = yield* post({ jsonrpc: "2.0", id: 5, method: "resources/read", params: { uri } })
      expect(answer.json).toMatchObject({ id: 5, error: { code: -32_002, data: { code: "resource_not_found" } } })
    }
  })

  it.effect("counts every message against the key's rate limit", function* () {
    const { makeKey, post } = yield* start
    const key = yield* makeKey("webhook-endpoints:read")
    const first = yield* post(listTools, { key })
    expect(first.headers.get("ratelimit-limit")).toBe("60")
    expect(first.headers.get("ratelimit-remaining")).toBe("59")
    const answers = yield* Effect.all(
      Array.from({ length: 80 }, () => post(listTools, { key })),
      { concurrency: 8 }
    )
    const limited = answers.filter(({ status }) => status === 429)
    expect(limited.length).toBeGreaterThan(0)
    expect(limited.map(refusalOf)[0]).toEqual({ status: 429, rpc: -32_000, code: "rate_limit_exceeded" })
    expect(Number(limited[0]?.headers.get("retry-after"))).toBeGreaterThan(0)
  })

  it.scoped("serves many clients at once, none of whom sees another's answers", function* () {
    const { key, service } = yield* start
    const strangers = yield* service.makeKey(service.stranger.id, ["webhook-endpoints:*"])
    const consumer = yield* makeConsumer
    const [mine, theirs] = yield* Effect.all([overHttp(service.baseUrl, key), overHttp(service.baseUrl, strangers)])
    yield* mine.call("create_webhook_endpoint", { name: "Mine", url: consumer.url, events: ["payout.paid"] })
    const answers = yield* Effect.all(
      Array.from({ length: 10 }, () => [
        mine.call("list_webhook_endpoints"),
        theirs.call("list_webhook_endpoints")
      ]).flat(),
      // More of one tenant's would be refused if they took long
      { concurrency: 4 }
    )
    answers.forEach(({ json }, index) => {
      expect(JSON.stringify(json).includes("Mine")).toBe(index % 2 === 0)
    })
  })

  it.scoped("over standard input and output serves the same tools, with what the key may do", function* () {
    const { makeKey, service } = yield* start
    const key = yield* makeKey("webhook-endpoints:read")
    const chosen = ["list_webhook_endpoints", "get_webhook_delivery", "create_webhook_endpoint"]
    const mcp = yield* connectTo(
      new StdioClientTransport({
        command: process.execPath,
        args: [...mcpCommand, "--url", service.baseUrl, "--api-key-env", "TEST_KEY", "--tools", chosen.join(",")],
        // Nothing of the service's settings: neither the database nor the master keys
        env: { PATH: process.env["PATH"] ?? "", TEST_KEY: key },
        stderr: "pipe"
      })
    )
    const overTheWire = yield* overHttp(service.baseUrl, key)
    const { tools } = yield* Effect.promise(() => mcp.client.listTools())
    const all = yield* Effect.promise(() => overTheWire.client.listTools())
    expect(tools).toEqual(all.tools.filter(({ name }) => chosen.includes(name)))
    expect(tools.map(({ name }) => name)).toEqual(["list_webhook_endpoints", "get_webhook_delivery"])
    expect(mcp.client.getServerVersion()).toEqual(overTheWire.client.getServerVersion())
    const listed = yield* overTheWire.call("list_webhook_endpoints")
    expect(yield* mcp.call("list_webhook_endpoints")).toEqual(listed)
    const endpoint = { name: "Shop", url: "https://shop.example/", events: ["payout.paid"] }
    const refused = yield* mcp.call("create_webhook_endpoint", endpoint)
    expect(refused).toMatchObject({ isError: true, json: { code: "endpoint_management_forbidden" } })
  })

  it.effect("over standard input and output answers a refused key and an absent service, without keys", function* () {
    const { service } = yield* start
    const key = `pk_test_${"x".repeat(43)}`
    const { url: absent } = yield* Effect.scoped(makeConsumer)
    const ask = (url: string) =>
      Effect.gen(function* () {
        const [input, output] = [new PassThrough(), new PassThrough()]
        input.end(`${JSON.stringify(listTools)}\n`)
        yield* bridge({ url: new URL(url), key: Redacted.make(key), input, output })
        return String(output.read())
      })
    const cases = [
      [service.baseUrl, "api_key_invalid"],
      [`${service.baseUrl}/elsewhere`, "resource_not_found"],
      [absent, "ECONNREFUSED"]
    ] as const
    for (const [url, expected] of cases) {
      const answer = yield* ask(url)
      expect(JSON.parse(answer)).toMatchObject({ id: 1, error: { message: expect.stringContaining(expected) } })
      expect(answer).not.toContain(key)
    }
  })

  it.scoped("over standard input and output ends a request that the client cancels, without an answer", function* () {
    const silent = yield* makeConsumer
    silent.hold()
    const [input, output] = [new PassThrough(), new PassThrough()]
    const key = Redacted.make("pk_test_x")
    const running = yield* Effect.fork(bridge({ url: new URL(silent.url), key, input, output }))
    const send = (message: unknown) => Effect.sync(() => input.write(`${JSON.stringify(message)}\n`))
    yield* send(listTools)
    yield* eventuallyTrue("the request", () => silent.received.length === 1)
    const params = { requestId: listTools.id, reason: "The person has stopped" }
    yield* send({ jsonrpc: "2.0", method: "notifications/cancelled", params })
    // It ends once no request is under way
    input.end()
    yield* Fiber.join(running)
    expect(output.read()).toBeNull()
  })

  it.effect("over standard input and output is not started on a wrong address or without a key", function* () {
    for (const url of ["http://payments.example", "ftp://127.0.0.1", "nonsense"]) {
      const { code, stderr, stdout } = yield* cliHere({ CONNECTED_PAYMENTS_API_KEY: "pk_test_x" }, "mcp", "--url", url)
      expect([url, code, /https/.test(stderr + stdout)]).toEqual([url, 2, true])
    }
    expect((yield* cliHere({}, "mcp", "--api-key-env", "not a name")).code).toBe(2)
    expect((yield* cliHere({}, "mcp", "--tools", "list_products,,")).code).toBe(2)
    const { code, stderr } = yield* cliHere({}, "mcp", "--api-key-env", "ABSENT_KEY")
    expect([code, stderr]).toEqual([1, "Put the API key into the environment variable ABSENT_KEY.\n"])
  })
})
