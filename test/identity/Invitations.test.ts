import { createHash, randomUUID } from "node:crypto"
import { expect } from "@effect/vitest"
import { Context, Duration, Effect } from "effect"
import { unlinked } from "../../src/identity/organizations/OrganizationName.ts"
import { RateLimits } from "../../src/platform/kit/RateLimit.ts"
import { TestMailbox } from "../harness/Mailbox.ts"
import {
  accept,
  cookieOf,
  newEmail,
  onServiceWithMail,
  type Person,
  personOf,
  signIn,
  signInMember,
  signInOwner,
  tokenIn
} from "../harness/SignIn.ts"
import { inDatabase, TestService, testPublicUrl } from "../harness/TestService.ts"
import { expectFailure } from "../surface/http/Refusals.ts"

const path = "/identity/invitations"
const denied = { status: 403, code: "permission_denied", fields: [] }
const invalid = { status: 401, code: "session_invalid", fields: [] }

const invite = (person: Person, body: Readonly<Record<string, unknown>>) => person.request("POST", path, { body })

const invited = (person: Person, body: Readonly<Record<string, unknown>> & { readonly email: string }) =>
  Effect.gen(function* () {
    const mailbox = yield* TestMailbox
    const before = mailbox.mails.filter(({ to }) => to.includes(body.email)).length
    const answer = yield* invite(person, body)
    expect(answer.status, answer.text).toBe(201)
    const mail = yield* mailbox.mailTo(body.email, before + 1)
    return { answer, mail, token: tokenIn(mail), id: String(answer.json["id"]) }
  })

const openIds = (person: Person) =>
  Effect.map(person.request("GET", path), ({ json, status }) => {
    expect(status).toBe(200)
    return Array.from(Object(json["data"]), (item) => String(Object(item).id))
  })

