import { expect } from "@effect/vitest"
import { Effect, Option } from "effect"
import { eventually } from "../../harness/Eventually.ts"
import { onServiceWithoutConsole, signInMember } from "../../harness/SignIn.ts"
import { inDatabase, sendRequest, TestService } from "../../harness/TestService.ts"
import { expectFailure, refusedWith } from "../../surface/http/Refusals.ts"
import {
  comeBack,
  complete,
  createdAccounts,
  disconnect,
  newOwner,
  onboard,
  open,
  path,
  read,
  sandbox,
  target,
  titleOf,
  urlIn
} from "./Connecting.ts"

const nothing = {
  environment: "sandbox",
  status: "not_connected",
  accountId: null,
  chargesEnabled: false,
  payoutsEnabled: false,
  detailsSubmitted: false,
  requirements: {
    currentlyDueCount: 0,
    pastDueCount: 0,
    pendingVerificationCount: 0,
    disabledReason: null,
    currentDeadline: null
  },
  current: true,
  linkedBy: null,
  linkedAt: null,
  disconnectedAt: null,
  canUseExisting: true,
  disconnecting: { endsProviderAccess: false, endpointCount: 0, checkoutPageCount: 0, pendingDeliveryCount: 0 }
}

const connect = (owner: Effect.Effect.Success<typeof newOwner>) =>
  Effect.gen(function* () {
    yield* complete(urlIn(yield* onboard(owner)), "finish")
    return String((yield* read(owner))["accountId"])
  })

