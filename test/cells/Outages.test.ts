import { randomUUID } from "node:crypto"
import { connect } from "node:net"
import { Readable } from "node:stream"
import { expect } from "@effect/vitest"
import { Effect, Option } from "effect"
import { request as send } from "undici"
import { eventually } from "../harness/Eventually.ts"
import { newEmail } from "../harness/SignIn.ts"
import { Cells, onCells, type TestCell } from "./CellsBed.ts"

const productsOf = ({ organization }: Pick<TestCell, "organization">) =>
  `/v2/organizations/${organization.id}/provider/products`

/** Sends bytes as they are; returns everything that is answered until the connection ends, or `millis` have passed. */
const raw = (baseUrl: string, parts: ReadonlyArray<string | Buffer>, millis = 15_000) =>
  Effect.promise(
    () =>
      new Promise<string>((resolve) => {
        const { hostname, port } = new URL(baseUrl)
        const socket = connect(Number(port), hostname)
        let answer = ""
        const timer = setTimeout(() => socket.destroy(), millis)
        socket.on("data", (chunk) => {
          answer += chunk.toString("latin1")
        })
        socket.on("error", () => {})
        socket.on("close", () => {
          clearTimeout(timer)
          resolve(answer)
        })
        for (const part of parts) socket.write(part)
      })
  )

const statusesOf = (answer: string): ReadonlyArray<number> =>
  [...answer.matchAll(/^HTTP\/1\.1 (\d{3})/gm)].map(([, status]) => Number(status))