onServiceWithMail()("an invitation", (it) => {
  it.effect("is mailed, accepted by its link, and makes a signed-in member", function* () {
    const service = yield* TestService
    const owner = yield* signInOwner
    const email = newEmail()
    const { answer, id, mail, token } = yield* invited(owner, {
      email,
      role: "developer",
      environments: ["production"]
    })
    expect(answer.json).toEqual({
      id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      email,
      role: "developer",
      environments: ["production"],
      createdAt: expect.any(String),
      createdBy: { kind: "person", id: owner.id },
      expiresAt: expect.any(String)
    })
    const days = Date.parse(String(answer.json["expiresAt"])) - Date.parse(String(answer.json["createdAt"]))
    expect(days / 86_400_000).toBe(7)
    expect(answer.text).not.toContain(token)
    expect(mail.headers.get("subject")).toBe("Invitation to an organization on connected-payments")
    expect(mail.text).toContain(`${unlinked(owner.email)} invites you to an organization on connected-payments`)
    expect(mail.text).toContain("which its owner chose:\n\n    Bakery\n")
    expect(mail.text).toMatch(/once, within 7 days/)
    expect(mail.text).toContain(`${testPublicUrl}/identity/invitation#`)
    expect(yield* openIds(owner)).toEqual([id])

    const accepted = yield* accept(token)
    expect(accepted.status, accepted.text).toBe(200)
    expect(accepted.json).toMatchObject({
      person: { email },
      organization: { id: owner.organizationId, name: "Bakery", role: "developer" },
      environment: "production",
      workspaces: [{ environment: "production" }]
    })
    const member = personOf(service, cookieOf(accepted), accepted)
    expect((yield* member.request("GET", "/identity/session")).status).toBe(200)
    expect(yield* openIds(owner)).toEqual([])
    expectFailure(yield* accept(token), invalid)

    const audit = yield* service.sql`
        SELECT action, author_id, target_type, target_id, environment FROM payments.audit_log
        WHERE organization_id = ${owner.organizationId} AND action LIKE 'invitation.%' ORDER BY id`
    const about = { target_type: "invitation", target_id: id, environment: null }
    expect(audit).toEqual([
      { ...about, action: "invitation.created", author_id: owner.id },
      { ...about, action: "invitation.accepted", author_id: member.id }
    ])
  })

  it.effect("is accepted once, also when its link is sent ten times at once", function* () {
    const owner = yield* signInOwner
    const { token } = yield* invited(owner, { email: newEmail(), role: "viewer", environments: ["sandbox"] })
    const answers = yield* Effect.all(
      Array.from({ length: 10 }, () => accept(token)),
      { concurrency: 10 }
    )
    expect(answers.map(({ status }) => status).toSorted()).toEqual([200, ...Array.from({ length: 9 }, () => 401)])
  })

  it.effect("is replaced by a new one of the same address, also when five are sent at once", function* () {
    const owner = yield* signInOwner
    const email = newEmail()
    const first = yield* invited(owner, { email, role: "viewer", environments: [] })
    const second = yield* invited(owner, { email, role: "admin" })
    expect(yield* openIds(owner)).toEqual([second.id])
    expectFailure(yield* accept(first.token), invalid)
    yield* (yield* TestService).passTime("1 day")
    const answers = yield* Effect.all(
      Array.from({ length: 5 }, () => invite(owner, { email, role: "viewer" })),
      { concurrency: 5 }
    )
    expect(answers.map(({ status }) => status)).toEqual(Array.from({ length: 5 }, () => 201))
    expect(yield* openIds(owner)).toHaveLength(1)
    expectFailure(yield* accept(second.token), invalid)
  })

  it.effect("is worth nothing once revoked or expired", function* () {
    const owner = yield* signInOwner
    const revoked = yield* invited(owner, { email: newEmail(), role: "admin" })
    expect((yield* owner.request("DELETE", `${path}/${revoked.id}`)).status).toBe(204)
    expectFailure(yield* accept(revoked.token), invalid)
    const missing = { status: 404, code: "resource_not_found", fields: [] }
    expectFailure(yield* owner.request("DELETE", `${path}/${revoked.id}`), missing)
    expectFailure(yield* owner.request("DELETE", `${path}/${randomUUID()}`), missing)
    const malformed = { status: 422, code: "validation_failed", fields: ["id"] }
    expectFailure(yield* owner.request("DELETE", `${path}/nonsense`), malformed)
    const expired = yield* invited(owner, { email: newEmail(), role: "admin" })
    const hash = createHash("sha256").update(expired.token).digest()
    yield* inDatabase`UPDATE payments.invitations SET expires_at = now() - interval '1 second' WHERE token_hash = ${hash}`
    expectFailure(yield* accept(expired.token), invalid)
    expect(yield* openIds(owner)).toEqual([])
    expectFailure(yield* accept("A".repeat(43)), invalid)
  })

  it.effect("leaves who has an organization there, and can be accepted after they left it", function* () {
    const owner = yield* signInOwner
    const other = yield* signInOwner
    const { id } = yield* signInMember(other.organizationId, "admin").pipe(
      Effect.tap((second) => other.request("PATCH", `/identity/members/${second.id}`, { body: { role: "owner" } }))
    )
    expect(id).not.toBe(other.id)
    const { token } = yield* invited(owner, { email: other.email, role: "viewer", environments: ["sandbox"] })
    const refused = yield* accept(token)
    expectFailure(refused, { status: 409, code: "organization_already_exists", fields: [] })
    expect(refused.headers.getSetCookie()).toEqual([])
    expect((yield* other.request("DELETE", `/identity/members/${other.id}`)).status).toBe(204)
    expect((yield* accept(token)).json["organization"]).toMatchObject({ id: owner.organizationId, role: "viewer" })
  })

  it.effect("is sent by owners and admins alone, and to admins by owners alone", function* () {
    const { organizationId, ...owner } = yield* signInOwner
    const admin = yield* signInMember(organizationId, "admin")
    const { id: adminInvitation } = yield* invited(owner, { email: newEmail(), role: "admin" })
    for (const role of ["developer", "viewer"] as const) {
      const member = yield* signInMember(organizationId, role, ["sandbox", "production"])
      expectFailure(yield* invite(member, { email: newEmail(), role: "viewer" }), denied, role)
      expectFailure(yield* member.request("GET", path), denied, role)
      expectFailure(yield* member.request("DELETE", `${path}/${adminInvitation}`), denied, role)
      yield* invited(admin, { email: newEmail(), role, environments: ["sandbox"] })
    }
    expectFailure(yield* invite(admin, { email: newEmail(), role: "admin" }), denied)
    expectFailure(yield* admin.request("DELETE", `${path}/${adminInvitation}`), denied)
    expect(yield* openIds(admin)).toHaveLength(3)
  })

  it.effect("of one organization is nothing to another, nor to who has none", function* () {
    const owner = yield* signInOwner
    const stranger = yield* signInOwner
    const { id, token } = yield* invited(owner, { email: newEmail(), role: "admin" })
    const missing = { status: 404, code: "resource_not_found", fields: [] }
    expectFailure(yield* stranger.request("DELETE", `${path}/${id}`), missing)
    expect(yield* openIds(stranger)).toEqual([])
    const nobody = yield* signIn(newEmail())
    const noOrganization = { status: 403, code: "organization_access_denied", fields: [] }
    expectFailure(yield* nobody.request("GET", path), noOrganization)
    expectFailure(yield* invite(nobody, { email: newEmail(), role: "viewer" }), noOrganization)
    expectFailure(yield* nobody.request("DELETE", `${path}/${id}`), noOrganization)
    expect((yield* accept(token)).status).toBe(200)
  })

  it.effect("refuses members, owners, workspaces for admins, and bad input", function* () {
    const owner = yield* signInOwner
    const refused = (fields: ReadonlyArray<string>) => ({ status: 422, code: "validation_failed", fields })
    expectFailure(yield* invite(owner, { email: owner.email, role: "viewer" }), refused(["email"]))
    const email = newEmail()
    const bad: ReadonlyArray<readonly [body: Readonly<Record<string, unknown>>, fields: ReadonlyArray<string>]> = [
      [{ role: "viewer" }, ["email"]],
      [{ email }, ["role"]],
      [{ email: "ana@example.com\r\nBcc: eve@example.com", role: "viewer" }, ["email"]],
      [{ email, role: "owner" }, ["role"]],
      [{ email, role: "admin", environments: ["sandbox"] }, ["environments"]],
      [{ email, role: "viewer", environments: ["sandbox", "sandbox"] }, ["environments"]],
      [{ email, role: "viewer", environments: ["staging"] }, ["environments.0"]],
      [{ email, role: "viewer", environments: "sandbox" }, ["environments"]],
      [{ email, role: "viewer", organizationId: randomUUID() }, ["organizationId"]]
    ]
    for (const [body, fields] of bad) {
      expectFailure(yield* invite(owner, body), refused(fields), JSON.stringify(body))
    }
    expect(yield* openIds(owner)).toEqual([])
  })

  it.effect("shows the organization's name without a link, also one from before names had a rule", function* () {
    const owner = yield* signInOwner
    for (const [name, shown] of [
      ["Amazon.com Inc.", "Amazon.\u2060com Inc."],
      ["Pay at http://evil.example/now", "Pay at http:\u2060/\u2060/\u2060evil.\u2060example/\u2060now"]
    ] as const) {
      yield* inDatabase`UPDATE payments.organizations SET name = ${name} WHERE id = ${owner.organizationId}`
      const { mail } = yield* invited(owner, { email: newEmail(), role: "viewer" })
      expect(mail.text).toContain(`\n    ${shown}\n`)
      expect(mail.headers.get("subject")).not.toContain(name)
    }
  })

  it.effect("names its sender in a way that no mail program turns into a link", function* () {
    const mailbox = yield* TestMailbox
    const [, host = ""] = newEmail().split("@")
    const owner = yield* signIn(`www.evil.com/account?verify${Date.now()}@${host}`)
    yield* owner.request("POST", "/identity/organizations", { body: { name: "Stripe" } })
    const email = newEmail()
    expect((yield* invite(owner, { email, role: "viewer" })).status).toBe(201)
    const { text } = yield* mailbox.mailTo(email)
    const [sentence = ""] = text.split("\n")
    expect(sentence.replaceAll("\u2060", "")).toBe(
      `${owner.email} invites you to an organization on connected-payments, with the role viewer.`
    )
    expect(sentence).toMatch(/^www.*invites you to an organization/)
    expect(sentence).not.toMatch(/[./@](?=[^\s\u2060])/)
  })

  it.effect("leaves others their own: of an organization, an inviter and a mailbox", function* () {
    const { organization, passTime, services } = yield* TestService
    yield* passTime("1 day")
    const tooMany = { status: 429, code: "rate_limit_exceeded", fields: [] }
    const email = newEmail()
    const send = (person: Person, times: number) =>
      Effect.forEach(Array.from({ length: times }), () => invite(person, { email, role: "viewer" }))
    const strangers = [yield* signInOwner, yield* signInOwner, yield* signInOwner, yield* signInOwner]
    for (const stranger of strangers) {
      expect((yield* send(stranger, 6)).map(({ status }) => status)).toEqual([201, 201, 201, 201, 201, 429])
    }
    // The shared limit of those whom nobody vouches for is used up, and one with an account has its own
    expectFailure(yield* invite(yield* signInOwner, { email, role: "viewer" }), tooMany)
    // An account of the sandbox that was connected without the operator does not count: anybody can have one
    const alone = yield* signInOwner
    const onboarding = { body: { environment: "sandbox" } }
    expect((yield* alone.request("POST", "/identity/account/onboarding", onboarding)).status).toBe(200)
    expectFailure(yield* invite(alone, { email, role: "viewer" }), tooMany)
    const connected = yield* signInMember(organization.id, "admin")
    expect((yield* invite(connected, { email, role: "viewer" })).status).toBe(201)
    const busy = yield* signInMember(organization.id, "admin")
    const limits = Context.get(services, RateLimits)
    const own = { limit: 30, per: Duration.hours(1) }
    yield* Effect.forEach(Array.from({ length: 30 }), () =>
      limits.take(`invitations-by:${organization.id}:person:${busy.id}`, own)
    )
    expectFailure(yield* invite(busy, { email: newEmail(), role: "viewer" }), tooMany)
    expect((yield* invite(connected, { email: newEmail(), role: "viewer" })).status).toBe(201)
  })

  it.effect("is limited to 50 per organization and hour", function* () {
    const owner = yield* signInOwner
    expect((yield* invite(owner, { email: newEmail(), role: "viewer" })).status).toBe(201)
    yield* inDatabase`
        UPDATE payments.rate_limits SET tokens = 0, refilled_at = now()
        WHERE bucket LIKE ${`invitations:${owner.organizationId}%`}`
    const answer = yield* invite(owner, { email: newEmail(), role: "viewer" })
    expectFailure(answer, { status: 429, code: "rate_limit_exceeded", fields: [] })
    expect(Number(answer.headers.get("retry-after"))).toBe(72)
  })

  it.effect("is limited to 200 per organization and day, and 20 to one mailbox, however it is written", function* () {
    const { passTime, sql } = yield* TestService
    const [owner, other] = [yield* signInOwner, yield* signInOwner]
    const email = newEmail()
    const noted = (n: number) => email.replace("@", `+${n}@`)
    // Five of each organization, which is as many as one may send to a mailbox
    const owners = [owner, yield* signInOwner, yield* signInOwner, yield* signInOwner]
    for (let n = 0; n < 20; n++) {
      const inviter = owners[n % owners.length] ?? owner
      expect((yield* invite(inviter, { email: noted(n), role: "viewer" })).status).toBe(201)
    }
    const refused = yield* invite(other, { email, role: "viewer" })
    expectFailure(refused, { status: 429, code: "rate_limit_exceeded", fields: [] })
    expect(refused.json["error"]).toContain("one mailbox")
    yield* passTime("1 hour")
    yield* sql`
        UPDATE payments.rate_limits SET tokens = 0, refilled_at = now()
        WHERE bucket = ${`long:invitations-of-day:${owner.organizationId}`}`
    const spent = yield* invite(owner, { email: newEmail(), role: "viewer" })
    expectFailure(spent, { status: 429, code: "rate_limit_exceeded", fields: [] })
    expect(Number(spent.headers.get("retry-after"))).toBe(432)
  })
})
