import { spawn } from "node:child_process"
import { readFileSync, statSync } from "node:fs"
import { Effect } from "effect"
import type { Stripe } from "stripe"
import { program } from "../harness/Program.ts"
import { describe, expect, it } from "../harness/Tests.ts"
import {
  call,
  connected,
  eventually,
  platform,
  raw,
  sdk,
  secretKey,
  somePrice,
  someSession,
  startEmulator,
  submit,
  temporaryDirectory,
  until,
  webhookSecret
} from "./Harness.ts"

/** The emulator in a process of its own, killed at the end of the scope if it still runs. */
const start = (extra: Readonly<Record<string, string>>) =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const child = spawn(process.execPath, program("src/emulator/main.ts"), {
        env: {
          PATH: process.env["PATH"] ?? "",
          EMULATOR_SECRET_KEY: secretKey,
          EMULATOR_WEBHOOK_SECRET: webhookSecret,
          ...extra
        },
        stdio: ["ignore", "pipe", "pipe"]
      })
      let output = ""
      for (const stream of [child.stdout, child.stderr]) {
        stream.setEncoding("utf8").on("data", (text: string) => {
          output += text
        })
      }
      const ended = new Promise<number | string | null>((resolve) =>
        child.once("close", (code, signal) => resolve(code ?? signal))
      )
      return { child, ended, printed: () => output }
    }),
    ({ child, ended }) =>
      Effect.promise(() => {
        child.kill("SIGKILL")
        return ended
      })
  )

const run = (extra: Readonly<Record<string, string>>) =>
  Effect.gen(function* () {
    const { child, ended, printed } = yield* start(extra)
    yield* until(() => printed().includes("\n"))
    const [url = ""] = printed().split("\n", 1)
    return { child, ended, url }
  })

/** What can be read of an account, to be compared before and after. */
const everything = (stripe: Stripe) =>
  call(async () => {
    const lists = await Promise.all([
      stripe.products.list({ limit: 100, expand: ["data.default_price"] }),
      stripe.prices.list({ limit: 100, expand: ["data.tiers"] }),
      stripe.checkout.sessions.list({ limit: 100, expand: ["data.line_items"] }),
      stripe.paymentIntents.list({ limit: 100 }),
      stripe.charges.list({ limit: 100 }),
      stripe.accounts.retrieveCurrent()
    ])
    return JSON.parse(JSON.stringify(lists))
  })

describe("with a journal", () => {
  it.scopedLive("the state is the same after a restart, and the file is its owner's alone", function* () {
    const journalFile = `${yield* temporaryDirectory}/deep/journal`
    const options = { idempotencyKey: "key-1" }
    const before = yield* Effect.scoped(
      Effect.gen(function* () {
        const { account, stripe } = yield* connected({ journalFile })
        const made = yield* call(() =>
          stripe.products.create({ name: "a", default_price_data: { currency: "usd", unit_amount: 1 } }, options)
        )
        const gone = yield* call(() => stripe.products.create({ name: "gone" }))
        yield* call(() => stripe.products.del(gone.id))
        yield* somePrice(stripe)
        const session = yield* someSession(stripe)
        yield* submit(session.url, { action: "decline" })
        yield* submit(session.url, { action: "pay" })
        return {
          account,
          made,
          all: yield* everything(stripe),
          events: yield* call(() => stripe.events.list({ limit: 100 }))
        }
      })
    )
    expect(statSync(journalFile).mode & 0o777).toBe(0o600)
    for (let restart = 0; restart < 2; restart++) {
      yield* Effect.scoped(
        Effect.gen(function* () {
          const stripe = sdk((yield* startEmulator({ journalFile })).url, before.account)
          expect(yield* everything(stripe)).toEqual(before.all)
          expect((yield* call(() => stripe.events.list({ limit: 100 }))).data).toEqual(before.events.data)
          const again = yield* call(() =>
            stripe.products.create({ name: "a", default_price_data: { currency: "usd", unit_amount: 1 } }, options)
          )
          expect(again.id).toBe(before.made.id)
          expect(again.lastResponse.headers["idempotent-replayed"]).toBe("true")
        })
      )
    }
    expect(statSync(journalFile).mode & 0o777).toBe(0o600)
  })

  it.scopedLive("the file is compacted at the start", function* () {
    const journalFile = `${yield* temporaryDirectory}/journal`
    yield* Effect.scoped(
      Effect.gen(function* () {
        const { emulator } = yield* connected({ journalFile })
        const stripe = sdk(emulator.url)
        const { id } = yield* call(() => stripe.products.create({ name: "a" }))
        for (let index = 0; index < 20; index++) yield* submit(`${emulator.url}/c/pay/none`, {})
        yield* call(() => stripe.products.update(id, { description: "x".repeat(30_000) }))
        yield* call(() => stripe.products.update(id, { description: "" }))
      })
    )
    const lines = () =>
      readFileSync(journalFile, "utf8")
        .split("\n")
        .filter((line) => line.includes('"kind":"product"')).length
    expect(lines()).toBe(3)
    yield* Effect.scoped(startEmulator({ journalFile }))
    expect(lines()).toBe(1)
  })
})

