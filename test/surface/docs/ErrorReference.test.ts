import { readFile } from "node:fs/promises"
import { Effect } from "effect"
import {
  documentedErrors,
  ImageQuotaExceeded,
  ProviderPaymentRefused,
  ProviderRequestRefused
} from "../../../src/platform/errors/Errors.ts"
import { anchorOf, errorReferencePath } from "../../../src/platform/kit/ErrorLink.ts"
import { errorReference } from "../../../src/surface/docs/ErrorReference.ts"
import { onSharedService, sendRequest, TestService } from "../../harness/TestService.ts"
import { describe, expect, it } from "../../harness/Tests.ts"

describe("the reference of errors", () => {
  it("has every documented error once, with its own status and code", () => {
    const known = documentedErrors.map(({ documentation: { code, status } }) => `${status} ${code}`)
    expect(errorReference.map(({ code, status }) => `${status} ${code}`).toSorted()).toEqual(known.toSorted())
  })

  it("says of each why it comes and what to do, in sentences", () => {
    for (const { code, remedy, why } of errorReference) {
      expect(why, code).toMatch(/^[A-Z`].{15,}\.$/)
      expect(remedy, code).toMatch(/^[A-Z`].{8,}\.$/)
      // A bar would end a cell of the table
      expect(why + remedy, code).not.toMatch(/[|\n—]/)
    }
    expect(new Set(errorReference.map(({ why }) => why)).size).toBe(errorReference.length)
  })

  it("tells to wait wherever the answer carries Retry-After, and to keep the key where an outcome is unknown", () => {
    for (const { code, remedy } of errorReference.filter(({ retryAfter }) => retryAfter)) {
      expect(remedy, code).toContain("`Retry-After`")
    }
    for (const code of ["provider_timeout", "provider_unavailable", "provider_rate_limited", "internal_error"]) {
      const found = errorReference.find((error) => error.code === code)
      expect(found?.remedy, code).toContain("same `Idempotency-Key`")
    }
  })
})

onSharedService("the page of errors", (it) => {
  it.effect("is served without a credential, has a place for each code, and runs no script", function* () {
    const page = yield* sendRequest("GET", errorReferencePath)
    expect(page.status).toBe(200)
    expect(page.headers.get("content-type")).toBe("text/html; charset=utf-8")
    expect(page.headers.get("content-security-policy")).toContain("default-src 'none'")
    const anchors = [...page.text.matchAll(/<section id="([^"]+)"/g)].map(([, anchor]) => anchor)
    expect(anchors).toEqual(errorReference.map(({ anchor }) => anchor))
    expect(new Set(anchors).size).toBe(errorReference.length)
    for (const anchor of anchors) expect(anchor).toMatch(/^[a-z_]+$/)
    expect(page.text).not.toMatch(/<script|<provider code/)
    // The example of an answer has backquotes of its own
    expect(page.text.replaceAll(/<pre\b.*?<\/pre>/gs, "")).not.toContain("`")
    const posted = yield* sendRequest("POST", errorReferencePath, { body: {} })
    expect([posted.status, posted.json["code"]]).toEqual([405, "method_not_allowed"])
  })

  it.effect("is where the link of every failure leads, to the place of its code", function* () {
    const { organization, request } = yield* TestService
    const page = yield* request("GET", errorReferencePath)
    const key = organization.testKey
    const failures = [
      yield* request("GET", "/v2/organizations/x/provider/products"),
      yield* request("GET", "/v2/organizations/x/provider/products", { key }),
      yield* request("GET", `/v2/organizations/${organization.id}/provider/products/prod_nothing`, { key }),
      yield* request("GET", "/nothing"),
      yield* request("POST", errorReferencePath, { body: {} }),
      yield* request("POST", "/mcp", { body: [] }),
      yield* request("GET", "/v2/organizations/%zz/provider/products", { key })
    ]
    for (const { headers, text } of failures) {
      const [, path, anchor] = /^<([^#>]+)#([^>]+)>; rel="help"$/.exec(headers.get("link") ?? "") ?? []
      expect(path, text).toBe(errorReferencePath)
      expect(page.text, text).toContain(`<section id="${anchor}">`)
      expect(text).toContain(`"code":"${anchor}"`)
    }
  })

  it.effect("is said in the guide with an answer that the service gives", function* () {
    const { organization, request } = yield* TestService
    const { json, status } = yield* request("POST", `/v2/organizations/${organization.id}/provider/prices`, {
      key: organization.testKey,
      body: { product: "prod_1", currency: "brl", unit_amount: "1500", nickame: "Small" }
    })
    const guide = yield* Effect.promise(() =>
      readFile(new URL("../../../src/docs/guides/errors.md", import.meta.url), "utf8")
    )
    expect(status).toBe(422)
    const example = /```json\n(\{\s+"error".+?)```/s.exec(guide)?.[1] ?? "{}"
    const { error, fields } = json
    expect(JSON.parse(example)).toMatchObject({ error, fields })
  })

  it("has a place for the provider's own codes too, apart for refused requests and refused payments", () => {
    expect(anchorOf(new ProviderRequestRefused({ code: "provider_amount_too_small" }))).toBe("provider_request_refused")
    expect(anchorOf(new ProviderPaymentRefused({ code: "provider_card_declined" }))).toBe("provider_payment_refused")
    expect(anchorOf(new ImageQuotaExceeded())).not.toBe("")
  })
})
