import { randomUUID } from "node:crypto"
import { expect, vi } from "@effect/vitest"
import { Duration, Effect, Option } from "effect"
import { eventually, eventuallyTrue } from "../harness/Eventually.ts"
import { onService, TestService, testSettings } from "../harness/TestService.ts"
import { signature } from "../inbound/Notifications.ts"
import { png } from "../payments/images/Pictures.ts"
import { lastBody, open, statusesIn, type Wire } from "../surface/http/Wire.ts"

const api = { roles: { api: true, worker: false } } as const

const get = (path: string) => `GET ${path} HTTP/1.1\r\nhost: x\r\n\r\n`

const limit = 4 * 1024 * 1024

const makeImage = Effect.gen(function* () {
  const { organization, request } = yield* TestService
  const answer = yield* request("POST", `/v2/organizations/${organization.id}/provider/product-images`, {
    key: organization.testKey,
    raw: png({ bytes: limit }),
    headers: { "content-type": "image/png" }
  })
  return new URL(String(answer.json["url"])).pathname
})

onService(api)("a connection", (it) => {
  it.scoped("with hundreds of requests whose answers nobody reads holds little memory and delays nobody", function* () {
    const { organization, request } = yield* TestService
    const image = yield* makeImage
    const memory = () => process.memoryUsage().arrayBuffers + process.memoryUsage().external
    const before = memory()
    const { socket } = yield* open()
    socket.pause()
    socket.write(get(image).repeat(200))
    let most = 0
    for (let n = 0; n < 25; n++) {
      const path = `/v2/organizations/${organization.id}/integrations/endpoints`
      expect((yield* request("GET", path, { key: organization.testKey })).status).toBe(200)
      most = Math.max(most, memory() - before)
    }
    // 200 of them are 800 MiB
    expect(most).toBeLessThan(128 * 1024 * 1024)
  })

  it.scoped("gets its whole answer, though the machine's clock is set forward meanwhile", function* () {
    const image = yield* makeImage
    const { closed, received, socket } = yield* open()
    socket.pause()
    socket.write(get(image))
    const passed = (millis: number) => Effect.promise(() => new Promise((resolve) => setTimeout(resolve, millis)))
    // The server looks once a second at how long its answers have taken
    yield* passed(2500)
    const now = Date.now.bind(Date)
    yield* Effect.acquireUseRelease(
      Effect.sync(() => vi.spyOn(Date, "now").mockImplementation(() => now() + 3_600_000)),
      () => passed(2500),
      (spy) => Effect.sync(() => spy.mockRestore())
    )
    socket.resume()
    yield* eventuallyTrue("the whole answer", () => closed() || received().length > limit)
    expect(closed()).toBe(false)
  })

  it.scoped("that pipelines requests gets every answer, whole and in their order", function* () {
    const image = yield* makeImage
    const missing = image.replace(/\/[0-9a-f]{64}/, `/${"0".repeat(64)}`)
    const round = [image, "/health/live", missing, ...Array.from({ length: 10 }, () => "/nowhere")]
    const paths = [...round, ...round, ...round]
    // More than are read ahead
    const wire = yield* open(`${paths.map(get).join("")}GET /health/live HTTP/1.0\r\n\r\n`)
    yield* eventuallyTrue("all answers", wire.closed)
    const received = wire.received()
    const expected = paths.map((path) => (path === image || path === "/health/live" ? "200" : "404"))
    expect(statusesIn(received)).toEqual([...expected, "200"])
    expect(received.length).toBeGreaterThan(3 * limit)
  })

  it.scoped("that pipelines more than anybody needs ends after an answer, and says so", function* () {
    const wire = yield* open("GET / HTTP/1.1\r\n\r\n".repeat(3000))
    yield* eventuallyTrue("the end", wire.closed)
    const statuses = statusesIn(wire.received())
    expect(statuses.length).toBeGreaterThan(100)
    expect(statuses.length).toBeLessThan(300)
    expect(wire.received()).toMatch(/connection: close/i)
  })

  it.scoped("answers what came before nonsense, then refuses the nonsense", function* () {
    const wire = yield* open(`${get("/health/ready").repeat(3)}nonsense\r\n\r\n`)
    yield* eventuallyTrue("the end", wire.closed)
    expect(statusesIn(wire.received())).toEqual(["200", "200", "200", "422"])
    expect(lastBody(wire)["code"]).toBe("validation_failed")
  })

  it.scoped("is not upgraded: what asks for it is served as an ordinary last request, with its body", function* () {
    const body = '{"email":"nobody"}'
    const head = `POST /identity/sign-in-links HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: websocket\r\ncontent-type: application/json\r\n`
    const wire = yield* open(`${head}content-length: ${body.length}\r\n\r\n${body}${get("/health/live")}`)
    yield* eventuallyTrue("the end", wire.closed)
    expect(statusesIn(wire.received())).toEqual(["422"])
    expect(lastBody(wire)["code"]).toBe("validation_failed")
  })
})