onServiceWithoutConsole("onboarding", (it) => {
  it.effect("creates an account, links it at once, shows what the provider says until it is connected", function* () {
    const owner = yield* newOwner
    expect(yield* read(owner)).toEqual(nothing)

    const started = yield* onboard(owner)
    const link = urlIn(started)
    expect(Date.parse(String(started.json["expiresAt"]))).toBeGreaterThan(Date.now())
    const waiting = yield* read(owner)
    expect(waiting).toMatchObject({
      status: "onboarding",
      accountId: expect.stringMatching(/^acct_/),
      chargesEnabled: false,
      detailsSubmitted: false,
      linkedBy: "onboarding",
      linkedAt: expect.stringMatching(/Z$/),
      requirements: { currentlyDueCount: 4, pastDueCount: 4, disabledReason: "requirements.past_due" }
    })
    // Counts alone: names of what is due say too much about people
    expect(JSON.stringify(waiting)).not.toContain("tos_acceptance")

    const back = yield* complete(link, "finish")
    expect(back.href).toBe("https://payments.example/identity/account/return?environment=sandbox")
    const page = yield* comeBack(back)
    expect(page.status).toBe(200)
    expect(titleOf(page)).toBe("Back from the payment provider")
    expect(page.text).toContain("Test mode")
    expect(yield* read(owner)).toMatchObject({
      status: "connected",
      chargesEnabled: true,
      payoutsEnabled: true,
      detailsSubmitted: true,
      requirements: { currentlyDueCount: 0, pastDueCount: 0, disabledReason: null }
    })
    // The notification has found its organization
    yield* eventually(
      "the receipt of account.updated",
      Effect.map(
        inDatabase`SELECT 1 FROM payments.receipts WHERE organization_id = ${owner.organizationId} AND type = 'account.updated'`,
        (rows) => (rows.length > 0 ? Option.some(true) : Option.none())
      )
    )
    const accountId = String(waiting["accountId"])
    expect(yield* owner.audited).toEqual([
      `account.linked ${accountId} person ${owner.id}`,
      `account.onboarding_started ${accountId} person ${owner.id}`
    ])
    // Nothing of the URL was stored
    const token = link.pathname.split("/").at(-1)
    const kept = yield* inDatabase<{ row: string }>`
        SELECT o::text AS row FROM payments.account_onboardings o WHERE organization_id = ${owner.organizationId}
        UNION ALL SELECT a::text FROM payments.provider_accounts a WHERE organization_id = ${owner.organizationId}
        UNION ALL SELECT l::text FROM payments.audit_log l WHERE organization_id = ${owner.organizationId}`
    expect(kept.filter(({ row }) => row.includes(String(token)))).toEqual([])
    expect((yield* sendRequest("GET", path)).status).toBe(401)
  })

  it.effect("links work once: a second visit leads to the page that offers a new one on request", function* () {
    const owner = yield* newOwner
    const link = urlIn(yield* onboard(owner))
    target(yield* open(link))
    const refresh = target(yield* open(link))
    expect(refresh.href).toBe("https://payments.example/identity/account/refresh?environment=sandbox")
    const before = yield* owner.audited
    const page = yield* comeBack(refresh, owner)
    expect(titleOf(page)).toBe("This link no longer works")
    expect(page.text).not.toMatch(/<form|<script|\/setup\//)
    expect(yield* owner.audited).toEqual(before)
    expect(urlIn(yield* onboard(owner)).pathname).not.toBe(link.pathname)
  })

  it.effect("that is left begins again where it was, and what was left out is asked for again", function* () {
    const owner = yield* newOwner
    yield* complete(urlIn(yield* onboard(owner)), "leave")
    expect(yield* read(owner)).toMatchObject({ status: "onboarding", detailsSubmitted: false })
    const { accountId } = yield* read(owner)
    yield* complete(urlIn(yield* onboard(owner)), "partial")
    expect(yield* read(owner)).toMatchObject({
      status: "connected",
      accountId,
      chargesEnabled: true,
      payoutsEnabled: false,
      requirements: { currentlyDueCount: 1, pastDueCount: 1, disabledReason: "requirements.past_due" }
    })
    yield* complete(urlIn(yield* onboard(owner)), "finish")
    expect(yield* read(owner)).toMatchObject({ accountId, payoutsEnabled: true, requirements: { pastDueCount: 0 } })
  })

  it.effect("creates one account, however many ask at once", function* () {
    const owner = yield* newOwner
    const before = yield* createdAccounts
    const answers = yield* Effect.all(
      Array.from({ length: 5 }, () => onboard(owner)),
      { concurrency: "unbounded" }
    )
    for (const answer of answers) expect([200, 409], answer.text).toContain(answer.status)
    urlIn(yield* onboard(owner))
    expect((yield* createdAccounts).filter((id) => !before.includes(id))).toEqual([(yield* read(owner))["accountId"]])
  })

  it.effect("creates no second account after a lost answer, even if the provider forgot the first", function* () {
    const { emulator, sql } = yield* TestService
    const owner = yield* newOwner
    const before = yield* createdAccounts
    const creation = { method: "POST", path: "/v1/accounts", times: 1_000 } as const
    yield* emulator.addFault({ fault: "lost_answer", ...creation })
    const lost = yield* onboard(owner).pipe(Effect.ensuring(emulator.clearFaults))
    expectFailure(lost, { status: 502, code: "provider_unavailable" })
    expect(yield* read(owner)).toEqual(nothing)
    // So much later, a creation would not be recognized as a repeat: the account is looked for
    yield* sql`
        UPDATE payments.account_onboardings SET begun_at = begun_at - interval '2 days'
        WHERE organization_id = ${owner.organizationId}`
    yield* emulator.addFault({ fault: "html_502", ...creation })
    urlIn(yield* onboard(owner).pipe(Effect.ensuring(emulator.clearFaults)))
    const { accountId } = yield* read(owner)
    expect((yield* createdAccounts).filter((id) => !before.includes(id))).toEqual([accountId])
  })

  it.effect("uses the account that was created though the provider keeps a failure under its key", function* () {
    const { emulator } = yield* TestService
    const owner = yield* newOwner
    const before = yield* createdAccounts
    yield* emulator.addFault({ fault: "kept_500", method: "POST", path: "/v1/accounts" })
    urlIn(yield* onboard(owner).pipe(Effect.ensuring(emulator.clearFaults)))
    expect((yield* createdAccounts).filter((id) => !before.includes(id))).toEqual([(yield* read(owner))["accountId"]])
  })

  it.effect("uses the account that was created before a process died, and has not linked yet", function* () {
    const { emulator, sql } = yield* TestService
    const owner = yield* newOwner
    yield* emulator.addFault({ fault: "html_502", method: "GET", path: "/v1/accounts/*", times: 1_000 })
    const failed = yield* onboard(owner).pipe(Effect.ensuring(emulator.clearFaults))
    expectFailure(failed, { status: 502, code: "provider_unavailable" })
    const [remembered] = yield* sql<{ id: string }>`
        SELECT account_id AS id FROM payments.account_onboardings WHERE organization_id = ${owner.organizationId}`
    urlIn(yield* onboard(owner))
    expect(yield* read(owner)).toMatchObject({ accountId: remembered?.id, status: "onboarding" })
  })

  it.effect("is for owners and admins; every member of the workspace reads the status", function* () {
    const { organization, request } = yield* TestService
    const owner = yield* newOwner
    const id = owner.organizationId
    const denied = { status: 403, code: "permission_denied", fields: [] }
    for (const role of ["developer", "viewer"] as const) {
      const member = yield* signInMember(id, role, ["sandbox"])
      expect(yield* read(member)).toMatchObject({ status: "not_connected" })
      expectFailure(yield* onboard(member), denied)
      expectFailure(yield* disconnect(member, "acct_1234567890123456"), denied)
    }
    const elsewhere = yield* signInMember(id, "developer", [])
    for (const answer of [yield* elsewhere.request("GET", path), yield* onboard(elsewhere)]) {
      expectFailure(answer, { status: 403, code: "workspace_access_required", fields: [] })
    }
    const foreign = yield* owner.request("POST", `${path}/onboarding`, {
      body: sandbox,
      headers: { origin: "https://evil.example" }
    })
    expectFailure(foreign, { status: 403, code: "origin_not_trusted", fields: [] })
    const byKey = yield* request("POST", `${path}/onboarding`, { key: organization.testKey, body: sandbox })
    expectFailure(byKey, { status: 401, code: "authentication_required", fields: [] })
    expect(yield* read(owner)).toEqual(nothing)

    const admin = yield* signInMember(id, "admin")
    urlIn(yield* onboard(admin))
    const { accountId } = yield* read(admin)
    expectFailure(yield* disconnect(admin, accountId), denied)
    expect(yield* read(owner)).toMatchObject({ status: "onboarding", accountId })
  })

  it.effect("names the environment, so that a tab does not act in another one", function* () {
    const owner = yield* newOwner
    const post = (body: unknown) => owner.request("POST", `${path}/onboarding`, { body })
    for (const body of [{}, { environment: "live" }, { environment: 1 }, { environment: "production" }]) {
      expectFailure(yield* post(body), { status: 422, code: "validation_failed", fields: ["environment"] })
    }
    expectFailure(yield* post({ ...sandbox, country: "US" }), refusedWith(422, "validation_failed", ["country"]))
    yield* owner.request("PUT", "/identity/session/workspace", { body: { environment: "production" } })
    expectFailure(yield* onboard(owner), { status: 422, code: "validation_failed", fields: ["environment"] })
    expect(yield* read(owner)).toMatchObject({
      environment: "production",
      status: "not_connected",
      canUseExisting: false
    })
    // The test service has no key for the provider's live mode
    expectFailure(yield* post({ environment: "production" }), { status: 502, code: "provider_unavailable" })
    expect(yield* owner.audited).toEqual([])
  })

  it.effect("may be begun ten times in ten minutes", function* () {
    const { passTime } = yield* TestService
    const owner = yield* newOwner
    for (let n = 0; n < 10; n++) urlIn(yield* onboard(owner))
    const refused = yield* onboard(owner)
    expectFailure(refused, { status: 429, code: "rate_limit_exceeded" })
    expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0)
    yield* passTime("1 minute")
    urlIn(yield* onboard(owner))
  })
})

