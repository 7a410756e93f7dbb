import { Effect } from "effect"
import { describe, expect, it } from "../harness/Tests.ts"
import { call, raw, sdk, startEmulator, submit } from "./Harness.ts"

const controller = {
  fees: { payer: "account" },
  losses: { payments: "stripe" },
  requirement_collection: "stripe",
  stripe_dashboard: { type: "full" }
} as const

const pages = {
  type: "account_onboarding",
  refresh_url: "https://shop.example/again?a=1",
  return_url: "https://shop.example/back"
} as const

const visit = (url: string | null) =>
  Effect.map(raw("", url ?? ""), ({ headers, status }) => {
    expect(status).toBe(303)
    return headers.get("location") ?? ""
  })

describe("an account that a platform creates", () => {
  it.scopedLive("is onboarded by a link that works once, in time, while the platform has access", function* () {
    const emulator = yield* startEmulator()
    const stripe = sdk(emulator.url)
    const account = yield* call(() => stripe.accounts.create({ controller }))
    const link = () => call(() => stripe.accountLinks.create({ account: account.id, ...pages }))
    const read = () => call(() => stripe.accounts.retrieve(account.id))
    const { url } = yield* link()
    expect(yield* visit(url)).toContain("/setup/e/")
    expect(yield* visit(url)).toBe(pages.refresh_url)
    const other = yield* emulator.ensureAccount()
    for (const path of [
      `/setup/s/${other}/${url.split("/").at(-1)}`,
      `/setup/s/${account.id}/nothing`,
      `/setup/e/${account.id}/nothing`,
      `/setup/x/${account.id}/nothing`
    ]) {
      expect([path, (yield* raw(emulator.url, path)).status]).toEqual([path, 404])
    }
    expect((yield* raw("", url, { method: "POST" })).status).toBe(405)
    const page = yield* visit((yield* link()).url)
    for (const fields of [{}, { action: "steal" }, { action: "finish" }, { action: "finish", name: " " }]) {
      expect([400, 422]).toContain((yield* submit(page, fields)).status)
    }
    expect((yield* submit(page, { action: "finish", name: "a".repeat(101) })).status).toBe(400)
    expect(yield* read()).toMatchObject({ details_submitted: false })
    const late = (yield* link()).url
    yield* emulator.revokeAccount(account.id)
    expect(yield* visit(late)).toBe(pages.refresh_url)
    expect((yield* submit(page, { action: "finish", name: "Bakery" })).status).toBe(404)
  })
})
