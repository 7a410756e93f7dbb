import { brotliDecompressSync, gunzipSync } from "node:zlib"
import { Effect } from "effect"
import { request as undiciRequest } from "undici"
import { onSharedService, sendRequest, TestService } from "../harness/TestService.ts"
import { expect, layer } from "../harness/Tests.ts"

const get = (path: string, headers: Readonly<Record<string, string>> = {}) => sendRequest("GET", path, { headers })

const filesOf = (html: string): ReadonlyArray<string> =>
  [...html.matchAll(/(?:href|src)="(assets\/[^"]+)"/g)].map(([, path]) => `/console/${path}`)

onSharedService("the console", (it) => {
  it.effect("is one page for all of its addresses, with a policy that lets nothing of others in", function* () {
    for (const path of ["/console", "/console/", "/console/sandbox", "/console/sandbox/deliveries/1?state=failed"]) {
      const answer = yield* get(path)
      expect([path, answer.status]).toEqual([path, 200])
      expect(answer.headers.get("content-type")).toBe("text/html; charset=utf-8")
      expect(answer.headers.get("content-security-policy")).toBe(
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; base-uri 'self'; form-action 'self'; frame-ancestors 'none'"
      )
      expect(answer.headers.get("x-content-type-options")).toBe("nosniff")
      expect(answer.headers.get("referrer-policy")).toBe("no-referrer")
      expect(answer.headers.get("cache-control")).toBe("no-cache")
      expect(answer.text).toContain('<base href="/console/">')
      expect(answer.text).not.toMatch(/<script(?![^>]* src=)|<style| style=| on\w+=|https?:\/\/(?!www\.w3\.org)/)
    }
  })

  it.effect("is not sent again to a browser that has it", function* () {
    const first = yield* get("/console/")
    const tag = first.headers.get("etag") ?? ""
    expect(tag).not.toBe("")
    const again = yield* get("/console/sandbox/keys", { "if-none-match": tag })
    expect([again.status, again.text]).toEqual([304, ""])
  })

  it.effect("has files that browsers keep for good, compressed as they accept them", function* () {
    const { baseUrl } = yield* TestService
    const files = filesOf((yield* get("/console/")).text)
    expect(files.some((path) => path.endsWith(".css"))).toBe(true)
    expect(files.some((path) => path.endsWith(".js"))).toBe(true)
    for (const path of files) {
      const plain = yield* get(path)
      expect([path, plain.status]).toEqual([path, 200])
      expect(plain.headers.get("content-type")).toBe(
        path.endsWith(".css") ? "text/css; charset=utf-8" : "text/javascript; charset=utf-8"
      )
      expect(plain.headers.get("cache-control")).toBe("public, max-age=31536000, immutable")
      expect(plain.headers.get("x-content-type-options")).toBe("nosniff")
      for (const [coding, decode] of [
        ["br", brotliDecompressSync],
        ["gzip", gunzipSync]
      ] as const) {
        const encoded = yield* Effect.promise(async () => {
          const answer = await undiciRequest(`${baseUrl}${path}`, { headers: { "accept-encoding": coding } })
          expect(answer.headers["content-encoding"]).toBe(coding)
          return Buffer.from(await answer.body.arrayBuffer())
        })
        expect(decode(encoded).toString("utf8")).toBe(plain.text)
      }
    }
  })

  it.effect("answers HEAD like GET, refuses other methods, and has no other files", function* () {
    const [file = ""] = filesOf((yield* get("/console/")).text)
    for (const path of ["/console", "/console/sandbox/keys", file]) {
      const head = yield* sendRequest("HEAD", path)
      expect([path, head.status, head.text]).toEqual([path, 200, ""])
      for (const method of ["POST", "PUT", "PATCH", "DELETE", "OPTIONS"]) {
        const refused = yield* sendRequest(method, path)
        expect([path, method, refused.status]).toEqual([path, method, 405])
        expect(refused.headers.get("allow")).toBe("GET, HEAD")
        expect(refused.json["code"]).toBe("method_not_allowed")
      }
    }
    for (const name of ["main.js", "..%2fconsole.json", "__proto__", `${"x".repeat(5000)}.js`]) {
      const missing = yield* get(`/console/assets/${name}`)
      expect([name, missing.status]).toEqual([name, 404])
      expect(missing.json["code"]).toBe("resource_not_found")
    }
    expect((yield* get("/console/%ff")).status).toBe(404)
    expect((yield* get("/consoles")).status).toBe(404)
  })

  it.effect("is where front page and mailed links lead, whatever path a proxy serves the service below", function* () {
    expect((yield* get("/")).text).toContain('<a href="console">the console</a>')
    for (const page of ["sign-in", "invitation"]) {
      const answer = yield* get(`/identity/${page}`)
      expect(answer.status).toBe(303)
      expect(answer.headers.get("location")).toBe(`../console/${page}`)
      expect(answer.headers.get("cache-control")).toBe("no-store")
    }
  })
})

layer(TestService.layer({ console: false, roles: { api: true, worker: false } }))(
  "a service without the console",
  (it) => {
    it.effect("has nothing at its addresses, and mailed links open the service's own small pages", function* () {
      for (const method of ["GET", "POST"]) {
        expect((yield* sendRequest(method, "/console")).status).toBe(404)
        expect((yield* sendRequest(method, "/console/sandbox")).status).toBe(404)
      }
      expect((yield* get("/")).text).not.toContain("console")
      const page = yield* get("/identity/sign-in")
      expect(page.status).toBe(200)
      expect(page.text).toContain("<h1>Sign in</h1>")
    })
  }
)

layer(TestService.layer({ roles: { api: true, worker: false } }, "https://payments.example/pay/ments"))(
  "a service below a path of a proxy",
  (it) => {
    it.effect("has its console for others if the first who asks for it leaves before it is prepared", function* () {
      const { baseUrl } = yield* TestService
      // Bundling takes longer than this
      yield* Effect.promise(() =>
        fetch(`${baseUrl}/console`, { signal: AbortSignal.timeout(50) }).then(
          () => expect.unreachable("the console was there at once"),
          () => {}
        )
      )
      expect((yield* get("/console")).status).toBe(200)
    })

    it.effect("names that path in the console's page", () =>
      Effect.map(get("/console"), ({ text }) => expect(text).toContain('<base href="/pay/ments/console/">'))
    )
  }
)