const impatient = {
  ...api,
  http: { ...testSettings.http, requestTimeout: Duration.seconds(1), answerTimeout: Duration.seconds(1) }
}

onService(impatient)("a slow client", (it) => {
  it.scoped("that never reads its answer loses its connection", function* () {
    const image = yield* makeImage
    const { closed, received, socket } = yield* open()
    socket.pause()
    socket.write(get(image).repeat(20))
    yield* eventually(
      "the end",
      Effect.sync(() => {
        if (closed()) return Option.some(true)
        // Who does not read learns of a closed connection by writing
        socket.write("\r\n")
        return Option.none()
      })
    )
    expect(received().length).toBeLessThan(20 * limit)
  })

  it.scoped("that does not send its head or its body is answered request_timeout", function* () {
    const { organization } = yield* TestService
    const products = `/v2/organizations/${organization.id}/provider/products`
    const key = `x-api-key: ${organization.testKey}\r\nidempotency-key: ${randomUUID()}\r\n`
    const body = `content-type: application/json\r\ncontent-length: 100\r\n\r\n{"name":`
    const wires = yield* Effect.all([
      open("GET /health/live HTTP/1.1\r\nhost: x\r\nx-slow: "),
      open(`POST ${products} HTTP/1.1\r\nhost: x\r\n${key}${body}`),
      open(`POST /webhooks/provider HTTP/1.1\r\nhost: x\r\nstripe-signature: ${signature("")}\r\n${body}`),
      open(`${get("/health/live")}POST ${products} HTTP/1.1\r\nhost: x\r\n${key}${body}`)
    ])
    const rpc = yield* open(`POST /mcp HTTP/1.1\r\nhost: x\r\n${key}accept: */*\r\n${body}`)
    for (const wire of wires) {
      yield* eventuallyTrue("the end", wire.closed)
      expect(statusesIn(wire.received()).at(-1)).toBe("408")
      const { code, error, fields, requestId, ...rest } = lastBody(wire)
      expect([code, typeof error, fields, rest]).toEqual(["request_timeout", "string", [], {}])
      expect(wire.received()).toContain(`request-id: ${requestId}`)
      expect(wire.received()).toMatch(/connection: close/i)
    }
    yield* eventuallyTrue("the end", rpc.closed)
    expect(lastBody(rpc)).toMatchObject({
      jsonrpc: "2.0",
      id: null,
      error: { code: -32_600, data: { code: "request_timeout" } }
    })
  })

  it.scoped("that opens a connection and sends nothing loses it without an answer", function* () {
    const { closed, received } = yield* open()
    yield* eventuallyTrue("the end", closed)
    expect(received()).toBe("")
  })
})

onService({ ...api, http: { ...testSettings.http, connectionLimit: 16 } })("a client with many connections", (it) => {
  it.scoped("has half of them at most: its oldest idle ones make room, those under way are left alone", function* () {
    const image = yield* makeImage
    const busy = yield* open()
    busy.socket.pause()
    busy.socket.write(get(image).repeat(20))
    const wires: Array<Wire> = []
    for (let n = 0; n < 40; n++) {
      const wire = yield* open(get("/health/live"))
      yield* eventuallyTrue(`answer ${n}`, () => statusesIn(wire.received()).length === 1)
      wires.push(wire)
    }
    const isOpen = ({ closed }: Wire) => !closed()
    yield* eventuallyTrue("room was made", () => wires.filter(isOpen).length <= 7)
    expect(wires.slice(-7).every(isOpen)).toBe(true)
    expect(isOpen(busy)).toBe(true)
  })
})
