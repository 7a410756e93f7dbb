import { createHash, randomUUID } from "node:crypto"
import { request as httpRequest } from "node:http"
import { expect, vi } from "@effect/vitest"
import { Context, Effect, Option } from "effect"
import { Images, nameOf } from "../../../src/payments/images/Images.ts"
import { isOwnImage } from "../../../src/payments/images/ImageUrl.ts"
import { inDatabase, onService, onSharedService, TestService, testPublicUrl } from "../../harness/TestService.ts"
import { expectFailure, refusedWith } from "../../surface/http/Refusals.ts"
import { newTenant } from "../ConnectedTenant.ts"
import { craftedAvif, jpeg, png, webp } from "./Pictures.ts"

const limit = 4 * 1024 * 1024

const upload = (
  tenant: Effect.Effect.Success<typeof newTenant>,
  raw: Uint8Array,
  headers: Readonly<Record<string, string>> = {}
) => tenant.send("POST", "/product-images", { raw, headers })

const form = (parts: ReadonlyArray<readonly [name: string, value: Uint8Array | string]>) =>
  Effect.promise(async () => {
    const data = new FormData()
    for (const [name, value] of parts) {
      data.append(name, typeof value === "string" ? value : new File([new Uint8Array(value)], "picture.gif"))
    }
    const response = new Response(data)
    return {
      raw: new Uint8Array(await response.arrayBuffer()),
      headers: { "content-type": response.headers.get("content-type") ?? "" }
    }
  })

/** The image behind a public URL, its bytes and headers, asked for without any credential. */
const fetchImage = (url: string, init: RequestInit = {}) =>
  Effect.flatMap(TestService, ({ baseUrl }) =>
    Effect.promise(async () => {
      const response = await fetch(url.replace(testPublicUrl, baseUrl), init)
      return {
        status: response.status,
        headers: response.headers,
        bytes: new Uint8Array(await response.arrayBuffer())
      }
    })
  )

const urlOf = (bytes: Uint8Array, extension: string) =>
  `${testPublicUrl}/product-images/${createHash("sha256").update(bytes).digest("hex")}.${extension}`