describe.concurrent("in a process of its own", () => {
  it.scopedLive("loses nothing that it answered when it is killed", function* () {
    const EMULATOR_JOURNAL = `${yield* temporaryDirectory}/journal`
    let accepts = false
    const { received, url } = yield* platform(() => (accepts ? 200 : 500))
    const first = yield* run({ EMULATOR_JOURNAL })
    const made = yield* raw(first.url, "/_emulator/accounts", { method: "POST" })
    const account: string = JSON.parse(made.text).id
    yield* raw(first.url, "/_emulator/webhook", { method: "POST", body: JSON.stringify({ url }) })
    const stripe = sdk(first.url, account)
    const session = yield* someSession(stripe)
    expect((yield* submit(session.url, { action: "pay" })).status).toBe(303)

    // Killed in the middle of a stream of requests: those answered count, those cut off may or may not
    const answered: Array<string> = []
    const stream = Effect.forEach(
      Array.from({ length: 400 }, (_, index) => `p${index}`),
      (name) =>
        Effect.promise(() =>
          stripe.products.create({ name }, { idempotencyKey: name }).then(
            () => void answered.push(name),
            () => undefined
          )
        ),
      { concurrency: 8 }
    )
    const kill = Effect.andThen(
      until(() => answered.length >= 60),
      () => first.child.kill("SIGKILL")
    )
    yield* Effect.all([stream, kill], { concurrency: 2 })
    expect(yield* Effect.promise(() => first.ended)).toBe("SIGKILL")
    expect(answered.length).toBeLessThan(400)

    accepts = true
    const second = yield* run({ EMULATOR_JOURNAL })
    const after = sdk(second.url, account)
    const names = (yield* call(() => after.products.list({ limit: 100 }).autoPagingToArray({ limit: 1_000 }))).map(
      ({ name }) => name
    )
    expect(names).toEqual(expect.arrayContaining(answered))
    expect(new Set(names).size).toBe(names.length)
    expect(
      yield* call(() => after.checkout.sessions.retrieve(session.id, { expand: ["payment_intent"] }))
    ).toMatchObject({ status: "complete", payment_status: "paid", payment_intent: { status: "succeeded" } })
    // What was pending is delivered: each event that there is, at least once
    const events = (yield* call(() => after.events.list({ limit: 100 }).autoPagingToArray({ limit: 1_000 }))).map(
      ({ id }) => id
    )
    const delivered = () => new Set(received.map(({ body }) => String(JSON.parse(body).id)))
    yield* until(() => events.every((id) => delivered().has(id)))
    expect(delivered().size).toBe(events.length)
  })

  it.scopedLive("prints its URL first, and ends on SIGTERM and on SIGINT with connections open", () =>
    Effect.forEach(
      ["SIGTERM", "SIGINT"] as const,
      (signal) =>
        Effect.gen(function* () {
          const { child, ended, url } = yield* run({ EMULATOR_PORT: "0" })
          expect(url).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/)
          yield* eventually(raw(url, "/v1/account"))
          child.kill(signal)
          yield* Effect.promise(() => ended)
        }),
      { concurrency: 2 }
    )
  )

  it.scopedLive("names the setting that is missing or wrong, and does not start", function* () {
    for (const [name, value] of [
      ["EMULATOR_SECRET_KEY", ""],
      ["EMULATOR_PORT", "70000"]
    ] as const) {
      const { ended, printed } = yield* start({ [name]: value })
      expect(yield* Effect.promise(() => ended)).not.toBe(0)
      expect(printed()).toContain(name)
    }
  })
})
