import { request } from "node:http"
import { Effect, Fiber } from "effect"
import { Stripe } from "stripe"
import { describe, expect, it } from "../harness/Tests.ts"
import { call, connected, eventually, onEmulator, raw, refusal, said, sdk, secretKey } from "./Harness.ts"

const fault = (url: string, body: object) =>
  raw(url, "/_emulator/faults", { method: "POST", body: JSON.stringify(body) })

const pending = (url: string) => Effect.map(raw(url, "/_emulator/faults"), ({ text }): unknown => JSON.parse(text).data)

/** What comes of a request: how many chunks of a body of how many arrive before it breaks, or what breaks it. */
const chunksOf = (url: string, account: string, wanted: number) =>
  Effect.async<number | string>((resume) => {
    let chunks = 0
    const headers = { authorization: `Bearer ${secretKey}`, "stripe-account": account }
    const sent = request(`${url}/v1/products`, { headers }, (response) => {
      response.on("data", () => {
        chunks += 1
        if (chunks < wanted) return
        resume(Effect.succeed(chunks))
        sent.destroy()
      })
      response.on("error", (error) => resume(Effect.succeed("code" in error ? String(error.code) : error.message)))
      response.on("end", () => resume(Effect.succeed("ended")))
    })
    sent.on("error", (error) => resume(Effect.succeed("code" in error ? String(error.code) : error.message)))
    sent.end()
  })

describe("a fault", () => {
  onEmulator("happens to the calls that it names, as often as it says", function* ({ account, emulator, stripe }) {
    const other = sdk(emulator.url, yield* emulator.ensureAccount())
    yield* fault(emulator.url, { fault: "rate_limit", times: 2, account, method: "POST", path: "/v1/products" })
    yield* call(() => other.products.create({ name: "a" }))
    yield* call(() => stripe.products.list())
    yield* call(() => stripe.coupons.create({ percent_off: 1 }))
    const limited = { statusCode: 429, code: "rate_limit" }
    expect(yield* said(() => stripe.products.create({ name: "a" }))).toMatchObject(limited)
    expect(yield* pending(emulator.url)).toMatchObject([{ fault: "rate_limit", times: 1 }])
    expect(yield* said(() => stripe.products.create({ name: "a" }))).toMatchObject(limited)
    const made = yield* call(() => stripe.products.create({ name: "a" }))
    expect((yield* call(() => stripe.products.list())).data.map(({ id }) => id)).toEqual([made.id])

    yield* fault(emulator.url, { fault: "rate_limit", after: 2, path: "/v1/coupons" })
    for (const expected of [200, 200, 429, 200]) {
      const answer = yield* raw(emulator.url, "/v1/coupons", { headers: { "stripe-account": account } })
      expect(answer.status).toBe(expected)
    }

    yield* emulator.addFault({ fault: "lock_timeout", path: "/v1/products/*" })
    yield* call(() => stripe.products.list())
    expect(yield* said(() => stripe.products.update(made.id, { name: "b" }))).toMatchObject({
      statusCode: 429,
      code: "lock_timeout"
    })
    yield* emulator.addFault({ fault: "rate_limit", times: 9 })
    yield* raw(emulator.url, "/_emulator/faults", { method: "DELETE" })
    expect((yield* call(() => stripe.products.retrieve(made.id))).name).toBe("a")
    yield* emulator.addFault({ fault: "rate_limit" })
    yield* emulator.clearFaults
    expect(yield* pending(emulator.url)).toEqual([])
  })

  onEmulator("without an effect leaves nothing behind", function* ({ account, emulator, stripe }) {
    const impatient = new Stripe(secretKey, {
      host: new URL(emulator.url).hostname,
      port: new URL(emulator.url).port,
      protocol: "http",
      maxNetworkRetries: 0,
      stripeAccount: account,
      telemetry: false,
      timeout: 1500
    })
    for (const [kind, times] of [
      ["timeout", 1],
      ["reset", 2],
      ["html_502", 1]
    ] as const) {
      yield* emulator.addFault({ fault: kind, times, method: "POST" })
      const error = yield* refusal(() => impatient.products.create({ name: kind }))
      expect([kind, error instanceof Stripe.errors.StripeError]).toEqual([kind, true])
    }
    const post = () => raw(emulator.url, "/v1/products", { method: "POST", body: new URLSearchParams({ name: "a" }) })
    yield* emulator.addFault({ fault: "no_error_key_404" })
    const strange = yield* post()
    expect([strange.status, JSON.parse(strange.text)]).toEqual([404, { message: "Not found" }])
    yield* emulator.addFault({ fault: "null_body" })
    const empty = yield* post()
    expect([empty.status, empty.text]).toEqual([200, "null"])
    yield* emulator.addFault({ fault: "html_502" })
    const html = yield* post()
    expect([html.status, html.headers.get("content-type")]).toEqual([502, "text/html"])
    expect((yield* call(() => stripe.products.list())).data).toEqual([])
    expect((yield* call(() => sdk(emulator.url).products.list())).data).toEqual([])
  })

  onEmulator("can drip an answer that never ends, or reset the connection", function* ({ account, emulator }) {
    yield* emulator.addFault({ fault: "drip" })
    expect(yield* chunksOf(emulator.url, account, 4)).toBe(4)
    yield* emulator.addFault({ fault: "reset" })
    expect(yield* chunksOf(emulator.url, account, 1)).toBe("ECONNRESET")
  })

  onEmulator("is refused if unknown, out of bounds or without the platform's key", function* ({ emulator }) {
    for (const body of [{}, { fault: "boredom" }, { fault: "reset", times: 0 }, { fault: "reset", colour: "red" }]) {
      expect([body, (yield* fault(emulator.url, body)).status]).toEqual([body, 400])
    }
    const stranger = yield* raw(emulator.url, "/_emulator/faults", {
      method: "POST",
      headers: { authorization: "Bearer sk_test_other" },
      body: JSON.stringify({ fault: "reset" })
    })
    expect(stranger.status).toBe(401)
    expect(yield* pending(emulator.url)).toEqual([])
  })

  it.live("that is under way does not keep the emulator from closing", function* () {
    const cut = yield* Effect.scoped(
      Effect.gen(function* () {
        const { account, emulator } = yield* connected()
        yield* emulator.addFault({ fault: "drip" })
        const dripping = yield* Effect.forkDaemon(chunksOf(emulator.url, account, 1_000_000))
        yield* emulator.addFault({ fault: "timeout" })
        const silent = yield* Effect.forkDaemon(chunksOf(emulator.url, account, 1_000_000))
        yield* eventually(
          Effect.filterOrFail(
            pending(emulator.url),
            (left) => Array.isArray(left) && left.length === 0,
            () => "The faults have not happened yet"
          )
        )
        return [dripping, silent] as const
      })
    )
    const ends = yield* Effect.all(cut.map((fiber) => Fiber.join(fiber)))
    expect(ends).toEqual(["ECONNRESET", "ECONNRESET"])
  })
})