onCells("a router", (it) => {
  it.effect("streams events from a cell as they come, and an image to it", () =>
    Effect.gen(function* () {
      const { emulator, router, south } = yield* Cells
      const { accountId, id, testKey } = south.organization
      const events = yield* Effect.promise(() =>
        send(`${router.baseUrl}/v2/organizations/${id}/integrations/event-stream`, {
          headers: { "x-api-key": testKey }
        })
      )
      expect(events.statusCode).toBe(200)
      let text = ""
      events.body.on("data", (chunk: Buffer) => {
        text += chunk.toString()
      })
      events.body.on("error", () => {})
      const seen = (what: string) =>
        eventually(
          what,
          Effect.sync(() => (text.includes(what) ? Option.some(true) : Option.none()))
        )
      yield* seen("event: ready")
      yield* emulator.trigger({ type: "payment_intent.succeeded", account: accountId })
      yield* seen("payment.succeeded")
      // The client leaves, and so does its stream at the cell
      const before = south.line.open()
      events.body.destroy()
      yield* eventually(
        "the stream's end at the cell",
        Effect.sync(() => (south.line.open() < before ? Option.some(true) : Option.none()))
      )

      const png = Buffer.from(
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
        "base64"
      )
      const uploaded = yield* Effect.promise(() =>
        send(`${router.baseUrl}/v2/organizations/${id}/provider/product-images`, {
          method: "POST",
          headers: { "x-api-key": testKey, "content-type": "image/png", "idempotency-key": randomUUID() },
          body: Readable.from(
            Array.from({ length: Math.ceil(png.length / 10) }, (_, at) => png.subarray(10 * at, 10 * at + 10))
          )
        })
      )
      const { url } = JSON.parse(yield* Effect.promise(() => uploaded.body.text()))
      expect(uploaded.statusCode).toBe(200)
      // Nothing in an image's address says which cell has it
      const path = new URL(url).pathname
      for (const method of ["GET", "HEAD", "GET"] as const) {
        const shown = yield* Effect.promise(() => send(`${router.baseUrl}${path}`, { method }))
        expect(shown.statusCode).toBe(200)
        const bytes = yield* Effect.promise(() => shown.body.bytes())
        if (method === "GET") expect(Buffer.from(bytes).equals(png)).toBe(true)
      }
      const missing = yield* Effect.promise(() => send(`${router.baseUrl}${path.replace(/[0-9a-f]{8}/, "00000000")}`))
      expect(missing.statusCode).toBe(404)
      yield* Effect.promise(() => missing.body.dump())
    })
  )

  it.effect("refuses what two readers could read differently, and lets nothing through behind it", () =>
    Effect.gen(function* () {
      const { north, router } = yield* Cells
      const path = productsOf(north)
      const key = `x-api-key: ${north.organization.testKey}\r\n`
      const hidden = `GET /identity/api-key HTTP/1.1\r\nHost: x\r\n${key}\r\n`
      for (const [what, head] of [
        ["both lengths", `Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n${hidden}`],
        ["two lengths", `Content-Length: 4\r\nContent-Length: ${hidden.length}\r\n\r\n${hidden}`],
        ["a coding that is not the last", `Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n${hidden}`],
        ["a length that is no number", `Content-Length: +4\r\n\r\n${hidden}`],
        ["a space before the colon", `Content-Length : 4\r\n\r\n${hidden}`],
        ["a bare line feed in a chunk", `Transfer-Encoding: chunked\r\n\r\n0\n\n${hidden}`]
      ]) {
        const answer = yield* raw(router.baseUrl, [`POST ${path} HTTP/1.1\r\nHost: x\r\n${key}${head}`])
        expect([what, statusesOf(answer)]).toEqual([what, [422]])
      }
    })
  )

  it.effect("keeps headers of the connection, and what a client says about its address, to itself", () =>
    Effect.gen(function* () {
      const { north, router, south } = yield* Cells
      const path = productsOf(south)
      const key = south.organization.testKey
      // A connection that declares the key its own sends no key on
      const declared = yield* raw(router.baseUrl, [
        `GET ${path} HTTP/1.1\r\nHost: x\r\nConnection: close, x-api-key\r\nx-api-key: ${key}\r\n\r\n`
      ])
      expect(statusesOf(declared)).toEqual([401])
      const upgrade = yield* raw(router.baseUrl, [
        `GET ${path} HTTP/1.1\r\nHost: x\r\nConnection: upgrade\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\nx-api-key: ${key}\r\n\r\n`
      ])
      expect(statusesOf(upgrade)).toEqual([200])
      // Failed sign-ins count for the router's client, whatever address the client says it has
      const before = yield* limitedAddresses(north)
      for (const address of ["198.51.100.7", "198.51.100.8, 127.0.0.1"]) {
        yield* raw(router.baseUrl, [
          `GET /identity/session HTTP/1.1\r\nHost: x\r\nConnection: close\r\nCookie: svc_session=nothing\r\nX-Forwarded-For: ${address}\r\nX-Real-IP: 198.51.100.9\r\nForwarded: for=198.51.100.9\r\n\r\n`
        ])
      }
      const after = yield* limitedAddresses(north)
      expect(after.filter((name) => !before.includes(name)).filter((name) => name.includes("198.51.100"))).toEqual([])
    })
  )

  it.effect("bounds what it reads, and answers slow and endless senders as a cell does", () =>
    Effect.gen(function* () {
      const { north, request, router } = yield* Cells
      const tooLarge = Buffer.alloc(1024 * 1024 + 1, 0x20)
      const large = yield* request("POST", "/webhooks/provider", { raw: tooLarge })
      expect([large.status, large.json["code"]]).toEqual([413, "payload_too_large"])
      const letters = yield* request("POST", "/identity/session", {
        raw: `{"token":"${"a".repeat(300_000)}"}`,
        headers: { "content-type": "application/json" }
      })
      expect([letters.status, letters.json["code"]]).toEqual([413, "payload_too_large"])
      const header = yield* raw(router.baseUrl, [`GET / HTTP/1.1\r\nx-long: ${"a".repeat(20_000)}\r\n\r\n`])
      expect(statusesOf(header)).toEqual([431])
      // A body that never ends does not keep others waiting
      const slow = connect(Number(new URL(router.baseUrl).port), "127.0.0.1")
      slow.on("error", () => {})
      slow.write("POST /webhooks/provider HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{")
      const account = (value: unknown) => JSON.stringify({ id: "evt_x", account: value })
      for (const body of [
        account("a".repeat(900_000)),
        account(`acct_${"\u0000"}`),
        account({ id: north.organization.accountId }),
        `{"account":"${north.organization.accountId}","account":"acct_other"}`,
        "[".repeat(500_000),
        "\ud800",
        ""
      ]) {
        const answer = yield* request("POST", "/webhooks/provider", { raw: body })
        expect([answer.status, answer.json["code"]]).toEqual([400, "signature_invalid"])
      }
      for (const body of ["{}", '{"email":7}', '{"email":"nobody"}', "null", '{"email":"a@b.example","more":1}']) {
        const answer = yield* request("POST", "/identity/sign-in-links", {
          raw: body,
          headers: { "content-type": "application/json" }
        })
        expect([body, answer.status]).toEqual([body, 422])
      }
      slow.destroy()
    })
  )

  it.effect("goes on with what it knows while the directory is away, and refuses what it does not know", () =>
    Effect.gen(function* () {
      const { directoryLine, emulator, north, request, south } = yield* Cells
      for (const { organization } of [north, south]) {
        expect((yield* request("GET", productsOf({ organization }), { key: organization.testKey })).status).toBe(200)
      }
      directoryLine.cut()
      for (const { organization } of [north, south]) {
        expect((yield* request("GET", productsOf({ organization }), { key: organization.testKey })).status).toBe(200)
      }
      const [signed] = (yield* emulator.trigger({
        type: "payment_intent.payment_failed",
        account: south.organization.accountId
      })).events
      yield* eventually(
        "the notification's receipt",
        Effect.map(
          Effect.orDie(south.sql`SELECT 1 FROM payments.all_receipts WHERE provider_event_id = ${signed?.id ?? ""}`),
          (rows) => (rows.length > 0 ? Option.some(true) : Option.none())
        )
      )
      const unknown = yield* request("GET", `/v2/organizations/${randomUUID()}/provider/products`, {
        key: south.organization.testKey
      })
      expect([unknown.status, unknown.headers.get("retry-after")]).toEqual([503, "5"])
      const link = yield* request("POST", "/identity/sign-in-links", { body: { email: newEmail() } })
      expect(link.status).toBe(503)
      directoryLine.mend()
      yield* eventually(
        "the directory's return",
        Effect.map(request("POST", "/identity/sign-in-links", { body: { email: newEmail() } }), ({ status }) =>
          status === 202 ? Option.some(true) : Option.none()
        )
      )
    })
  )

  it.effect("answers 503 for the organizations of a cell that is away, and the others feel nothing of it", () =>
    Effect.gen(function* () {
      const { north, request, south } = yield* Cells
      const ask = ({ organization }: TestCell) =>
        request("GET", productsOf({ organization }), { key: organization.testKey })
      south.line.cut()
      const away = yield* ask(south)
      expect([away.status, away.headers.get("retry-after"), away.json["code"]]).toEqual([
        503,
        "5",
        "service_unavailable"
      ])
      expect(away.headers.get("request-id")).toMatch(/^req_/)
      const tools = yield* request("POST", "/mcp", {
        key: south.organization.testKey,
        body: { jsonrpc: "2.0", id: 1, method: "tools/list" }
      })
      expect([tools.status, tools.json["jsonrpc"]]).toEqual([503, "2.0"])
      const answers = yield* Effect.forEach(
        Array.from({ length: 40 }, (_, index) => index),
        (index) => Effect.map(ask(index % 2 === 0 ? north : south), ({ status }) => [index % 2, status]),
        { concurrency: 20 }
      )
      expect(new Set(answers.map(String))).toEqual(new Set(["0,200", "1,503"]))
      // A page that only the cell that is away may have is not said to be missing
      expect((yield* request("GET", "/pay/abcdefghijklmnopqrst")).status).toBe(503)
      expect((yield* request("GET", "/docs")).status).toBe(200)
      south.line.mend()
      yield* eventually(
        "the cell's return",
        Effect.map(ask(south), ({ status }) => (status === 200 ? Option.some(true) : Option.none()))
      )
      // The home is as good as any other cell for what all of them answer alike
      north.line.cut()
      expect((yield* request("GET", "/docs")).status).toBe(200)
      expect((yield* ask(south)).status).toBe(200)
      expect((yield* ask(north)).status).toBe(503)
      north.line.mend()
    })
  )
})

/** The names of the limits that a cell counts for addresses. */
const limitedAddresses = ({ sql }: TestCell) =>
  Effect.map(Effect.orDie(sql<{ name: string }>`SELECT bucket AS name FROM payments.rate_limits`), (rows) =>
    rows.map(({ name }) => name)
  )
