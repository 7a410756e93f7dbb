import { expect } from "@effect/vitest"
import { Effect } from "effect"
import { onServiceWithoutConsole, signIn, signInMember } from "../../harness/SignIn.ts"
import { inDatabase, TestService } from "../../harness/TestService.ts"
import { expectFailure } from "../../surface/http/Refusals.ts"
import {
  authorize,
  comeBack,
  complete,
  consent,
  disconnect,
  hasAccess,
  newOwner,
  onboard,
  open,
  path,
  press,
  read,
  sandbox,
  target,
  titleOf,
  urlIn
} from "./Connecting.ts"

const ended = {
  connected: "The account is connected",
  denied: "Nothing was connected",
  expired: "This can&#39;t be finished here",
  taken: "The account can&#39;t be connected",
  unusable: "The account was not connected",
  unfinished: "This could not be finished",
  signedOut: "You are signed out"
}

onServiceWithoutConsole("an existing account", (it) => {
  it.effect("is linked when its owner consents, and then serves like any other", function* () {
    const { emulator, makeKey, request } = yield* TestService
    const owner = yield* newOwner
    const started = yield* authorize(owner)
    const url = urlIn(started)
    expect(url.origin).toBe(emulator.url)
    expect(Object.fromEntries(url.searchParams)).toEqual({
      response_type: "code",
      client_id: emulator.oauthClientId,
      scope: "read_write",
      redirect_uri: "https://payments.example/identity/account/oauth/return",
      state: expect.stringMatching(/^[A-Za-z0-9_-]{43}$/)
    })
    const minutes = (Date.parse(String(started.json["expiresAt"])) - Date.now()) / 60_000
    expect(minutes).toBeGreaterThan(5)
    expect(minutes).toBeLessThanOrEqual(10.1)
    expect((yield* open(url)).text).toContain("Emulated platform")

    const page = yield* comeBack(yield* consent(url, {}), owner)
    expect([page.status, titleOf(page)]).toEqual([200, ended.connected])
    const connected = yield* read(owner)
    expect(connected).toMatchObject({
      status: "connected",
      chargesEnabled: true,
      linkedBy: "oauth",
      disconnecting: { endsProviderAccess: true }
    })
    expect(yield* owner.audited).toEqual([`account.linked ${connected["accountId"]} person ${owner.id}`])
    const key = yield* makeKey(owner.organizationId, ["*"])
    const balance = yield* request("GET", `/v2/organizations/${owner.organizationId}/provider/balance`, { key })
    expect(balance.status).toBe(200)

    expectFailure(yield* onboard(owner), { status: 409, code: "account_onboarding_unavailable", fields: [] })
    expectFailure(yield* authorize(owner), { status: 409, code: "account_taken", fields: [] })
  })

  it.effect("is linked by the session that began alone, once, and in time", function* () {
    const owner = yield* newOwner
    const back = yield* consent(urlIn(yield* authorize(owner)), {})
    const stranger = yield* newOwner
    for (const person of [stranger, yield* signIn(owner.email)]) {
      const page = yield* comeBack(back, person)
      expect([page.status, titleOf(page)]).toEqual([403, ended.expired])
    }
    const signedOut = yield* comeBack(back)
    expect([signedOut.status, titleOf(signedOut)]).toEqual([401, ended.signedOut])
    expect(yield* read(stranger)).toMatchObject({ status: "not_connected" })
    const tossed = yield* comeBack(back, { ...owner, cookie: `${stranger.cookie}; ${owner.cookie}` })
    expect([tossed.status, titleOf(tossed)]).toEqual([401, ended.signedOut])
    // None of them has used it up
    const page = yield* comeBack(back, owner)
    expect([page.status, titleOf(page)]).toEqual([200, ended.connected])
    const { accountId } = yield* read(owner)
    const repeated = yield* comeBack(back, owner)
    expect([repeated.status, titleOf(repeated)]).toEqual([403, ended.expired])
    expect(repeated.text).not.toContain("Nothing was connected")
    expect(yield* read(owner)).toMatchObject({ status: "connected", accountId })

    const late = yield* newOwner
    const tooLate = yield* consent(urlIn(yield* authorize(late)), {})
    yield* inDatabase`
        UPDATE payments.account_authorizations SET created_at = created_at - interval '10 minutes'
        WHERE organization_id = ${late.organizationId}`
    expect(titleOf(yield* comeBack(tooLate, late))).toBe(ended.expired)
    expect(yield* read(late)).toMatchObject({ status: "not_connected" })

    const twice = yield* newOwner
    const first = yield* consent(urlIn(yield* authorize(twice)), {})
    const second = yield* consent(urlIn(yield* authorize(twice)), {})
    expect(titleOf(yield* comeBack(first, twice))).toBe(ended.expired)
    expect(titleOf(yield* comeBack(second, twice))).toBe(ended.connected)
    const states = yield* inDatabase<{ row: string }>`SELECT a::text AS row FROM payments.account_authorizations a`
    expect(states.filter(({ row }) => row.includes(String(first.searchParams.get("state"))))).toEqual([])
  })

  it.effect("is linked in the environment that it was begun for, whichever is selected meanwhile", function* () {
    const owner = yield* newOwner
    const back = yield* consent(urlIn(yield* authorize(owner)), {})
    const select = (environment: string) =>
      owner.request("PUT", "/identity/session/workspace", { body: { environment } })
    yield* select("production")
    expect(titleOf(yield* comeBack(back, owner))).toBe(ended.connected)
    expect(yield* read(owner)).toMatchObject({ environment: "production", status: "not_connected" })
    yield* select("sandbox")
    expect(yield* read(owner)).toMatchObject({ status: "connected" })
  })

  it.effect("is not linked if its owner declines, has another organization, or grants too little", function* () {
    const { organization } = yield* TestService
    const owner = yield* newOwner
    const declined = yield* consent(urlIn(yield* authorize(owner)), { action: "decline" })
    expect(declined.searchParams.get("error")).toBe("access_denied")
    expect(titleOf(yield* comeBack(declined, owner))).toBe(ended.denied)

    const taken = yield* consent(urlIn(yield* authorize(owner)), { account: organization.accountId })
    const refused = yield* comeBack(taken, owner)
    expect([refused.status, titleOf(refused)]).toEqual([409, ended.taken])

    const reading = urlIn(yield* authorize(owner))
    reading.searchParams.set("scope", "read_only")
    const tooLittle = yield* comeBack(yield* consent(reading, {}), owner)
    expect([tooLittle.status, titleOf(tooLittle)]).toEqual([403, ended.unusable])
    expect(yield* read(owner)).toMatchObject({ status: "not_connected", accountId: null })
    expect(yield* owner.audited).toEqual([])
    // The other organization's account is as it was
    expect(yield* hasAccess(organization.accountId)).toBe(true)
  })

  it.effect("that is refused loses the access granted for nothing, never one that serves somebody", function* () {
    const { emulator, organization } = yield* TestService
    const owner = yield* newOwner
    const readOnly = Effect.gen(function* () {
      const url = urlIn(yield* authorize(owner))
      url.searchParams.set("scope", "read_only")
      return url
    })
    const mine = yield* emulator.ensureAccount()
    const tooLittle = yield* consent(yield* readOnly, { account: mine })
    expect(titleOf(yield* comeBack(tooLittle, owner))).toBe(ended.unusable)
    expect(yield* hasAccess(mine)).toBe(false)
    // The other organization's owner, or an impostor, grants too little of an account that is linked here
    const others = yield* consent(yield* readOnly, { account: organization.accountId })
    expect(titleOf(yield* comeBack(others, owner))).toBe(ended.unusable)
    expect(yield* hasAccess(organization.accountId)).toBe(true)

    // Another account is connected while the owner is at the provider
    const admin = yield* signInMember(owner.organizationId, "admin")
    const [spare, linked] = [yield* emulator.ensureAccount(), yield* emulator.ensureAccount()]
    const started = [
      yield* consent(urlIn(yield* authorize(owner)), { account: spare }),
      yield* consent(urlIn(yield* authorize(admin)), { account: linked })
    ] as const
    const late = yield* signInMember(owner.organizationId, "admin")
    const foreign = yield* consent(urlIn(yield* authorize(late)), { account: organization.accountId })
    expect(titleOf(yield* comeBack(started[1], admin))).toBe(ended.connected)
    expect(titleOf(yield* comeBack(started[0], owner))).toBe(ended.taken)
    expect(titleOf(yield* comeBack(foreign, late))).toBe(ended.taken)
    expect(yield* Effect.forEach([spare, linked, organization.accountId], hasAccess)).toEqual([false, true, true])
    expect(yield* read(owner)).toMatchObject({ status: "connected", accountId: linked })
  })

  it.effect("is refused all the same if the provider does not end that access", function* () {
    const { emulator } = yield* TestService
    const owner = yield* newOwner
    const account = yield* emulator.ensureAccount()
    for (const fault of ["html_502", "timeout"] as const) {
      const url = urlIn(yield* authorize(owner))
      url.searchParams.set("scope", "read_only")
      const back = yield* consent(url, { account })
      yield* emulator.addFault({ fault, path: "/oauth/deauthorize", times: 1_000 })
      const page = yield* comeBack(back, owner).pipe(Effect.ensuring(emulator.clearFaults))
      expect([page.status, titleOf(page)], fault).toEqual([403, ended.unusable])
    }
  })

  it.effect("is not linked by a person who may not any more, or by anything made up", function* () {
    const owner = yield* newOwner
    const admin = yield* signInMember(owner.organizationId, "admin")
    const back = yield* consent(urlIn(yield* authorize(admin)), {})
    const demoted = yield* owner.request("PATCH", `/identity/members/${admin.id}`, { body: { role: "viewer" } })
    expect(demoted.status, demoted.text).toBe(200)
    const page = yield* comeBack(back, admin)
    expect([page.status, titleOf(page)]).toEqual([403, ended.unusable])

    const fresh = Effect.flatMap(authorize(owner), (answer) => consent(urlIn(answer), {}))
    const changes: ReadonlyArray<readonly [title: string, change: (query: URLSearchParams) => void]> = [
      [ended.expired, (query) => query.delete("state")],
      [ended.expired, (query) => query.set("state", "")],
      [ended.expired, (query) => query.set("state", "A".repeat(43))],
      [ended.expired, (query) => query.set("state", "é".repeat(500))],
      [ended.unusable, (query) => query.delete("code")],
      [ended.unusable, (query) => query.set("code", "ac_made_up")],
      [ended.unusable, (query) => query.set("code", "x".repeat(5000))],
      [ended.unusable, (query) => query.set("error", "<script>alert(1)</script>")]
    ]
    for (const [title, change] of changes) {
      const altered = yield* fresh
      change(altered.searchParams)
      const answer = yield* comeBack(altered, owner)
      expect(titleOf(answer), altered.search).toBe(title)
      expect(answer.status, altered.search).toBe(title === ended.expired ? 403 : 400)
      expect(answer.text).not.toContain("<script")
    }
    expect(yield* read(owner)).toMatchObject({ status: "not_connected" })
  })

  it.effect("can be connected only where the platform is set up for it, by owners and admins", function* () {
    const owner = yield* newOwner
    const developer = yield* signInMember(owner.organizationId, "developer", ["sandbox"])
    expectFailure(yield* authorize(developer), { status: 403, code: "permission_denied", fields: [] })
    yield* owner.request("PUT", "/identity/session/workspace", { body: { environment: "production" } })
    const live = yield* owner.request("POST", `${path}/oauth`, { body: { environment: "production" } })
    expectFailure(live, { status: 409, code: "account_oauth_unavailable", fields: [] })
    const other = yield* owner.request("POST", `${path}/oauth`, { body: sandbox })
    expectFailure(other, { status: 422, code: "validation_failed", fields: ["environment"] })
  })

  it.effect("loses the platform's access when disconnected, at a repeat if the provider fails", function* () {
    const { emulator } = yield* TestService
    const owner = yield* newOwner
    yield* comeBack(yield* consent(urlIn(yield* authorize(owner)), {}), owner)
    const accountId = String((yield* read(owner))["accountId"])
    expect(yield* hasAccess(accountId)).toBe(true)
    yield* emulator.addFault({ fault: "html_502", path: "/oauth/deauthorize", times: 1_000 })
    const half = yield* disconnect(owner, accountId).pipe(Effect.ensuring(emulator.clearFaults))
    expectFailure(half, { status: 502, code: "provider_unavailable" })
    expect(yield* read(owner)).toMatchObject({ status: "disconnected", accountId })
    expect(yield* hasAccess(accountId)).toBe(true)
    for (let n = 0; n < 2; n++) expect((yield* disconnect(owner, accountId)).status).toBe(204)
    expect(yield* hasAccess(accountId)).toBe(false)
    expect((yield* owner.audited).slice(1)).toEqual([`account.disconnected ${accountId} person ${owner.id}`])

    // Its owner may consent again
    const back = yield* consent(urlIn(yield* authorize(owner)), { account: accountId })
    expect(titleOf(yield* comeBack(back, owner))).toBe(ended.connected)
    expect(yield* read(owner)).toMatchObject({ status: "connected", accountId })
    // Ended at the provider meanwhile
    yield* emulator.revokeAccount(accountId)
    expect((yield* disconnect(owner, accountId)).status).toBe(204)
    expect(yield* read(owner)).toMatchObject({ status: "disconnected" })
  })

  it.effect("loses that access at the latest when another one takes its place", function* () {
    const { emulator } = yield* TestService
    for (const begin of [onboard, authorize]) {
      const owner = yield* newOwner
      yield* comeBack(yield* consent(urlIn(yield* authorize(owner)), {}), owner)
      const accountId = String((yield* read(owner))["accountId"])
      yield* emulator.addFault({ fault: "html_502", path: "/oauth/deauthorize", times: 1_000 })
      yield* disconnect(owner, accountId)
      const refused = yield* begin(owner).pipe(Effect.ensuring(emulator.clearFaults))
      expectFailure(refused, { status: 502, code: "provider_unavailable" })
      expect(yield* hasAccess(accountId)).toBe(true)
      urlIn(yield* begin(owner))
      expect(yield* hasAccess(accountId)).toBe(false)
    }
  })

  it.effect("keeps the platform's access when it is disconnected, for as long as others need it", function* () {
    const { sql } = yield* TestService
    const other = yield* newOwner
    const link = (organizationId: string, accountId: string) => sql`
        INSERT INTO payments.provider_accounts
          (organization_id, environment, account_id, status, had_payments_before, linked_by)
        VALUES (${organizationId}, 'production', ${accountId}, 'connected', false, 'operator')`
    const connected = Effect.gen(function* () {
      const owner = yield* newOwner
      yield* comeBack(yield* consent(urlIn(yield* authorize(owner)), {}), owner)
      const { accountId, disconnecting } = yield* read(owner)
      expect(disconnecting).toMatchObject({ endsProviderAccess: true })
      return { owner, accountId: String(accountId) }
    })
    const disconnectIn = (person: typeof other, environment: string, accountId: string) =>
      Effect.map(
        person.request("DELETE", `${path}?accountId=${accountId}&environment=${environment}`, {
          headers: { "service-workspace": environment }
        }),
        ({ status, text }) => expect(status, text).toBe(204)
      )

    // Another organization's production: as the account's owner wishes, who has access to both
    const first = yield* connected
    yield* link(other.organizationId, first.accountId)
    expect(yield* read(first.owner)).toMatchObject({ disconnecting: { endsProviderAccess: false } })
    yield* disconnectIn(first.owner, "sandbox", first.accountId)
    expect(yield* read(first.owner)).toMatchObject({ status: "disconnected" })
    expect(yield* hasAccess(first.accountId)).toBe(true)
    yield* sql`DELETE FROM payments.provider_accounts WHERE organization_id = ${other.organizationId}`
    yield* disconnectIn(first.owner, "sandbox", first.accountId)
    expect(yield* hasAccess(first.accountId)).toBe(false)

    // The organization's own production
    const second = yield* connected
    yield* link(second.owner.organizationId, second.accountId)
    yield* disconnectIn(second.owner, "sandbox", second.accountId)
    expect(yield* hasAccess(second.accountId)).toBe(true)
    yield* disconnectIn(second.owner, "production", second.accountId)
    expect(yield* hasAccess(second.accountId)).toBe(false)
  })

  it.effect("that was disconnected is not taken over by onboarding: that creates a new account", function* () {
    const owner = yield* newOwner
    yield* comeBack(yield* consent(urlIn(yield* authorize(owner)), {}), owner)
    const { accountId } = yield* read(owner)
    yield* disconnect(owner, accountId)
    yield* complete(urlIn(yield* onboard(owner)), "finish")
    const next = yield* read(owner)
    expect(next).toMatchObject({ status: "connected", linkedBy: "onboarding" })
    expect(next["accountId"]).not.toBe(accountId)
  })

  it.effect("is not linked if the answer to its code is lost, and the code is not tried again", function* () {
    const { emulator } = yield* TestService
    const owner = yield* newOwner
    const back = yield* consent(urlIn(yield* authorize(owner)), {})
    yield* emulator.addFault({ fault: "lost_answer", method: "POST", path: "/oauth/token" })
    const page = yield* comeBack(back, owner).pipe(Effect.ensuring(emulator.clearFaults))
    expect([page.status, titleOf(page)]).toEqual([502, ended.unfinished])
    expect(yield* read(owner)).toMatchObject({ status: "not_connected" })
    const next = yield* comeBack(yield* consent(urlIn(yield* authorize(owner)), {}), owner)
    expect(titleOf(next)).toBe(ended.connected)
  })
})

onServiceWithoutConsole("the consent page of the emulator", (it) => {
  it.effect("refuses other platforms and made-up accounts", function* () {
    const url = urlIn(yield* authorize(yield* newOwner))
    const other = new URL(url)
    other.searchParams.set("client_id", "ca_other")
    expect((yield* open(other)).status).toBe(400)
    expect((yield* press(url, { action: "connect", account: "acct_nobody" })).status).toBe(422)
    expect(target(yield* press(url, { action: "decline", account: "new" })).searchParams.get("error")).toBe(
      "access_denied"
    )
  })
})
