import { connect, type Socket } from "node:net"
import { describe, expect, it } from "@effect/vitest"
import { Deferred, Effect, Fiber } from "effect"
import { eventuallyTrue } from "../harness/Eventually.ts"
import { type EchoCell, endlessPath, pathOf, startRouterBed } from "./RouterBed.ts"

/** A connection that sends bytes as they are, and is read unless it is paused. */
const open = (baseUrl: string, text: string) =>
  Effect.acquireRelease(
    Effect.async<{ readonly socket: Socket; readonly answer: () => string; readonly isClosed: () => boolean }>(
      (resume) => {
        const { hostname, port } = new URL(baseUrl)
        const socket = connect(Number(port), hostname)
        let answer = ""
        let isClosed = false
        socket.on("data", (chunk) => {
          answer += chunk.toString("latin1")
        })
        socket.on("error", () => {})
        socket.on("close", () => {
          isClosed = true
        })
        socket.on("connect", () => {
          socket.write(Buffer.from(text, "latin1"))
          resume(Effect.succeed({ socket, answer: () => answer, isClosed: () => isClosed }))
        })
      }
    ),
    ({ socket }) => Effect.sync(() => socket.destroy())
  )

/** One answer to bytes as they are: its status. */
const statusOf = (baseUrl: string, text: string) =>
  Effect.scoped(
    Effect.gen(function* () {
      const { answer } = yield* open(baseUrl, text)
      yield* eventuallyTrue(`an answer to ${text.slice(0, 80)}`, () => /^HTTP\/1\.1 \d{3}/.test(answer()))
      return Number(answer().slice(9, 12))
    })
  )

const headerOf = ({ seen }: EchoCell, name: string): ReadonlyArray<string> => {
  const rawHeaders = seen.at(-1)?.rawHeaders ?? []
  return rawHeaders.filter((_, index) => index % 2 === 1 && rawHeaders[index - 1]?.toLowerCase() === name)
}

describe("a cell that stands still", { timeout: 120_000 }, () => {
  it.scopedLive("has its requests refused after a while, a bounded number of them waiting, and harms no other", () =>
    Effect.gen(function* () {
      const { north, router, south } = yield* startRouterBed({ CONNECTION_LIMIT: "32", TRUSTED_PROXIES: "127.0.0.1" })
      const { request } = router
      const from = (address: string) => ({ headers: { "x-forwarded-for": address } })
      south.freeze()
      const begun = yield* Deferred.make<void>()
      const all = yield* Effect.fork(
        Effect.zipRight(
          Deferred.succeed(begun, undefined),
          Effect.forEach(
            // Half of a cell's eight are one client's at most
            [
              ...Array.from({ length: 8 }, () => "198.51.100.1"),
              ...Array.from({ length: 12 }, (_, n) => `203.0.113.${n}`)
            ],
            (address) => Effect.map(request("GET", pathOf(south), from(address)), ({ status }) => status),
            { concurrency: "unbounded" }
          )
        )
      )
      yield* Deferred.await(begun)
      yield* eventuallyTrue("as many requests as may wait", () => south.seen.length >= 8)
      expect((yield* request("GET", pathOf(north), from("198.51.100.1"))).status).toBe(200)
      // They are told once the cell has missed two probes, long before the answer would be given up
      expect(new Set(yield* Fiber.join(all))).toEqual(new Set([503]))
      expect(south.seen).toHaveLength(8)
      expect(
        south.seen.filter(({ headers }) => String(headers["x-forwarded-for"]).startsWith("198.51.100.1"))
      ).toHaveLength(4)
      expect((yield* request("GET", pathOf(south), from("203.0.113.99"))).status).toBe(503)
      expect((yield* request("GET", pathOf(north))).status).toBe(200)
      expect(south.seen).toHaveLength(8)
      south.thaw()
      yield* eventuallyTrue("the cell's return", () => router.output.stderr.includes("south answers again"))
      expect((yield* request("GET", pathOf(south))).status).toBe(200)
    })
  )
})