onServiceWithoutConsole("a connected account", (it) => {
  it.effect("is disconnected by an owner who is told what that means; only a new link reverses it", function* () {
    const { emulator, makeKey, request } = yield* TestService
    const owner = yield* newOwner
    const accountId = yield* connect(owner)
    const key = yield* makeKey(owner.organizationId, ["*", "webhook-endpoints:*"])
    const organization = `/v2/organizations/${owner.organizationId}`
    const endpoint = { name: "Shop", url: "http://127.0.0.1:9/hooks", events: ["payment.succeeded"] }
    const made = yield* request("POST", `${organization}/integrations/endpoints`, {
      key,
      headers: { "idempotency-key": "the-shops-endpoint" },
      body: endpoint
    })
    expect(made.status, made.text).toBe(200)
    expect((yield* read(owner))["disconnecting"]).toEqual({
      endsProviderAccess: false,
      endpointCount: 1,
      checkoutPageCount: 0,
      pendingDeliveryCount: 0
    })
    const balance = request("GET", `${organization}/provider/balance`, { key })
    expect((yield* balance).status).toBe(200)

    for (const other of ["acct_1234567890123456", yield* emulator.ensureAccount()]) {
      expectFailure(yield* disconnect(owner, other), { status: 404, code: "resource_not_found" })
    }
    for (const query of ["", "?accountId=", "?accountId=x", `?accountId=acct_${"1".repeat(65)}`]) {
      const answer = yield* owner.request("DELETE", `${path}${query}`)
      expectFailure(answer, { status: 422, code: "validation_failed", fields: ["accountId"] }, query)
    }
    expect((yield* balance).status).toBe(200)

    for (let n = 0; n < 2; n++) {
      const gone = yield* disconnect(owner, accountId)
      expect([gone.status, gone.text]).toEqual([204, ""])
    }
    expect(yield* read(owner)).toMatchObject({
      status: "disconnected",
      accountId,
      chargesEnabled: false,
      disconnectedAt: expect.stringMatching(/Z$/),
      disconnecting: { endpointCount: 0 }
    })
    expectFailure(yield* balance, { status: 409, code: "provider_account_not_connected" })
    // What the provider reports does not connect it
    yield* emulator.trigger({ type: "account.updated", account: accountId })
    expect(yield* read(owner)).toMatchObject({ status: "disconnected" })
    expect((yield* owner.audited).slice(2)).toEqual([`account.disconnected ${accountId} person ${owner.id}`])

    urlIn(yield* onboard(owner))
    expect(yield* read(owner)).toMatchObject({ accountId, disconnectedAt: null, linkedBy: "onboarding" })
    expect((yield* balance).status).toBe(200)
  })

  it.effect("is disconnected in the environment that is meant, whatever another tab has selected", function* () {
    const owner = yield* newOwner
    const accountId = yield* connect(owner)
    const select = (environment: string) =>
      owner.request("PUT", "/identity/session/workspace", { body: { environment } })
    const inEnvironment = (environment: string) =>
      owner.request("DELETE", `${path}?accountId=${accountId}&environment=${environment}`)
    const connectedIn = Effect.map(
      inDatabase<{ environment: string }>`
          SELECT environment FROM payments.provider_accounts
          WHERE organization_id = ${owner.organizationId} AND status = 'connected' ORDER BY environment`,
      (rows) => rows.map(({ environment }) => environment)
    )
    const refused = { status: 422, code: "validation_failed", fields: ["environment"] }
    // The provider's live mode and its test mode know an account by the same id
    yield* inDatabase`
        INSERT INTO payments.provider_accounts
          (organization_id, environment, account_id, status, had_payments_before, reported_status_reading)
        SELECT organization_id, 'production', account_id, status, had_payments_before, reported_status_reading
        FROM payments.provider_accounts WHERE organization_id = ${owner.organizationId}`
    yield* select("production")
    expectFailure(yield* disconnect(owner, accountId), refused)
    for (const environment of ["sandbox", "live", ""]) expectFailure(yield* inEnvironment(environment), refused)
    expect(yield* connectedIn).toEqual(["production", "sandbox"])

    const named = yield* owner.request("DELETE", `${path}?accountId=${accountId}`, {
      headers: { "service-workspace": "sandbox" }
    })
    expect(named.status, named.text).toBe(204)
    expect(yield* connectedIn).toEqual(["production"])
    // The repeat of a disconnection that the provider did not complete
    expectFailure(yield* disconnect(owner, accountId), refused)
    expect((yield* inEnvironment("production")).status).toBe(204)
    expect(yield* connectedIn).toEqual([])
  })

  it.effect("whose owner revoked the access is shown as disconnected, and a new one takes its place", function* () {
    const { emulator } = yield* TestService
    const owner = yield* newOwner
    const accountId = yield* connect(owner)
    yield* emulator.revokeAccount(accountId)
    expect(yield* read(owner)).toMatchObject({ status: "disconnected", accountId })
    const next = yield* connect(owner)
    expect(next).not.toBe(accountId)
    expect(yield* read(owner)).toMatchObject({ status: "connected", accountId: next })
    expect((yield* owner.audited).slice(2, 5)).toEqual([
      `account.disconnected ${accountId} provider stripe`,
      `account.unlinked ${accountId} person ${owner.id}`,
      `account.linked ${next} person ${owner.id}`
    ])
  })

  it.effect("is shown as it was reported last while the provider can't be asked", function* () {
    const { emulator } = yield* TestService
    const owner = yield* newOwner
    urlIn(yield* onboard(owner))
    const { accountId } = yield* read(owner)
    yield* emulator.addFault({ fault: "html_502", method: "GET", path: "/v1/accounts/*", times: 1_000 })
    expect(yield* read(owner).pipe(Effect.ensuring(emulator.clearFaults))).toMatchObject({
      status: "onboarding",
      accountId,
      current: false,
      requirements: { currentlyDueCount: 4 }
    })
    expect(yield* read(owner)).toMatchObject({ current: true })
  })
})