onSharedService("product images", (it) => {
  it.effect("are stored by their bytes, whatever they are called, and answered with a public URL", function* () {
    const tenant = yield* newTenant
    for (const [bytes, extension, type] of [
      [png({ shade: 1 }), "png", "image/png"],
      [jpeg, "jpg", "image/jpeg"],
      [webp, "webp", "image/webp"]
    ] as const) {
      for (const called of ["image/png", "image/jpeg", "application/octet-stream", "text/plain"]) {
        const answer = yield* upload(tenant, bytes, { "content-type": called })
        expect(answer.status, answer.text).toBe(200)
        expect(answer.json).toEqual({ url: urlOf(bytes, extension) })
      }
      const image = yield* fetchImage(urlOf(bytes, extension))
      expect([image.status, image.headers.get("content-type")]).toEqual([200, type])
      expect(Buffer.compare(image.bytes, bytes)).toBe(0)
    }
  })

  it.effect("can't hold up a process by a form of very many parts, or of one with an endless head", function* () {
    const tenant = yield* newTenant
    const disposition = 'Content-Disposition: form-data; name="file"; filename="f"\r\n'
    const part = `--x\r\n${disposition}\r\n\r\n`
    const forms = [
      part.repeat(Math.floor(limit / part.length)),
      `--x\r\n${"a: b\r\n".repeat(600_000)}${disposition}\r\n\r\n`
    ]
    for (const text of forms) {
      const raw = Buffer.from(`${text}--x--`)
      const parsed = vi.spyOn(Response.prototype, "formData")
      const answer = yield* upload(tenant, raw, { "content-type": "multipart/form-data; boundary=x" })
      const calls = parsed.mock.calls.length
      parsed.mockRestore()
      expectFailure(answer, { status: 422, code: "validation_failed", fields: ["file"] })
      // It would hold everybody up
      expect(calls).toBe(0)
    }
  })

  it.effect("can be sent as the part `file` of a form, and as no other", function* () {
    const tenant = yield* newTenant
    const bytes = png({ shade: 3 })
    const send = (parts: Parameters<typeof form>[0]) =>
      Effect.flatMap(form(parts), ({ headers, raw }) => upload(tenant, raw, headers))
    expect((yield* send([["file", bytes]])).json).toEqual({ url: urlOf(bytes, "png") })
    const refused = (parts: Parameters<typeof form>[0], fields: ReadonlyArray<string>) =>
      Effect.map(send(parts), (answer) =>
        expectFailure(answer, { status: 422, code: "validation_failed", fields }, JSON.stringify(fields))
      )
    const { headers, raw } = yield* form([["file", bytes]])
    const otherwise = headers["content-type"].replace(/boundary=(.*)/, 'charset=utf-8; Boundary="$1"; x=y')
    expect((yield* upload(tenant, raw, { "content-type": otherwise })).json).toEqual({ url: urlOf(bytes, "png") })
    yield* refused([], ["file"])
    yield* refused([["file", "text"]], ["file"])
    yield* refused([["image", bytes]], ["image", "file"])
    yield* refused(
      [
        ["file", bytes],
        ["file", bytes]
      ],
      ["file"]
    )
    yield* refused(
      [
        ["file", bytes],
        ["name", "x"]
      ],
      ["name"]
    )
    const broken = yield* upload(tenant, new Uint8Array([1, 2, 3]), {
      "content-type": "multipart/form-data; boundary=x"
    })
    expectFailure(broken, { status: 422, code: "validation_failed", fields: ["file"] })
    expectFailure(
      yield* send([["file", new TextEncoder().encode("GIF89a")]]),
      refusedWith(415, "unsupported_media_type")
    )
  })

  it.effect("are refused if the bytes are no JPEG, PNG or WebP, or a part of one", function* () {
    const tenant = yield* newTenant
    const text = (value: string) => new TextEncoder().encode(value)
    const gif = new Uint8Array(Buffer.from("R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7", "base64"))
    for (const bytes of [
      new Uint8Array(0),
      text("<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>"),
      text("<html><script>alert(1)</script></html>"),
      text("{}"),
      gif,
      // Its head alone: enough to know its size
      png().slice(0, 24),
      jpeg.slice(0, -2),
      webp.slice(0, -1),
      new Uint8Array(100)
    ]) {
      for (const type of ["image/png", "image/svg+xml", "application/json"]) {
        const answer = yield* upload(tenant, bytes, { "content-type": type })
        expectFailure(answer, { status: 415, code: "unsupported_media_type", fields: [] }, `${bytes.slice(0, 6)}`)
      }
    }
    const crafted = yield* upload(tenant, craftedAvif(), { "content-type": "image/avif" })
    expectFailure(crafted, { status: 415, code: "unsupported_media_type", fields: [] })
  })

  it.effect("of exactly 4 MiB are taken, one byte more is 413, however it is sent", function* () {
    const tenant = yield* newTenant
    const largest = png({ bytes: limit })
    expect((yield* upload(tenant, largest, { "content-type": "image/png" })).status).toBe(200)
    const tooLarge = { status: 413, code: "payload_too_large", fields: [] }
    expectFailure(yield* upload(tenant, png({ bytes: limit + 1 }), { "content-type": "image/png" }), tooLarge)
    const inForm = yield* form([["file", largest]])
    expect((yield* upload(tenant, inForm.raw, inForm.headers)).status).toBe(200)
    const tooLargeInForm = yield* form([["file", png({ bytes: limit + 1 })]])
    expectFailure(yield* upload(tenant, tooLargeInForm.raw, tooLargeInForm.headers), tooLarge)
  })

  it.effect("that never end are cut off: the 413 reaches the sender though no length was said", function* () {
    const { baseUrl } = yield* TestService
    const tenant = yield* newTenant
    const status = yield* Effect.async<number | undefined>((resume) => {
      const request = httpRequest(`${baseUrl}/v2/organizations/${tenant.id}/provider/product-images`, {
        method: "POST",
        headers: { "x-api-key": tenant.key, "content-type": "image/png", "transfer-encoding": "chunked" }
      })
      let sent = 0
      const more = () => {
        while (sent < 64 * 1024 * 1024) {
          sent += 65_536
          if (!request.write(new Uint8Array(65_536))) return
        }
      }
      request.on("drain", more)
      request.on("response", (response) => {
        request.off("drain", more)
        resume(Effect.succeed(response.statusCode))
        request.destroy()
      })
      // After the answer the server closes the connection that is still being written to
      request.on("error", () => {})
      more()
    })
    expect(status).toBe(413)
  })

  it.effect("are served to everybody, for ever, as images and nothing else", function* () {
    const tenant = yield* newTenant
    const bytes = png({ shade: 9 })
    yield* upload(tenant, bytes)
    const url = urlOf(bytes, "png")
    const { headers } = yield* fetchImage(url)
    expect(headers.get("cache-control")).toBe("public, max-age=31536000, immutable")
    expect(headers.get("x-content-type-options")).toBe("nosniff")
    expect(headers.get("content-security-policy")).toBe("default-src 'none'; sandbox")
    expect(headers.get("content-length")).toBe(String(bytes.length))
    const etag = headers.get("etag") ?? ""
    expect(etag).toMatch(/^"[0-9a-f]{64}"$/)
    for (const tag of [etag, `W/${etag}`, `"other", ${etag}`, "*"]) {
      const known = yield* fetchImage(url, { headers: { "if-none-match": tag } })
      expect([known.status, known.bytes.length, known.headers.get("etag")], tag).toEqual([304, 0, etag])
    }
    expect((yield* fetchImage(url, { headers: { "if-none-match": '"other"' } })).status).toBe(200)
    const head = yield* fetchImage(url, { method: "HEAD" })
    expect([head.status, head.bytes.length, head.headers.get("etag")]).toEqual([200, 0, etag])
  })

  it.effect("that do not exist are 404, by whatever name", function* () {
    const { request } = yield* TestService
    const tenant = yield* newTenant
    const bytes = png({ shade: 11 })
    yield* upload(tenant, bytes)
    const hash = createHash("sha256").update(bytes).digest("hex")
    for (const file of [
      `${"0".repeat(64)}.png`,
      `${hash}.jpg`,
      `${hash}.gif`,
      hash,
      `${hash.toUpperCase()}.png`,
      "x.png",
      "..%2f..%2fopenapi.json",
      `${hash}.png%00`
    ]) {
      const answer = yield* request("GET", `/product-images/${file}`)
      expectFailure(answer, { status: 404, code: "resource_not_found", fields: [] }, file)
    }
    expect((yield* request("DELETE", `/product-images/${hash}.png`)).status).toBe(405)
  })

  it.effect("are kept once, whoever uploads them, with each upload on record", function* () {
    const [first, second] = [yield* newTenant, yield* newTenant]
    const bytes = png({ shade: 13 })
    for (const tenant of [first, first, second]) {
      expect((yield* upload(tenant, bytes)).json).toEqual({ url: urlOf(bytes, "png") })
    }
    const hash = createHash("sha256").update(bytes).digest()
    expect(yield* inDatabase`SELECT format FROM payments.product_images WHERE sha256 = ${hash}`).toEqual([
      { format: "png" }
    ])
    const entry = `product_image.uploaded ${hash.toString("hex")}.png`
    expect((yield* first.audited).filter((line) => line.startsWith("product_image."))).toEqual([entry, entry])
  })

  it.effect("are the service's own by their address and form, by http on a local start alone", () =>
    Effect.sync(() => {
      const file = `${"0f".repeat(32)}.png`
      const local = "http://localhost:8080"
      const judge = isOwnImage({ publicUrl: local, plainHttp: true })
      expect(judge(`${local}/product-images/${file}`)).toBe(true)
      for (const url of [
        `http://localhost:8081/product-images/${file}`,
        `http://localhost:8080.evil.example/product-images/${file}`,
        `${local}@evil.example/product-images/${file}`,
        `${local}/product-images/../${file}`,
        `${local}/product-images/${file}?a=1`,
        `${local}/product-images/other.png`,
        `${local}/product-images/`
      ]) {
        expect(judge(url), url).toBe(false)
      }
      expect(isOwnImage({ publicUrl: local, plainHttp: false })(`${local}/product-images/${file}`)).toBe(false)
    })
  )

  it.effect("of other services are images of products by https alone", function* () {
    const tenant = yield* newTenant
    const id = String((yield* tenant.post("/products", { name: "Coffee" })).json["id"])
    const images = [`https://shop.example/a.png`, `http://shop.example/product-images/${"0f".repeat(32)}.png`]
    const refused = { status: 422, code: "validation_failed", fields: ["images.1"] }
    expectFailure(yield* tenant.post("/products", { name: "Coffee", images }), refused)
    expectFailure(yield* tenant.patch(`/products/${id}`, { images }), refused)
    const other = ["https://shop.example/a.png", "http://shop.example/a.png"]
    expectFailure(yield* tenant.post("/products", { name: "Coffee", images: other }), refused)
  })

  it.effect("can be used as the images of products", function* () {
    const tenant = yield* newTenant
    const { json } = yield* upload(tenant, png({ shade: 15 }))
    const product = yield* tenant.post("/products", { name: "Coffee", images: [json["url"]] }, randomUUID())
    expect(product.status, product.text).toBe(200)
    expect(product.json["images"]).toEqual([json["url"]])
  })
})

