import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import type { Stripe } from "stripe"
import {
  call,
  connected,
  eventually,
  platform,
  raw,
  said,
  sdk,
  startEmulator,
  submit,
  webhookSecret
} from "./Harness.ts"

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

/** A new account, with its platform. */
const created = Effect.gen(function* () {
  const emulator = yield* startEmulator()
  const stripe = sdk(emulator.url)
  const account = yield* call(() => stripe.accounts.create({ controller, metadata: { a: "1" } }))
  const link = () => call(() => stripe.accountLinks.create({ account: account.id, ...pages }))
  const read = () => call(() => stripe.accounts.retrieve(account.id))
  return { emulator, stripe, account, link, read }
})

const visit = (url: string | null) =>
  Effect.map(raw("", url ?? ""), ({ headers, status }) => {
    expect(status).toBe(303)
    return headers.get("location") ?? ""
  })

const button = (page: string, fields: Readonly<Record<string, string>>) =>
  Effect.map(submit(page, fields), ({ headers, status }) => [status, headers.get("location")])

const events = (stripe: Stripe, account: string) =>
  call(() => stripe.events.list({ limit: 10 }, { stripeAccount: account }))

describe("an account that a platform creates", () => {
  it.scopedLive("has everything before it, until its owner has submitted it", () =>
    Effect.gen(function* () {
      const { account, emulator, link, read, stripe } = yield* created
      expect(account).toMatchObject({
        charges_enabled: false,
        payouts_enabled: false,
        details_submitted: false,
        type: "none",
        controller: { ...controller, is_controller: true, type: "application" },
        metadata: { a: "1" },
        requirements: { disabled_reason: "requirements.past_due" }
      })
      expect(account.requirements?.currently_due).not.toHaveLength(0)

      const made = yield* link()
      expect(made).toMatchObject({ object: "account_link" })
      expect(made.expires_at - made.created).toBe(300)
      expect(made.url.startsWith(`${emulator.url}/setup/s/${account.id}/`)).toBe(true)
      const page = yield* visit(made.url)
      const shown = yield* raw("", page)
      expect(shown.status).toBe(200)
      expect(shown.text).toContain("Test mode")
      expect(shown.text).toContain(account.id)
      expect(shown.text).not.toContain("<script")
      expect(yield* button(page, { action: "finish", name: "Bakery <b>" })).toEqual([303, pages.return_url])
      expect(yield* read()).toMatchObject({
        charges_enabled: true,
        payouts_enabled: true,
        details_submitted: true,
        business_profile: { name: "Bakery <b>" },
        capabilities: { card_payments: "active", transfers: "active" },
        requirements: { currently_due: [], past_due: [], disabled_reason: null }
      })
      const { data } = yield* events(stripe, account.id)
      expect(data.map(({ type }) => type)).toEqual(["account.updated"])
      expect(data[0]).toMatchObject({
        account: account.id,
        data: { object: { id: account.id, charges_enabled: true }, previous_attributes: { charges_enabled: false } }
      })
      // Submitted once
      expect((yield* submit(page, { action: "finish", name: "Bakery" })).status).toBe(404)
    })
  )

  it.scopedLive("can be left incomplete, or as it was", () =>
    Effect.gen(function* () {
      const { account, link, read, stripe } = yield* created
      const left = yield* visit((yield* link()).url)
      expect(yield* button(left, { action: "leave" })).toEqual([303, pages.return_url])
      expect(yield* read()).toMatchObject({ details_submitted: false })
      expect((yield* events(stripe, account.id)).data).toEqual([])
      const partial = yield* visit((yield* link()).url)
      expect(yield* button(partial, { action: "partial", name: "Bakery" })).toEqual([303, pages.return_url])
      expect(yield* read()).toMatchObject({
        details_submitted: true,
        charges_enabled: true,
        payouts_enabled: false,
        requirements: { past_due: ["individual.verification.document"] }
      })
      expect((yield* raw("", yield* visit((yield* link()).url))).text).toContain("a document that shows who you are")
    })
  )

  it.scopedLive("is onboarded by a link that works once, in time, and only as long as the platform has access", () =>
    Effect.gen(function* () {
      const { account, emulator, link, read } = yield* created
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
  )

  it.scopedLive("is refused with contradictions, and a link without its pages or for accounts of others", () =>
    Effect.gen(function* () {
      const { account, emulator, stripe } = yield* created
      expect(yield* said(() => stripe.accounts.create({ type: "standard", controller }))).toMatchObject({
        statusCode: 400,
        param: "controller"
      })
      const link = (params: object) =>
        said(() => stripe.rawRequest("POST", "/v1/account_links", { account: account.id, ...pages, ...params }))
      expect(yield* link({ type: "account_takeover" })).toMatchObject({ statusCode: 400, param: "type" })
      expect(yield* link({ return_url: "javascript:alert(1)" })).toMatchObject({
        param: "return_url",
        code: "url_invalid"
      })
      expect(
        yield* said(() => stripe.rawRequest("POST", "/v1/account_links", { account: account.id, type: pages.type }))
      ).toMatchObject({ code: "parameter_missing" })
      expect(yield* link({ account: "acct_nobody" })).toMatchObject({ statusCode: 403, code: "account_invalid" })
      const own = yield* emulator.ensureAccount()
      yield* call(() =>
        fetch(`${emulator.url}/_emulator/accounts/${own}`, {
          method: "POST",
          headers: { authorization: "Bearer sk_test_emulatorKey0000" },
          body: JSON.stringify({ controlled: false })
        })
      )
      expect(yield* link({ account: own })).toMatchObject({ statusCode: 400, param: "account" })
    })
  )
})

/** A consent page, and the code that it leads back with. */
const consenting = Effect.gen(function* () {
  const { account, emulator } = yield* connected()
  const stripe = sdk(emulator.url)
  const query = new URLSearchParams({
    client_id: emulator.oauthClientId,
    redirect_uri: "https://shop.example/back?a=1",
    response_type: "code",
    scope: "read_write",
    state: "s"
  })
  const page = `${emulator.url}/oauth/authorize?${query}`
  const decide = (fields: Readonly<Record<string, string>>) =>
    Effect.map(
      raw("", page, { method: "POST", body: new URLSearchParams({ account, action: "connect", ...fields }) }),
      ({ headers }) => new URL(headers.get("location") ?? "about:blank")
    )
  const codeOf = Effect.map(decide({}), ({ searchParams }) => searchParams.get("code") ?? "")
  const redeem = (code: string) => stripe.oauth.token({ grant_type: "authorization_code", code })
  return { account, emulator, stripe, page, decide, codeOf, redeem }
})

describe("an existing account", () => {
  it.scopedLive("is chosen by its owner, and connected again with the code", () =>
    Effect.gen(function* () {
      const { account, codeOf, decide, emulator, page, redeem, stripe } = yield* consenting
      yield* emulator.revokeAccount(account)
      const shown = yield* raw("", page)
      expect(shown.status).toBe(200)
      expect(shown.text).toContain("Test mode")
      expect(shown.text).toContain(account)
      const declined = yield* decide({ action: "decline" })
      expect(Object.fromEntries(declined.searchParams)).toEqual({
        a: "1",
        error: "access_denied",
        error_description: "The user denied your request",
        state: "s"
      })
      const code = yield* codeOf
      expect(code).toMatch(/^ac_[A-Za-z0-9]{32}$/)
      expect(yield* said(() => stripe.accounts.retrieve(account))).toMatchObject({ statusCode: 403 })
      expect(yield* call(() => redeem(code))).toMatchObject({
        livemode: false,
        scope: "read_write",
        stripe_user_id: account,
        token_type: "bearer"
      })
      expect((yield* call(() => stripe.accounts.retrieve(account))).id).toBe(account)
    })
  )

  it.scopedLive("is disconnected if its code is used again, or by the platform, which is told of it", () =>
    Effect.gen(function* () {
      const { account, codeOf, emulator, redeem, stripe } = yield* consenting
      const shop = yield* platform()
      yield* emulator.setWebhookUrl(shop.url)
      const code = yield* codeOf
      yield* call(() => redeem(code))
      expect(yield* said(() => redeem(code))).toMatchObject({ statusCode: 400, rawType: "invalid_grant" })
      expect(yield* said(() => stripe.accounts.retrieve(account))).toMatchObject({ statusCode: 403 })

      const next = yield* codeOf
      yield* call(() => redeem(next))
      const end = () => stripe.oauth.deauthorize({ client_id: emulator.oauthClientId, stripe_user_id: account })
      expect(yield* call(end)).toEqual({ stripe_user_id: account })
      expect(yield* said(end)).toMatchObject({ statusCode: 401, rawType: "invalid_client" })
      yield* eventually(
        Effect.suspend(() =>
          shop.received.filter(({ body }) => body.includes("account.application.deauthorized")).length === 2
            ? Effect.void
            : Effect.fail("The platform was not told")
        )
      )
      const [told] = shop.received
      expect(
        stripe.webhooks.constructEvent(told?.body ?? "", String(told?.headers["stripe-signature"]), webhookSecret)
      ).toMatchObject({ account, type: "account.application.deauthorized" })
    })
  )

  it.scopedLive("is not connected by what is made up", () =>
    Effect.gen(function* () {
      const { emulator, page, redeem, stripe } = yield* consenting
      expect(yield* said(() => redeem("ac_made_up"))).toMatchObject({ statusCode: 400, rawType: "invalid_grant" })
      expect(yield* said(() => stripe.oauth.token({ grant_type: "refresh_token", refresh_token: "rt" }))).toMatchObject(
        { statusCode: 400 }
      )
      expect(
        yield* said(() => stripe.oauth.deauthorize({ client_id: "ca_other", stripe_user_id: "acct_1" }))
      ).toMatchObject({ statusCode: 401, rawType: "invalid_client" })
      expect(
        yield* said(() =>
          sdk(emulator.url, undefined, "sk_test_other").oauth.token({ grant_type: "authorization_code" })
        )
      ).toMatchObject({ statusCode: 401 })
      for (const [name, value] of [
        ["client_id", "ca_other"],
        ["redirect_uri", "javascript:alert(1)"],
        ["response_type", "token"],
        ["scope", "everything"]
      ] as const) {
        const url = new URL(page)
        url.searchParams.set(name, value)
        expect([name, (yield* raw("", url.href)).status]).toEqual([name, 400])
      }
      expect((yield* raw("", page, { method: "POST", body: "action=connect&account=acct_nobody" })).status).toBe(422)
      expect((yield* raw(emulator.url, "/oauth/token")).status).toBe(404)
    })
  )
})
