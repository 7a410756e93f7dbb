import { createServer } from "node:http"
import { afterAll, expect } from "@effect/vitest"
import { Effect } from "effect"
import { operations } from "../../../src/surface/contract/Api.ts"
import { browserNote, hasBrowser, openBrowser } from "../../harness/Browser.ts"
import { onServiceWithMail, signInOwner } from "../../harness/SignIn.ts"
import { type Answer, sendRequest, TestService } from "../../harness/TestService.ts"
import { expectFailure } from "./Refusals.ts"

/** A server of an empty page, whose origin is known before the service starts. */
const openPage = () =>
  new Promise<{ readonly origin: string; readonly close: () => void }>((resolve) => {
    const server = createServer((_request, response) => {
      response.setHeader("content-type", "text/html").end("<!doctype html><title>Dashboard</title>")
    }).listen(0, "127.0.0.1", () => {
      const address = server.address()
      resolve({
        origin: `http://127.0.0.1:${typeof address === "object" ? address?.port : 0}`,
        close: () => void server.close()
      })
    })
  })

const [dashboard, stranger] = [await openPage(), await openPage()]
afterAll(() => {
  dashboard.close()
  stranger.close()
})

const organizationPath = "/v2/organizations/0199c0de-0000-7000-8000-00000000dead"

/** The headers of the protocol that an answer has, without its prefix. */
const permissions = ({ headers }: Answer): Record<string, string> =>
  Object.fromEntries(
    [...headers]
      .filter(([name]) => name.startsWith("access-control-"))
      .map(([name, value]) => [name.slice("access-control-".length), value])
  )

const granted = { "allow-origin": dashboard.origin, "allow-credentials": "true" }

const exposed =
  "allow, etag, idempotent-replayed, link, ratelimit-limit, ratelimit-remaining, ratelimit-reset, ratelimit-scope, request-id, retry-after"

/** A browser's question whether a page may send a request. */
const ask = (path: string, origin: string, method = "POST") =>
  sendRequest("OPTIONS", path, {
    headers: { origin, "access-control-request-method": method, "access-control-request-headers": "idempotency-key" }
  })

