import { randomUUID } from "node:crypto"
import { expect } from "@effect/vitest"
import { Effect } from "effect"
import { operations } from "../../../src/surface/contract/Api.ts"
import { onSharedService, type RequestOptions, TestService } from "../../harness/TestService.ts"
import { expectFailure, sendBytes } from "./Refusals.ts"
import { tenantData } from "./Samples.ts"

/** The suite's organization: its paths, and requests with its key. */
const caller = Effect.map(TestService, ({ organization, request, baseUrl }) => {
  const path = `/v2/organizations/${organization.id}`
  return {
    baseUrl,
    key: organization.testKey,
    endpoints: `${path}/integrations/endpoints`,
    products: `${path}/provider/products`,
    prices: `${path}/provider/prices`,
    send: (method: string, path: string, options: RequestOptions = {}) =>
      request(method, path, {
        key: organization.testKey,
        ...options,
        headers: { "idempotency-key": randomUUID(), ...options.headers }
      })
  }
})

const json = { "content-type": "application/json" }

const validation = (fields?: ReadonlyArray<string>) => ({
  status: 422,
  code: "validation_failed",
  ...(fields === undefined ? {} : { fields })
})

onSharedService("every failure", (it) => {
  it.effect("of an unknown route is 404, with or without a key", function* () {
    const { endpoints, send } = yield* caller
    const { request } = yield* TestService
    for (const path of ["/nope", "/v1/accounts", "/v2/organizations", `${endpoints}/a/b/c`, "/HEALTH/live", "//docs"]) {
      for (const answer of [yield* send("GET", path), yield* request("GET", path), yield* request("POST", path)]) {
        expectFailure(answer, { status: 404, code: "resource_not_found", fields: [] }, path)
        expect(answer.headers.has("allow")).toBe(false)
      }
    }
  })

  it.effect("of a known path with another method is 405, and Allow lists the path's methods", function* () {
    const { request } = yield* TestService
    const paths = new Map<string, Array<string>>()
    for (const { method, path } of operations) {
      const concrete = path.replaceAll(/:\w+/g, "00000000-0000-7000-8000-000000000000")
      paths.set(concrete, [...(paths.get(concrete) ?? []), ...(method === "GET" ? ["GET", "HEAD"] : [method])])
    }
    for (const page of [
      "/",
      "/docs",
      "/docs/getting-started",
      "/docs/search",
      "/docs/reference",
      "/docs/reference/products",
      "/openapi.json",
      "/checkout/success",
      "/checkout/canceled"
    ]) {
      paths.set(page, ["GET", "HEAD"])
    }
    for (const [path, methods] of paths) {
      for (const method of ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"].filter((m) => !methods.includes(m))) {
        const answer = yield* request(method, path)
        expectFailure(answer, { status: 405, code: "method_not_allowed", fields: [] }, `${method} ${path}`)
        expect(answer.headers.get("allow")?.split(", ").toSorted(), path).toEqual(methods.toSorted())
      }
    }
  })

  it.effect("is the same status for HEAD, without a body", function* () {
    const { endpoints, products, send } = yield* caller
    for (const path of [endpoints, `${products}?limit=x`, `${products}/ab`, "/nope", "/health/live"]) {
      const [head, get] = [yield* send("HEAD", path), yield* send("GET", path)]
      expect(head.status, path).toBe(get.status)
      expect(head.text).toBe("")
      expect(head.headers.get("request-id")).toMatch(/^req_/)
    }
  })

  it.effect("of a body that is no JSON object is 422", function* () {
    const { endpoints, prices, send } = yield* caller
    const bodies = [
      "{",
      "",
      "null",
      "[]",
      '"text"',
      "7",
      "true",
      "{} {}",
      "{'a': 1}",
      '{"a": NaN}',
      '{"a": undefined}',
      "\0",
      "\ufeff{",
      "// {}"
    ]
    for (const path of [endpoints, prices]) {
      for (const raw of bodies) {
        expectFailure(yield* send("POST", path, { raw, headers: json }), validation(), JSON.stringify(raw))
      }
      expectFailure(yield* send("POST", path), validation(), "no body")
      const latin1 = Buffer.from('{"name":"caf\xe9"}', "latin1")
      expectFailure(yield* send("POST", path, { raw: latin1, headers: json }), validation(), "not UTF-8")
    }
  })

  it.effect("of another media type than JSON is 415", function* () {
    const { endpoints, products, send } = yield* caller
    const types = [
      "text/plain",
      "application/x-www-form-urlencoded",
      "multipart/form-data; boundary=x",
      "application/octet-stream",
      "text/json",
      "application/jsonp",
      "application/json-seq",
      "text/plain; application/json",
      "nonsense"
    ]
    for (const path of [endpoints, products]) {
      for (const type of types) {
        const answer = yield* send("POST", path, { raw: '{"name":"Coffee"}', headers: { "content-type": type } })
        expectFailure(answer, { status: 415, code: "unsupported_media_type", fields: [] }, type)
      }
      for (const type of ["application/json", "application/json; charset=utf-8", "Application/JSON"]) {
        expectFailure(yield* send("POST", path, { raw: "{}", headers: { "content-type": type } }), validation(), type)
      }
    }
  })

  it.effect("of a body beyond 256 KiB is a 413 that arrives, whatever is sent, of known length or not", function* () {
    const { baseUrl, endpoints, key, send } = yield* caller
    const tooLarge = { status: 413, code: "payload_too_large", fields: [] }
    const limit = 256 * 1024
    const fitting = `{"name":"${"a".repeat(limit - 11)}"}`
    expect(fitting).toHaveLength(limit)
    expectFailure(yield* send("POST", endpoints, { raw: fitting, headers: json }), validation())
    expectFailure(yield* send("POST", endpoints, { raw: `${fitting} `, headers: json }), tooLarge)
    expectFailure(yield* send("POST", endpoints, { raw: "x".repeat(8 * 1024 * 1024), headers: json }), tooLarge)
    const head = `POST ${endpoints} HTTP/1.1\r\nhost: x\r\nx-api-key: ${key}\r\nidempotency-key: ${randomUUID()}\r\ncontent-type: application/json\r\n`
    const chunks = `4000\r\n${"x".repeat(0x4000)}\r\n`.repeat(40)
    expectFailure(yield* sendBytes(baseUrl, `${head}transfer-encoding: chunked\r\n\r\n${chunks}0\r\n\r\n`), tooLarge)
    const large = "x".repeat(1024 * 1024)
    expectFailure(yield* sendBytes(baseUrl, `${head}content-length: ${large.length}\r\n\r\n${large}`), tooLarge)
  })

  it.effect("of unknown keys in a body names each", function* () {
    const { endpoints, prices, products, send } = yield* caller
    const endpoint = { name: "Orders", url: "http://localhost:1/x", events: ["payment.failed"] }
    const unknown = { foo: 1, constructor: 2, toString: 3, signingSecret: "x" }
    expectFailure(
      yield* send("POST", endpoints, { body: { ...endpoint, ...unknown } }),
      validation(Object.keys(unknown))
    )
    expectFailure(
      yield* send("POST", products, { body: { name: "a", description_html: "x", default_price: "price_123" } }),
      validation(["description_html", "default_price"])
    )
    const price = { product: "prod_123", currency: "brl", unit_amount: 1, recurring: { interval: "month", often: 1 } }
    expectFailure(
      yield* send("POST", prices, { body: { ...price, application_fee: 1 } }),
      validation(["application_fee", "recurring.often"])
    )
  })

  it.effect("of unknown query parameters names each, also where an operation takes none", function* () {
    const { endpoints, products, send } = yield* caller
    const id = randomUUID()
    for (const path of [
      endpoints,
      products,
      `${products}/prod_123`,
      `${endpoints}/${id}`,
      `${endpoints}/${id}/deliveries`
    ]) {
      expectFailure(
        yield* send("GET", `${path}?foo=1&bar=2&constructor=3`),
        validation(["foo", "bar", "constructor"]),
        path
      )
    }
    expectFailure(yield* send("POST", `${products}?foo=1`, { body: { name: "Coffee" } }), validation(["foo"]))
    expectFailure(yield* send("GET", `${products}?limit=1&limit=2`), validation(["limit"]))
  })

  it.effect("of a query that begins with another question mark names the parameter as it was sent", function* () {
    const { endpoints, products, send } = yield* caller
    for (const path of [endpoints, products, `${products}/prod_123`]) {
      for (const query of ["??limit=1", ";?limit=1", "???limit=1", "?%3Flimit=1", "#?limit=1"]) {
        const name = query.startsWith("???") ? "??limit" : "?limit"
        const answer = yield* sendBytes(
          (yield* caller).baseUrl,
          `GET ${path}${query} HTTP/1.1\r\nconnection: close\r\nx-api-key: ${(yield* caller).key}\r\n\r\n`
        )
        expectFailure(answer, validation([name]), `${path}${query}`)
      }
    }
    expect((yield* send("GET", `${products}?`)).status).toBe(200)
  })

  it.effect("of JSON that does not say that it is JSON is 415; nothing at all needs no type", function* () {
    const { baseUrl, endpoints, key, products } = yield* caller
    const unsupported = { status: 415, code: "unsupported_media_type", fields: [] }
    for (const path of [endpoints, products, "/identity/sign-in-links", "/identity/session"]) {
      const head = `POST ${path} HTTP/1.1\r\nconnection: close\r\nx-api-key: ${key}\r\nidempotency-key: ${randomUUID()}\r\n`
      expectFailure(yield* sendBytes(baseUrl, `${head}content-length: 15\r\n\r\n{"name":"Test"}`), unsupported, path)
      const chunked = `${head}transfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n`
      expectFailure(yield* sendBytes(baseUrl, chunked), unsupported, path)
      expectFailure(yield* sendBytes(baseUrl, `${head}content-length: 0\r\n\r\n`), validation(), path)
      expectFailure(yield* sendBytes(baseUrl, `${head}transfer-encoding: chunked\r\n\r\n0\r\n\r\n`), validation(), path)
    }
  })

  it.effect("of several refused parts names all of them at once", function* () {
    const { endpoints, prices, products, send } = yield* caller
    const price = yield* send("POST", `${prices}?dry_run=1`, {
      headers: { "idempotency-key": "short" },
      body: { product: "x", currency: "BRL", unit_amount: -1, extra: true }
    })
    expectFailure(price, validation(["dry_run", "idempotency-key", "product", "currency", "unit_amount", "extra"]))
    expectFailure(yield* send("GET", `${products}/a-b?expand=all`), validation(["id", "expand"]))
    const update = yield* send("PATCH", `${endpoints}/not-a-uuid?x=1`, {
      body: { active: "yes", url: "https://a.example" }
    })
    expectFailure(update, validation(["id", "x", "active", "url"]))
  })

  it.effect("of an idempotency key that is missing, or not 8 to 255 printable characters, names it", function* () {
    const { key, products, send } = yield* caller
    const { request } = yield* TestService
    const body = { name: "Coffee" }
    const refused = validation(["idempotency-key"])
    expectFailure(yield* request("POST", products, { key, body }), refused, "missing")
    for (const bad of ["", "1234567", "a".repeat(256), "ç".repeat(7), "tab\tinside"]) {
      expectFailure(yield* send("POST", products, { body, headers: { "idempotency-key": bad } }), refused, bad)
    }
    for (const good of ["!~345678", "order 1001, paid", randomUUID().repeat(8).slice(0, 255)]) {
      const answer = yield* send("POST", products, { body, headers: { "idempotency-key": good } })
      expect(answer.status, answer.text).toBe(200)
    }
  })

  it.effect("is none if an idempotency key has printable characters beyond ASCII, in UTF-8 or Latin-1", function* () {
    const { baseUrl, key, products } = yield* caller
    const create = (idempotencyKey: Uint8Array) => {
      const [head, body] = [
        `POST ${products} HTTP/1.1\r\nhost: x\r\nconnection: close\r\nx-api-key: ${key}`,
        '{"name":"a"}'
      ]
      return sendBytes(
        baseUrl,
        Buffer.concat([
          Buffer.from(`${head}\r\nidempotency-key: `),
          idempotencyKey,
          Buffer.from(`\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`)
        ])
      )
    }
    const text = `pedido nº ${randomUUID()}`
    const first = yield* create(Buffer.from(text, "utf8"))
    expect([first.status, first.headers.get("idempotent-replayed")], first.text).toEqual([200, null])
    // The same characters are the same key, whichever bytes the client's library makes of them
    const again = yield* create(Buffer.from(text, "latin1"))
    expect([again.status, again.headers.get("idempotent-replayed")], again.text).toEqual([200, "true"])
    // 255 characters, most of two bytes
    expect((yield* create(Buffer.from(`${randomUUID()}${"ç".repeat(219)}`, "utf8"))).status).toBe(200)
    const tooLong = yield* create(Buffer.from(`${randomUUID()}${"ç".repeat(220)}`, "utf8"))
    expectFailure(tooLong, validation(["idempotency-key"]))
  })

  it.effect("of a query parameter that is a name of JavaScript's own names it like any other", function* () {
    const { endpoints, products, send } = yield* caller
    for (const name of ["__proto__", "constructor", "toString", "hasOwnProperty", "valueOf", "%5F_proto__"]) {
      const fields = [decodeURIComponent(name)]
      expectFailure(yield* send("GET", `${products}?${name}=1`), validation(fields), name)
      expectFailure(yield* send("GET", `${endpoints}?${name}`), validation(fields), name)
      expectFailure(yield* send("GET", `${products}?limit=x&${name}=1&${name}=2`), validation(["limit", ...fields]))
    }
    expectFailure(yield* send("GET", "/v2/nothing?__proto__=1"), { status: 404, code: "resource_not_found" })
    const many = Array.from({ length: 2_500 }, (_, n) => n.toString(36)).join("&")
    expectFailure(yield* send("GET", `${products}?${many}`), validation([]))
  })

  it.effect("names at most 20 fields of at most 200 characters, whatever was sent", function* () {
    const { endpoints, prices, products, send } = yield* caller
    const unknown = Object.fromEntries(Array.from({ length: 99 }, (_, n) => [`${n}${"😀".repeat(300)}`, n]))
    const halves = `{"${"k".repeat(50_000)}":[${Array.from({ length: 99 }, () => '"\\ud800"').join(",")}]}`
    const many = Array.from({ length: 90 }, (_, n) => `${n}${"q".repeat(80)}=1`).join("&")
    const answers = [
      yield* send("POST", products, { body: unknown }),
      yield* send("POST", prices, { body: unknown }),
      yield* send("POST", products, { raw: halves, headers: json }),
      yield* send("POST", products, { body: { name: "a", metadata: unknown } }),
      yield* send("POST", products, { body: { name: "a", [`${"k".repeat(250_000)}`]: 1 } }),
      yield* send("POST", endpoints, {
        body: { name: "a", url: "https://93.184.215.14/", events: ["payment.failed"], filters: unknown }
      }),
      yield* send("GET", `${products}?${many}`)
    ]
    for (const { status, text } of answers) {
      expect(status, text.slice(0, 300)).toBe(422)
      const { fields } = JSON.parse(text) as { readonly fields: ReadonlyArray<string> }
      expect(fields.length).toBeGreaterThan(0)
      expect(fields.length).toBeLessThanOrEqual(20)
      for (const field of fields) expect([...field].length).toBeLessThanOrEqual(200)
    }
  })

  it.effect("of a path that can't be decoded names the part", function* () {
    const { endpoints, products, send } = yield* caller
    expectFailure(yield* send("GET", `${products}/%ff`), validation(["id"]))
    expectFailure(yield* send("GET", `${products}/%zz`), validation(["id"]))
    expectFailure(yield* send("GET", `${endpoints}/%c0%ae`), validation(["id"]))
    expectFailure(
      yield* send("GET", "/v2/organizations/%E0%A4%A/integrations/endpoints"),
      validation(["organizationId"])
    )
    expectFailure(yield* send("GET", `${products}/a%2Fb%00?limit=x`), validation(["id", "limit"]))
    expectFailure(yield* send("GET", `${products};limit=x?limit=y`), validation())
  })

  it.effect("of every object's path without its id is a refusal of the id, and not the list", function* () {
    const { endpoints, key, send } = yield* caller
    const { request } = yield* TestService
    const created = yield* tenantData(yield* TestService)
    const ofOne = operations.filter(
      ({ path }) => /:\w+$/.test(path) && operations.some((other) => other.path === path.replace(/\/:\w+$/, ""))
    )
    expect(ofOne.length).toBeGreaterThan(15)
    for (const { method, path } of ofOne) {
      const [, name = ""] = /:(\w+)$/.exec(path) ?? []
      const url = endpoints.replace(/\/integrations.*/, path.slice("/v2/organizations/:organizationId".length))
      const target = path.startsWith("/v2/organizations/:organizationId/") ? url : path
      const answer = yield* request(method, target.replace(/:\w+$/, "").replaceAll(/:\w+/g, randomUUID()), { key })
      expectFailure(answer, validation([name]), `${method} ${path}`)
      expect(answer.json["error"], `${method} ${path}`).toContain("in the path must be")
    }
    expect(yield* tenantData(yield* TestService)).toEqual(created)
    expect((yield* send("GET", `${endpoints}/?limit=1`)).status).toBe(422)
  })

  it.effect("of a path that is spelled with escapes, or in absolute form, is the one of the plain path", function* () {
    const { baseUrl, endpoints, key, products, send } = yield* caller
    const escaped = (path: string) => path.replace("v2", "%762").replace("provider", "provid%65r")
    const body = { name: 5, nope: 1 }
    expectFailure(yield* send("POST", escaped(products), { body }), validation(["name", "nope"]))
    expectFailure(yield* send("GET", `${escaped(products)}/%61?limit=x`), validation(["id", "limit"]))
    expectFailure(yield* send("GET", `${escaped(products)}?__proto__=1`), validation(["__proto__"]))
    expectFailure(yield* send("PATCH", escaped(endpoints)), { status: 405, code: "method_not_allowed" })
    const signIn = yield* send("POST", "/identity/sign-in-link%73", { body: { email: "nobody" } })
    expectFailure(signIn, validation(["email"]))
    const absolute = (path: string) =>
      sendBytes(
        baseUrl,
        `GET http://user:secret@shop.example${path} HTTP/1.1\r\nhost: x\r\nx-api-key: ${key}\r\nconnection: close\r\n\r\n`
      )
    expectFailure(yield* absolute(`${products}?limit=x`), validation(["limit"]))
    for (const answer of [yield* send("GET", escaped(endpoints)), yield* absolute(endpoints)]) {
      expect(answer.status, answer.text).toBe(200)
      expect(answer.headers.get("cache-control")).toBe("private, no-cache")
      expect(answer.headers.get("vary")).toBe("origin")
    }
  })

  it.effect("of what is not HTTP, or has too large a head, comes in the same form", function* () {
    const { baseUrl, endpoints } = yield* caller
    const nonsense = [
      "garbage\r\n\r\n",
      "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
      `GET ${endpoints} HTTP/9.9\r\n\r\n`,
      "BREW /coffee HTTP/1.1\r\nhost: x\r\n\r\n",
      "CONNECT shop.example:443 HTTP/1.1\r\nhost: x\r\n\r\n",
      `POST ${endpoints} HTTP/1.1\r\nhost: x\r\ncontent-length: 3\r\ncontent-length: 4\r\n\r\nabcd`,
      `POST ${endpoints} HTTP/1.1\r\nhost: x\r\ncontent-length: 4\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n`
    ]
    for (const bytes of nonsense) {
      expectFailure(yield* sendBytes(baseUrl, Buffer.from(bytes, "latin1")), validation([]), bytes.slice(0, 40))
    }
    const tooLarge = { status: 431, code: "headers_too_large", fields: [] }
    const large = "a".repeat(100_000)
    for (const head of [`GET /health/live HTTP/1.1\r\nhost: x\r\nx-large: ${large}`, `GET /${large} HTTP/1.1`]) {
      expectFailure(yield* sendBytes(baseUrl, `${head}\r\n\r\n`), tooLarge, head.slice(0, 60))
    }
  })

  it.effect("leaves unusual but readable requests alone", function* () {
    const { baseUrl } = yield* caller
    for (const head of ["host: x\r\nexpect: nonsense\r\n", "", "host: x\r\nupgrade: websocket\r\n"]) {
      const answer = yield* sendBytes(baseUrl, `GET /health/live HTTP/1.1\r\nconnection: close\r\n${head}\r\n`)
      expect(answer.status, head).toBe(200)
      expect(answer.headers.get("request-id")).toMatch(/^req_/)
    }
  })

  it.effect("of JSON that means harm is a refusal of its field, never a 500, and changes nothing", function* () {
    const { endpoints, prices, products, send } = yield* caller
    const service = yield* TestService
    const before = yield* tenantData(service)
    const post = (path: string, raw: string, fields?: ReadonlyArray<string>) =>
      Effect.map(send("POST", path, { raw, headers: json }), (answer) =>
        expectFailure(answer, validation(fields), raw.slice(0, 80))
      )
    const deepArray = `${"[".repeat(100_000)}${"]".repeat(100_000)}`
    const deepObject = `${'{"a":'.repeat(40_000)}1${"}".repeat(40_000)}`
    yield* post(products, `{"name":${deepArray}}`)
    yield* post(products, `{"name":"a","metadata":${deepObject}}`)
    yield* post(products, `{"name":"a","extra":${deepArray}}`)
    yield* post(
      endpoints,
      `{"name":"a","url":"http://localhost:1/x","events":["payment.failed"],"filters":${deepObject}}`
    )
    yield* post(products, `{"__proto__":{"name":"a"}}`, ["__proto__"])
    yield* post(products, `{"name":"a","metadata":{"\\u005f_proto__":"x"}}`, ["metadata.__proto__"])
    expectFailure(
      yield* send("POST", endpoints, {
        raw: `{"name":"a","url":"http://localhost:1/x","events":["payment.failed"],"filters":{"__proto__":{"x":1}}}`,
        headers: json
      }),
      { status: 422, code: "integration_filter_unknown", fields: ["filters.__proto__"] }
    )
    yield* post(products, `{"name":"a","filters":{"__proto__":{"x":1}}}`, ["filters"])
    yield* post(products, `{"name":"half a pair \\ud83d"}`, ["name"])
    yield* post(products, `{"name":"a","metadata":{"k":"\\udc00"}}`, ["metadata.k"])
    for (const amount of [
      "1e400",
      "99999999999999999999",
      "-1e400",
      "1e-7",
      "9007199254740993",
      '"100"',
      "[100]",
      "null"
    ]) {
      yield* post(prices, `{"product":"prod_123","currency":"brl","unit_amount":${amount}}`, ["unit_amount"])
    }
    yield* post(endpoints, `{"name":"a\\u0000","url":"http://localhost:1/x","events":["payment.failed"]}`, ["name"])
    yield* post(endpoints, `{"name":"a","url":"http://localhost:1/x","events":["payment.failed\\u0000"]}`, ["events.0"])
    expect(yield* tenantData(service)).toEqual(before)
  })

  it.effect("of a NUL is never a 500, wherever it stands", function* () {
    const { endpoints, products, prices, send } = yield* caller
    const bodies: ReadonlyArray<readonly [string, unknown]> = [
      [endpoints, { name: "a", url: "http://localhost:1/\0", events: ["payment.failed"] }],
      [endpoints, { name: "a", url: "http://localhost:1/x", events: ["payment.failed"], filters: { "\0": 1 } }],
      [products, { name: "a\0b", metadata: { "\0": "\0" } }],
      [prices, { product: "prod_\0", currency: "brl", unit_amount: 1 }]
    ]
    for (const [path, body] of bodies) {
      const answer = yield* send("POST", path, { body })
      expect(answer.status, answer.text).toBeLessThan(500)
    }
    expectFailure(yield* send("GET", `${products}?starting_after=prod_%00`), validation(["starting_after"]))
    expectFailure(yield* send("GET", `${endpoints}/%00`), validation(["id"]))
  })
})

onSharedService("the request id", (it) => {
  it.effect("is new for every response, good or bad, and no caller's", function* () {
    const { endpoints, products, send } = yield* caller
    const headers = { "x-request-id": "caller-chosen", "request-id": "caller-chosen" }
    const seen = new Set<string>()
    const paths = [
      "/health/live",
      "/health/ready",
      "/openapi.json",
      "/docs",
      "/checkout/success",
      "/nope",
      endpoints,
      products,
      `${products}/ab`
    ]
    for (const path of [...paths, ...paths]) {
      const id = (yield* send("GET", path, { headers })).headers.get("request-id") ?? ""
      expect(id, path).toMatch(/^req_[0-9a-f]{32}$/)
      seen.add(id)
    }
    expect(seen.size).toBe(paths.length * 2)
  })
})
