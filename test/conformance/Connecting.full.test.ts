import { Effect, FastCheck } from "effect"
import { accountParams, onboardingParams } from "../../src/payments/connecting/StripeConnecting.ts"
import { call, raw, sdk, startEmulator, submit } from "../emulator/Harness.ts"
import { describe, expect, it } from "../harness/Tests.ts"
import { providerChecks } from "./ProviderSchemas.ts"

const check = providerChecks({
  account: { file: "Accounts", name: "Account" },
  account_link: { file: "AccountLinks", name: "AccountLink" },
  deauthorization: { file: "OAuth", name: "OAuthDeauthorization" },
  token: { file: "OAuth", name: "OAuthToken" },
  "account.application.deauthorized": { file: "Events", name: "AccountApplicationDeauthorizedEvent" },
  "account.updated": { file: "Events", name: "AccountUpdatedEvent" },
  accountParams: { file: "Accounts", name: "AccountCreateParams" },
  onboardingParams: { file: "AccountLinks", name: "AccountLinkCreateParams" }
})

const pages = { returnUrl: "https://payments.example/return", refreshUrl: "https://payments.example/refresh" }

const wire = (answer: object): unknown => JSON.parse(JSON.stringify(answer))

/** An account that is created, and where its link's page is. */
const onboarding = Effect.gen(function* () {
  const emulator = yield* startEmulator()
  const stripe = sdk(emulator.url)
  const account = yield* call(() => stripe.accounts.create(accountParams({ marker: "m" })))
  const link = yield* call(() => stripe.accountLinks.create(onboardingParams({ accountId: account.id }, pages)))
  return { account, emulator, link, page: (yield* raw("", link.url)).headers.get("location"), stripe }
})

describe("connecting an account", () => {
  it("asks for it with the provider's own parameters", () => {
    FastCheck.assert(
      FastCheck.property(FastCheck.string(), FastCheck.string(), (marker, accountId) => {
        expect(check("accountParams")(accountParams({ marker }))).toEqual([])
        expect(check("onboardingParams")(onboardingParams({ accountId }, pages))).toEqual([])
      })
    )
    expect(check("accountParams")({ ...accountParams({ marker: "m" }), no_such_parameter: 1 })).toHaveLength(1)
  })

  it.scopedLive.each(["leave", "partial", "finish"])("has the provider's objects after %s", function* (action) {
    const { account, link, page, stripe } = yield* onboarding
    expect(check("account")(wire(account))).toEqual([])
    expect(check("account_link")(wire(link))).toEqual([])
    expect((yield* submit(page, { action, name: "Bakery" })).status).toBe(303)
    const after = yield* call(() => stripe.accounts.retrieve(account.id))
    expect(check("account")(wire(after))).toEqual([])
    const events = yield* call(() => stripe.events.list({}, { stripeAccount: account.id }))
    expect(events.data).toHaveLength(action === "leave" ? 0 : 1)
    for (const event of events.data) expect(check("account.updated")(wire(event))).toEqual([])
  })

  it.scopedLive("has the provider's answers of OAuth at the emulator", function* () {
    const { emulator, stripe } = yield* onboarding
    const query = new URLSearchParams({
      client_id: emulator.oauthClientId,
      redirect_uri: pages.returnUrl,
      response_type: "code"
    })
    const consented = yield* raw(emulator.url, `/oauth/authorize?${query}`, {
      method: "POST",
      body: "action=connect&account=new"
    })
    const code = new URL(consented.headers.get("location") ?? "").searchParams.get("code") ?? ""
    const token = yield* call(() => stripe.oauth.token({ grant_type: "authorization_code", code }))
    expect(check("token")(wire(token))).toEqual([])
    const account = String(token.stripe_user_id)
    expect(check("account")(wire(yield* call(() => stripe.accounts.retrieve(account))))).toEqual([])
    const ended = yield* call(() =>
      stripe.oauth.deauthorize({ client_id: emulator.oauthClientId, stripe_user_id: account })
    )
    expect(check("deauthorization")(wire(ended))).toEqual([])
    const [told] = JSON.parse((yield* raw(emulator.url, `/_emulator/events?account=${account}`)).text).data
    expect(check("account.application.deauthorized")(told.event)).toEqual([])
  })
})
