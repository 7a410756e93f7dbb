import { HttpServerRequest, HttpServerResponse } from "@effect/platform"
import { expect, it as plainIt } from "@effect/vitest"
import { Effect } from "effect"
import { largestTaggedBody, withCaching } from "../../../src/surface/http/Edge.ts"
import { onSharedService, sendRequest, TestService } from "../../harness/TestService.ts"
import { makeSubscriber, makeTenant, subscribe, type Tenant } from "../../inbound/Notifications.ts"
import { expectFailure } from "./Refusals.ts"
import { authenticatedOperations, OwnThings, pathOf } from "./Samples.ts"

const readings = authenticatedOperations.filter(
  ({ method, path }) => method === "GET" && !path.endsWith("/event-stream")
)

const get = (path: string, key: string, ifNoneMatch?: string) =>
  sendRequest("GET", path, { key, headers: ifNoneMatch === undefined ? {} : { "if-none-match": ifNoneMatch } })

const tagged = (path: string, key: string) =>
  Effect.map(get(path, key), (answer) => {
    expect(answer.status, `${path} ${answer.text}`).toBe(200)
    const etag = answer.headers.get("etag") ?? ""
    expect(etag, path).toMatch(/^"[A-Za-z0-9_-]{43}"$/)
    return { ...answer, etag }
  })

const endpointsOf = ({ id }: Pick<Tenant, "id">) => `/v2/organizations/${id}/integrations/endpoints`

onSharedService("an answer that is asked for again", (it) => {
  it.layer(OwnThings.layer)((it) => {
    it.effect("has a tag in every reading of the API, and is for its own caller's cache alone", function* () {
      const { organization } = yield* TestService
      const { things } = yield* OwnThings
      yield* Effect.forEach(
        readings,
        (operation) =>
          Effect.map(tagged(pathOf(operation, organization.id, things), organization.testKey), ({ headers }) =>
            expect(headers.get("cache-control"), operation.path).toBe("private, no-cache")
          ),
        { concurrency: 4 }
      )
    })
  })

  it.effect("is 304 without a body while it is the same, and complete once it has changed", function* () {
    const { tenant } = yield* makeSubscriber()
    const path = endpointsOf(tenant)
    const { etag } = yield* tagged(path, tenant.key)
    for (const known of [etag, `W/${etag}`, `"another", ${etag}`, "*"]) {
      const same = yield* get(path, tenant.key, known)
      expect(same.status, known).toBe(304)
      expect(same.text).toBe("")
      expect(same.headers.get("etag")).toBe(etag)
      expect(same.headers.get("cache-control")).toBe("private, no-cache")
      expect(same.headers.get("request-id")).toMatch(/^req_/)
      expect(same.headers.get("ratelimit-remaining")).not.toBeNull()
      expect(same.headers.get("content-type")).toBeNull()
    }
    yield* subscribe(tenant)
    const changed = yield* get(path, tenant.key, etag)
    expect(changed.status).toBe(200)
    expect(changed.headers.get("etag")).not.toBe(etag)
    expect(Object(changed.json["data"])).toHaveLength(2)
  })

  it.effect("is complete for tags that are not its own, whatever is sent as one", function* () {
    const tenant = yield* makeTenant
    const path = endpointsOf(tenant)
    const { etag } = yield* tagged(path, tenant.key)
    const others = ["", '""', etag.slice(1, -1), `w/${etag}`, `${etag}x`, ",".repeat(8000), `"${"a".repeat(8000)}"`]
    for (const other of others) {
      const answer = yield* get(path, tenant.key, other)
      expect(answer.status, other.slice(0, 80)).toBe(200)
      expect(answer.headers.get("etag")).toBe(etag)
    }
  })

  it.effect("is refused before its tag is looked at: another tenant's, no permission, no credential", function* () {
    const { makeKey, request } = yield* TestService
    const [tenant, stranger] = [yield* makeTenant, yield* makeTenant]
    yield* subscribe(tenant)
    const path = endpointsOf(tenant)
    const { etag } = yield* tagged(path, tenant.key)
    const poor = yield* makeKey(tenant.id, ["products:read"]).pipe(Effect.orDie)
    for (const known of [etag, "*"]) {
      expectFailure(yield* get(path, stranger.key, known), { status: 403, code: "organization_access_denied" })
      expectFailure(yield* get(path, poor, known), { status: 403, code: "endpoint_management_forbidden" })
      const headers = { "if-none-match": known }
      expectFailure(yield* request("GET", path, { headers }), { status: 401, code: "authentication_required" })
    }
    expect((yield* get(endpointsOf(stranger), stranger.key, etag)).status).toBe(200)
  })

  it.effect("is another one for who may see more", function* () {
    const { emulator, makeKey } = yield* TestService
    const tenant = yield* makeTenant
    yield* emulator.trigger({ type: "payment_intent.succeeded", account: tenant.accountId })
    const path = `/v2/organizations/${tenant.id}/provider/charges`
    const all = yield* makeKey(tenant.id, ["payments:read", "customers:read"]).pipe(Effect.orDie)
    const some = yield* makeKey(tenant.id, ["payments:read"]).pipe(Effect.orDie)
    const [full, partial] = [yield* tagged(path, all), yield* tagged(path, some)]
    expect(full.text).not.toBe(partial.text)
    expect((yield* get(path, some, full.etag)).status).toBe(200)
    expect((yield* get(path, all, partial.etag)).status).toBe(200)
    expect((yield* get(path, some, partial.etag)).status).toBe(304)
  })

  it.effect("has the same tag for HEAD, and none when it is refused or a change", function* () {
    const tenant = yield* makeTenant
    const path = endpointsOf(tenant)
    const { etag } = yield* tagged(path, tenant.key)
    expect((yield* sendRequest("HEAD", path, { key: tenant.key })).headers.get("etag")).toBe(etag)
    expect((yield* sendRequest("HEAD", path, { key: tenant.key, headers: { "if-none-match": etag } })).status).toBe(304)
    const unknown = yield* get(`${path}/0199c0de-0000-7000-8000-00000000dead`, tenant.key, "*")
    expectFailure(unknown, { status: 404, code: "resource_not_found" })
    expect(unknown.headers.get("etag")).toBeNull()
    expect(unknown.headers.get("cache-control")).toBe("private, no-cache")
    const created = yield* sendRequest("POST", path, {
      key: tenant.key,
      headers: { "idempotency-key": crypto.randomUUID(), "if-none-match": "*" },
      body: { name: "Orders", url: "http://127.0.0.1:9/hook", events: ["payment.succeeded"] }
    })
    expect(created.status, created.text).toBe(200)
    expect(created.headers.get("etag")).toBeNull()
  })
})

plainIt("what says of itself how it may be cached, and what is too large to hash, gets no tag", () => {
  const path = "/v2/organizations/x/provider/products"
  const request = HttpServerRequest.fromWeb(new Request(`https://payments.example${path}`))
  const own = HttpServerResponse.text("secret", { headers: { "cache-control": "no-store" } })
  expect(withCaching(request, path, own)).toBe(own)
  const sized = (size: number) => withCaching(request, path, HttpServerResponse.text("x".repeat(size)))
  expect(sized(largestTaggedBody).headers["etag"]).toBeDefined()
  expect(sized(largestTaggedBody + 1).headers["etag"]).toBeUndefined()
  expect(sized(largestTaggedBody + 1).headers["cache-control"]).toBe("private, no-cache")
  const page = HttpServerResponse.text("page")
  expect(withCaching(request, "/docs/api", page)).toBe(page)
})
