import { randomUUID } from "node:crypto"
import { gzipSync } from "node:zlib"
import { expect } from "@effect/vitest"
import { operations } from "../../../src/surface/contract/Api.ts"
import { operationKey, takesBody } from "../../../src/surface/contract/Operations.ts"
import { onSharedServiceWithMail, signInOwner } from "../../harness/SignIn.ts"
import { TestService, testPublicUrl } from "../../harness/TestService.ts"
import { signature } from "../../inbound/Notifications.ts"

onSharedServiceWithMail("a compressed body", (it) => {
  const withBody = operations.filter((operation) => takesBody(operation) && !operation.path.startsWith("/webhooks/"))

  it.effect("is unsupported_media_type at every operation with a body, and its notification is not read", function* () {
    const { organization, request } = yield* TestService
    const { cookie } = yield* signInOwner
    const raw = gzipSync(JSON.stringify({ name: "Mug" }))
    const send = (method: string, url: string, headers: Readonly<Record<string, string>>) =>
      request(method, url, { raw, headers })
    for (const { method, path } of withBody) {
      const id = /\/provider\/(?!checkout-pages)/.test(path) ? "prod_nothing" : randomUUID()
      const url = path.replace(":organizationId", organization.id).replaceAll(/:\w+/g, id)
      const what = operationKey(method, path)
      const answer = yield* send(method, url, {
        "content-type": path.endsWith("product-images") ? "image/png" : "application/json",
        "content-encoding": "gzip",
        "idempotency-key": randomUUID(),
        ...(path.startsWith("/identity")
          ? { cookie, origin: testPublicUrl }
          : { "x-api-key": String(organization.testKey) })
      })
      // A form is answered by a page, if there is one
      if (path.startsWith("/pay/")) {
        expect([what, answer.status]).toEqual([what, 404])
        continue
      }
      expect([what, answer.status], answer.text).toEqual([what, 415])
      expect(answer.json["code"]).toBe("unsupported_media_type")
    }
    const key = { "x-api-key": String(organization.testKey), "content-type": "application/json" }
    for (const path of ["/webhooks/provider", "/webhooks/provider/thin", "/mcp"]) {
      for (const encoding of ["gzip", "deflate, br", "identity, gzip"]) {
        const headers = { ...key, "stripe-signature": signature(""), "content-encoding": encoding }
        expect([path, (yield* send("POST", path, headers)).status]).toEqual([path, 415])
      }
    }
  })

  it.effect("is what no coding is not: `identity` is read", function* () {
    const { organization, request } = yield* TestService
    const product = yield* request("POST", `/v2/organizations/${organization.id}/provider/products`, {
      key: organization.testKey,
      body: { name: "Mug" },
      headers: { "idempotency-key": randomUUID(), "content-encoding": "Identity" }
    })
    expect(product.status, product.text).toBe(200)
  })
})