onServiceWithMail({ roles: { api: true, worker: false }, trustedOrigins: [dashboard.origin, "https://app.example"] })(
  "pages of other origins",
  (it) => {
    it.effect("may send every operation's method and headers if the operator trusts them", function* () {
      for (const { path } of operations.filter(({ path }) => /^\/(v2|identity)\//.test(path))) {
        const target = path.replaceAll(/:\w+/g, "0199c0de-0000-7000-8000-00000000dead")
        const answer = yield* ask(target, dashboard.origin)
        expect([path, answer.status, answer.text, answer.headers.get("vary")]).toEqual([path, 204, "", "origin"])
        const methods = new Set(
          operations
            .filter((other) => other.path === path)
            .flatMap(({ method }) => (method === "GET" ? [method, "HEAD"] : [method]))
        )
        const { "allow-methods": allowed = "", ...rest } = permissions(answer)
        expect([path, new Set(allowed.split(", "))]).toEqual([path, methods])
        expect(rest).toEqual({
          ...granted,
          "allow-headers": "content-type, idempotency-key, if-none-match, service-workspace, traceparent, x-request-id",
          "max-age": "600"
        })
      }
      const other = yield* ask("/identity/session", "https://app.example")
      expect(permissions(other)["allow-origin"]).toBe("https://app.example")
    })

    it.effect("read refusals too, whatever went wrong", function* () {
      const { organization, request } = yield* TestService
      const headers = { origin: dashboard.origin }
      const refusals = [
        [401, "authentication_required", yield* request("GET", `${organizationPath}/provider/account`, { headers })],
        [404, "resource_not_found", yield* request("GET", "/v2/nothing", { headers })],
        [405, "method_not_allowed", yield* request("PUT", "/identity/session", { headers })],
        [
          422,
          "validation_failed",
          yield* request("POST", `/v2/organizations/${organization.id}/provider/products`, {
            key: organization.testKey,
            raw: "{",
            headers: { ...headers, "content-type": "application/json", "idempotency-key": "cross-origin-1" }
          })
        ]
      ] as const
      for (const [status, code, answer] of refusals) {
        expectFailure(answer, { status, code })
        expect(permissions(answer)).toEqual({ ...granted, "expose-headers": exposed })
        expect(answer.headers.get("vary")).toBe("origin")
      }
      // A page learns that nothing is served by asking for it
      expect((yield* ask("/v2/nothing", dashboard.origin)).status).toBe(204)
    })

    it.effect("read nothing and may send nothing if the operator does not trust them", function* () {
      const { organization, request } = yield* TestService
      const path = `/v2/organizations/${organization.id}/provider/account`
      const untrusted = [
        "https://evil.example",
        "null",
        "*",
        "",
        dashboard.origin.toUpperCase(),
        `${dashboard.origin}/`,
        `${dashboard.origin}.evil.example`,
        `${dashboard.origin}, https://evil.example`,
        "http://app.example"
      ]
      for (const origin of untrusted) {
        const preflight = yield* ask(path, origin)
        expectFailure(preflight, { status: 405, code: "method_not_allowed" }, origin)
        expect([origin, permissions(preflight)]).toEqual([origin, {}])
        const answer = yield* request("GET", path, { key: organization.testKey, headers: { origin } })
        expect([origin, answer.status, permissions(answer)]).toEqual([origin, 200, {}])
        expect(answer.headers.get("vary")).toBe("origin")
      }
      // What is no question is no permission either, and only these paths are shared
      const options = yield* request("OPTIONS", path, { headers: { origin: dashboard.origin } })
      expect(options.status).toBe(405)
      for (const elsewhere of ["/mcp", "/health/live", "/openapi.json", "/webhooks/provider", "/v2", "/v20/x", "/"]) {
        const answer = yield* ask(elsewhere, dashboard.origin)
        expect([elsewhere, permissions(answer), answer.headers.get("vary")]).toEqual([elsewhere, {}, null])
        expect(answer.status).toBeGreaterThanOrEqual(400)
      }
    })

    it.scoped.skipIf(!hasBrowser)(`act for a signed-in person in a browser if trusted${browserNote}`, function* () {
      const { baseUrl } = yield* TestService
      const owner = yield* signInOwner
      const browser = yield* openBrowser
      const [name, value] = owner.cookie.split("=")
      const path = `${baseUrl}/v2/organizations/${owner.organizationId}`
      yield* Effect.promise(async () => {
        await browser.addCookies([
          // A browser takes it from this machine over plain HTTP, but not by its protocol for tests
          {
            name: name ?? "",
            value: value ?? "",
            url: baseUrl.replace("http:", "https:"),
            httpOnly: true,
            secure: true,
            sameSite: "Lax"
          }
        ])
        const send = async (origin: string) => {
          const page = await browser.newPage()
          await page.goto(origin)
          return page.evaluate(async (base) => {
            const read = async (method: string, url: string, headers: Record<string, string>, body?: string) => {
              try {
                const response = await fetch(url, {
                  method,
                  headers,
                  credentials: "include",
                  ...(body === undefined ? {} : { body })
                })
                const { code, data } = Object(await response.json())
                return [response.status, code ?? Array.isArray(data), response.headers.get("request-id") !== null]
              } catch {
                return "refused by the browser"
              }
            }
            return [
              await read("GET", `${base}/integrations/endpoints`, {}),
              await read(
                "POST",
                `${base}/integrations/endpoints`,
                { "content-type": "application/json", "idempotency-key": "from-a-page" },
                JSON.stringify({ name: "Shop" })
              ),
              // A key is for servers alone
              await read("GET", `${base}/integrations/endpoints`, { "x-api-key": "pk_test_x" })
            ]
          }, path)
        }
        const refused = "refused by the browser"
        expect(await send(dashboard.origin)).toEqual([[200, true, true], [422, "validation_failed", true], refused])
        expect(await send(stranger.origin)).toEqual([refused, refused, refused])
      })
    })
  }
)