const operator = { kind: "operator", id: "test" } as const

onService({ roles: { api: true, worker: false } })("a product image", (it) => {
  it.effect("that an operator removes is nobody's any more, cached or not, on record for its uploaders", function* () {
    const { services, sql } = yield* TestService
    const images = Context.get(services, Images)
    const [one, other] = [yield* newTenant, yield* newTenant]
    const bytes = png({ shade: 41 })
    for (const tenant of [one, other, one]) expect((yield* upload(tenant, bytes)).status).toBe(200)
    const url = urlOf(bytes, "png")
    const etag = `"${createHash("sha256").update(bytes).digest("hex")}"`
    const cached = fetchImage(url, { headers: { "if-none-match": etag } })
    expect((yield* cached).status).toBe(304)
    const file = url.slice(url.lastIndexOf("/") + 1)
    const name = yield* nameOf(file)
    expect(Option.getOrThrow(yield* Effect.orDie(images.remove(name, operator))).uploadedBy).toHaveLength(2)
    expect((yield* fetchImage(url)).status).toBe(404)
    expect((yield* cached).status).toBe(404)
    const records = yield* sql`
        SELECT organization_id AS id, author_kind AS by FROM payments.audit_log
        WHERE target_id = ${file} AND action = 'product_image.removed' ORDER BY organization_id`
    expect(records).toEqual([one.id, other.id].toSorted().map((id) => ({ id, by: "operator" })))
    expect(yield* Effect.orDie(images.remove(name, operator))).toEqual(Option.none())
    expect((yield* upload(one, bytes)).status).toBe(200)
    expect((yield* fetchImage(url)).status).toBe(200)
  })

  it.effect("is not kept where its audit record can't be written", function* () {
    const { sql } = yield* TestService
    const tenant = yield* newTenant
    const bytes = png({ shade: 42 })
    yield* sql`
        ALTER TABLE payments.audit_log ADD CONSTRAINT no_uploads CHECK (action <> 'product_image.uploaded') NOT VALID`
    const answer = yield* upload(tenant, bytes)
    yield* sql`ALTER TABLE payments.audit_log DROP CONSTRAINT no_uploads`
    expect(answer.status).toBe(500)
    expect((yield* fetchImage(urlOf(bytes, "png"))).status).toBe(404)
  })
})

onService({ roles: { api: true, worker: false }, imageMegabytesPerHour: 5 })("the images of a tenant", (it) => {
  it.effect("are bounded by their bytes within an hour, before they are read, and no other tenant's", function* () {
    const { passTime } = yield* TestService
    const [tenant, neighbour] = [yield* newTenant, yield* newTenant]
    const large = png({ shade: 43, bytes: 3_000_000 })
    expect((yield* upload(tenant, large)).status).toBe(200)
    const refused = yield* upload(tenant, large)
    expectFailure(refused, { status: 429, code: "image_quota_exceeded", fields: [] })
    const wait = Number(refused.headers.get("retry-after"))
    // A million bytes are missing of the five that come back in an hour
    expect(wait).toBeGreaterThan(700)
    expect(wait).toBeLessThanOrEqual(720)
    // What is no image is read and counted all the same
    expect((yield* upload(tenant, new Uint8Array(1_900_000))).status).toBe(415)
    expect((yield* upload(tenant, png({ shade: 44, bytes: 200_000 }))).status).toBe(429)
    expect((yield* upload(neighbour, large)).status).toBe(200)
    yield* passTime("1 hour")
    expect((yield* upload(tenant, large)).status).toBe(200)
  })
})