describe("a cell that can't tell whether it has a page", { timeout: 120_000 }, () => {
  it.scopedLive("does not answer for the cell that has it, and is not remembered in its place", () =>
    Effect.gen(function* () {
      const { north, router, south } = yield* startRouterBed()
      const ask = (method: string, path: string) => Effect.map(router.request(method, path), ({ status }) => status)
      const posts = ({ seen }: EchoCell) => seen.filter(({ line }) => line.startsWith("POST")).map(({ line }) => line)
      // Its database is away, it does not take this request, or this client has asked it too often
      for (const status of [503, 431, 429]) {
        north.answerWith(status)
        expect(yield* ask("GET", `/pay/read${status}`)).toBe(200)
        expect(yield* ask("HEAD", `/product-images/${status}.png`)).toBe(200)
        // At the first request of all for this page, and at the next one
        expect(yield* ask("POST", `/pay/sent${status}`)).toBe(200)
        expect(yield* ask("POST", `/pay/sent${status}`)).toBe(200)
        expect(yield* ask("POST", `/pay/read${status}`)).toBe(200)
      }
      expect(posts(north)).toEqual([])
      expect(posts(south)).toHaveLength(9)
      // No other has it: what that cell says itself
      south.answerWith(404)
      expect([yield* ask("GET", "/pay/else"), yield* ask("POST", "/pay/else")]).toEqual([429, 429])
      expect(posts(north)).toEqual(["POST /pay/else"])
      // Which is not remembered either
      north.answerWith(404)
      south.answerWith(200)
      expect([yield* ask("GET", "/pay/else"), yield* ask("POST", "/pay/else")]).toEqual([200, 200])
      expect(posts(south)).toHaveLength(10)
    })
  )
})

