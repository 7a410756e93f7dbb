import { Effect } from "effect"
import type { ListedEvent } from "../../src/payments/notifications/Port.ts"
import { expect, it } from "../harness/Tests.ts"
import { scripted } from "./ScriptedAdapter.ts"
import { replying } from "./ScriptedProvider.ts"

/** A provider with a list of 250 objects, in pages as large as is asked for. */
const withList = withObjects((index) => ({ id: `item_${index}`, object: "item" }))

function withObjects(make: (index: number) => object, length = 250) {
  return Effect.gen(function* () {
    const server = yield* scripted()
    const all = Array.from({ length }, (_, index) => ({ id: `item_${index}`, ...make(index) }))
    const places = new Map(all.map(({ id }, index) => [id, index]))
    server.behave((call, response) => {
      const query = new URL(call.path, server.url).searchParams
      const start = (places.get(query.get("starting_after") ?? "") ?? -1) + 1
      const data = all.slice(start, start + Number(query.get("limit")))
      replying(200, { object: "list", data, has_more: start + data.length < all.length, url: "/" })(call, response)
    })
    return { all, ...server }
  })
}

const account = { environment: "sandbox", accountId: "acct_1" } as const

it.scopedLive("lists are fetched to their end, page by page, on the account", function* () {
  const { all, calls, provider } = yield* withList
  expect(yield* provider.listSubscriptionItems(account, "sub_1")).toEqual(all)
  expect(yield* provider.listInvoiceLines(account, "in_1")).toEqual(all)
  const paths = calls.map(({ path }) => path)
  expect(paths).toHaveLength(6)
  expect(paths.slice(0, 3).every((path) => path.startsWith("/v1/subscription_items?"))).toBe(true)
  expect(paths.slice(3).every((path) => path.startsWith("/v1/invoices/in_1/lines?"))).toBe(true)
  expect(new Set(calls.map(({ headers }) => headers["stripe-account"]))).toEqual(new Set(["acct_1"]))
})

it.scopedLive(
  "events are listed far beyond the bound of other lists, and refused beyond their own with what to do",
  function* () {
    const named = (index: number) => ({
      id: `evt_${index}`,
      object: "event",
      type: "payment_intent.succeeded",
      created: 1_700_000_000 - index,
      data: { object: { id: "pi_1" } }
    })
    const since = new Date(0)
    const { calls, provider } = yield* withObjects(named, 12_345)
    const listed: Array<ListedEvent> = []
    yield* provider.listEvents(account, { since }, (page) => Effect.succeed(listed.push(...page) > 0))
    expect(listed).toHaveLength(12_345)
    expect(listed.at(-1)).toEqual(named(12_344))
    expect(calls).toHaveLength(124)

    const endless = yield* withObjects(named, 100_001)
    const refused = yield* Effect.flip(endless.provider.listEvents(account, { since }, () => Effect.succeed(true)))
    expect([refused._tag, refused.message]).toEqual([
      "ProviderUnavailable",
      "An account has more than 100,000 events in that time. Ask for a shorter one."
    ])
    expect(endless.calls).toHaveLength(1000)
  },
  // More than a thousand calls
  300_000
)

it.scopedLive("a list that says it goes on after an empty page has ended", function* () {
  const { behave, provider } = yield* withList
  behave(replying(200, { object: "list", data: [], has_more: true, url: "/" }))
  expect(yield* provider.listInvoiceLines(account, "in_1")).toEqual([])
})

const failed = { object: "charge", status: "failed", captured: false }
const pending = { object: "charge", status: "pending", captured: true }
const authorized = { object: "charge", status: "succeeded", captured: false }
const paid = { object: "charge", status: "succeeded", captured: true }

for (const [what, charges, answer, expected] of [
  ["has none", () => [], false, 1],
  ["has some that failed, are pending or were never captured", () => [failed, pending, authorized], false, 1],
  ["has one after such", () => [failed, pending, authorized, paid], true, 1],
  ["has one on a later page", () => [...Array.from({ length: 230 }, () => failed), paid], true, 3],
  ["has one on the first of many pages", () => [paid, ...Array.from({ length: 900 }, () => failed)], true, 1],
  ["has more that failed than anybody looks through", () => Array.from({ length: 2500 }, () => failed), true, 20]
] as const) {
  it.scopedLive(`an account that ${what} ${answer ? "had" : "had no"} payments before`, function* () {
    const all = charges()
    const { calls, provider } = yield* withObjects((index) => ({ ...all[index] }), all.length)
    expect(yield* provider.hasCharges(account)).toBe(answer)
    expect(calls).toHaveLength(expected)
    for (const { path } of calls) expect(path).toMatch(/^\/v1\/charges\?limit=100/)
  })
}

it.scopedLive("a list that comes back to where it was, or never ends, is no answer after some pages", function* () {
  const { behave, calls, provider } = yield* withList
  const page = (id: string) => ({ object: "list", data: [{ id, object: "item" }], has_more: true, url: "/" })
  behave(replying(200, page("item_same")))
  expect((yield* Effect.flip(provider.listInvoiceLines(account, "in_1")))._tag).toBe("ProviderUnavailable")
  expect(calls).toHaveLength(2)
  behave((call, response) => replying(200, page(`item_${calls.length}`))(call, response))
  expect((yield* Effect.flip(provider.listSubscriptionItems(account, "sub_1")))._tag).toBe("ProviderUnavailable")
  expect(calls).toHaveLength(52)
})