describe("a client that", { timeout: 120_000 }, () => {
  it.scopedLive(
    "sends slowly, or does not read, is cut off, and keeps others neither from its cell nor from memory",
    () =>
      Effect.gen(function* () {
        const { north, router, south } = yield* startRouterBed({
          CONNECTION_LIMIT: "400",
          REQUEST_TIMEOUT: "3 seconds",
          ANSWER_TIMEOUT: "3 seconds",
          TRUSTED_PROXIES: "127.0.0.1"
        })
        const { baseUrl, request } = router
        // Each announces as much as is read at most; together more than one network may hold
        yield* Effect.forEach(
          Array.from({ length: 80 }, (_, n) => n),
          () => open(baseUrl, "POST /webhooks/provider HTTP/1.1\r\nHost: x\r\nContent-Length: 1048576\r\n\r\n{"),
          { concurrency: 20 }
        )
        const body = JSON.stringify({ id: "evt_1", account: "acct_south" })
        expect((yield* request("POST", "/webhooks/provider", { raw: body })).status).toBe(200)
        expect(south.seen.at(-1)?.body).toBe(body)

        const slow = yield* open(baseUrl, `POST ${pathOf(south)} HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nx`)
        const unread = yield* open(baseUrl, `GET ${pathOf(north, endlessPath)} HTTP/1.1\r\nHost: x\r\n\r\n`)
        unread.socket.pause()
        yield* eventuallyTrue("the refusal of the slow body", () => slow.answer().startsWith("HTTP/1.1 408 "), 20_000)
        expect(slow.answer()).toContain('"request_timeout"')
        yield* eventuallyTrue("its end", slow.isClosed, 20_000)
        // Only what was in between arrives, once it is read
        yield* eventuallyTrue("the end of the answer at the cell", () => north.cut() === 1, 20_000)
        unread.socket.resume()
        yield* eventuallyTrue("the end of the answer", unread.isClosed, 20_000)
        expect(unread.answer().length).toBeLessThan(64 * 1024 * 1024)
        for (const cell of [north, south]) expect((yield* request("GET", pathOf(cell))).status).toBe(200)
        // Neither half of a body has become a request
        expect(south.seen.map(({ line }) => line.split(" ")[0])).toEqual(["POST", "GET"])
      })
  )

  it.scopedLive("sends a body byte by byte takes no more memory than the body is long", () =>
    Effect.gen(function* () {
      const { router, south } = yield* startRouterBed()
      const body = JSON.stringify({ id: "evt_1", account: "acct_south", filler: "f".repeat(800_000) })
      const chunks = [...body].map((letter) => `1\r\n${letter}\r\n`).join("")
      const resident = Effect.promise(async () => {
        const { readFile } = await import("node:fs/promises")
        return Number(/VmHWM:\s+(\d+) kB/.exec(await readFile(`/proc/${router.pid}/status`, "utf8"))?.[1]) * 1024
      })
      const before = yield* resident
      const status = yield* statusOf(
        router.baseUrl,
        `POST /webhooks/provider HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n${chunks}0\r\n\r\n`
      )
      expect(status).toBe(200)
      expect(south.seen.at(-1)?.body).toBe(body)
      expect((yield* resident) - before).toBeLessThan(100 * 1024 * 1024)
    })
  )

  it.scopedLive("writes headers and paths of several meanings reaches one cell with one request, or none", () =>
    Effect.gen(function* () {
      const { north, router, south } = yield* startRouterBed()
      const send = (head: string) => statusOf(router.baseUrl, `${head}\r\n\r\n`)
      const path = pathOf(south)
      const hidden = `GET ${pathOf(north, "/hidden")} HTTP/1.1\r\nHost: x\r\n\r\n`
      for (const [what, text] of [
        [
          "a length and chunks",
          `Content-Length: ${hidden.length + 5}\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n${hidden}`
        ],
        [
          "chunks in a header of two lines",
          `Transfer-Encoding:\r\n chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n${hidden}`
        ],
        ["chunks, named twice", `Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n${hidden}`],
        ["two lengths", `Content-Length: 0\r\nContent-Length: ${hidden.length}\r\n\r\n${hidden}`],
        [
          "a length of the connection",
          `Connection: content-length\r\nContent-Length: ${hidden.length}\r\n\r\n${hidden}`
        ],
        ["a bare carriage return", `X-A: b\rTransfer-Encoding: chunked\r\n\r\n${hidden}`],
        ["a null byte", `X-A: b\0c\r\n\r\n${hidden}`]
      ] as const) {
        const seen = south.seen.length
        const status = yield* statusOf(router.baseUrl, `POST ${path} HTTP/1.1\r\nHost: x\r\n${text}`)
        const reached = south.seen.slice(seen)
        expect([what, status === 200 || status === 422], String(status)).toEqual([what, true])
        if (what === "a length of the connection") expect(reached).toMatchObject([{ body: hidden }])
        else expect([what, status, reached]).toEqual([what, 422, []])
        expect(north.seen, what).toEqual([])
      }

      // Of hosts the cell sees its own alone, of addresses the connection's
      expect(
        yield* send(
          `GET ${path} HTTP/1.1\r\nHost: a.example\r\nHost: b.example\r\nX-Forwarded-Host: c.example\r\nX-Forwarded-For: 198.51.100.7\r\nX-Forwarded-For: 198.51.100.8\r\nForwarded: for=198.51.100.9\r\nConnection: keep-alive, x-secret, host\r\nX-Secret: 1\r\nKeep-Alive: timeout=9\r\nTE: trailers\r\nProxy-Authorization: Basic eA==`
        )
      ).toBe(200)
      expect(headerOf(south, "host")).toEqual([new URL(south.url).host])
      expect(headerOf(south, "x-forwarded-for")).toEqual(["127.0.0.1"])
      for (const name of ["x-forwarded-host", "forwarded", "x-secret", "keep-alive", "te", "proxy-authorization"]) {
        expect([name, headerOf(south, name)]).toEqual([name, []])
      }
      expect(yield* send(`GET ${path} HTTP/1.1\r\nHost: x\r\nX-Long: ${"a".repeat(17_000)}`)).toBe(431)

      // Every spelling leads to one cell, byte for byte as it came: that of the organization, if the cells read it there
      const id = south.organization
      for (const [cell, spelled] of [
        [south, `/v2/organizations/${id}/../${north.organization}/x`],
        [south, `/v2/organizations/${id}/./x?a=/v2/organizations/${north.organization}`],
        [south, `/v2/organizations/${id};/${north.organization}`],
        [south, `/%76%32/organizations/${id}/x%2f..%2fy`],
        [south, `/v2/organizations/${id.toUpperCase()}/x//y/`],
        [north, `//v2/organizations/${id}/x`],
        [north, `/v2//organizations/${id}/x`],
        [north, `/./v2/organizations/${id}/x`],
        [north, `/v2/../v2/organizations/${id}/x`],
        [north, `/v2%2forganizations/${id}/x`],
        [north, `/v2/organizations/${id}%2fx`],
        [north, `/v2/organizations/${id}%00/x`],
        [north, `/v2/organizations/%2e%2e/${id}`],
        [north, `\\v2\\organizations\\${id}`.replace(/^\\/, "/")]
      ] as const) {
        for (const one of [north, south]) one.seen.length = 0
        expect([spelled, yield* send(`PUT ${spelled} HTTP/1.1\r\nHost: x`)]).toEqual([spelled, 200])
        expect(cell.seen.map(({ line }) => line)).toEqual([`PUT ${spelled}`])
        expect(north.seen.length + south.seen.length).toBe(1)
      }
      // In absolute form the host is dropped, whatever it says
      expect(yield* send(`GET http://${id}.example${path} HTTP/1.1\r\nHost: x`)).toBe(200)
      expect(south.seen.at(-1)?.line).toBe(`GET ${path}`)
    })
  )
})
