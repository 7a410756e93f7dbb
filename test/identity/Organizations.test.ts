import { expect } from "@effect/vitest"
import { Effect, Either } from "effect"
import { permissions } from "../../src/identity/keys/Permissions.ts"
import { Organizations } from "../../src/identity/organizations/Organizations.ts"
import type { OrganizationId } from "../../src/platform/kit/Ids.ts"
import { TestMailbox } from "../harness/Mailbox.ts"
import {
  cookieOf,
  newEmail,
  onSharedServiceWithMail,
  type Person,
  personOf,
  signIn,
  signInMember,
  signInOwner,
  tokenIn
} from "../harness/SignIn.ts"
import { type Answer, inDatabase, serviceOf, TestService } from "../harness/TestService.ts"
import { authorize, comeBack, consent, disconnect, read, urlIn } from "../payments/connecting/Connecting.ts"
import { expectFailure, refusedWith } from "../surface/http/Refusals.ts"

type Owner = Person & { readonly organizationId: OrganizationId }

const path = "/identity/organizations"
const exists = { status: 409, code: "organization_already_exists", fields: [] }

const pathOf = (organizationId: string) => `/identity/organizations/${organizationId}`

const rename = (person: Person, organizationId: string, name: unknown) =>
  person.request("PATCH", pathOf(organizationId), { body: { name } })

const close = (person: Person, organizationId: string) => person.request("DELETE", pathOf(organizationId))

const closed = (owner: Owner) =>
  Effect.map(close(owner, owner.organizationId), ({ status, text }) => expect([status, text]).toEqual([204, ""]))

const denied = { status: 403, code: "permission_denied", fields: [] }
const foreign = { status: 403, code: "organization_access_denied", fields: [] }

const expectNotEmpty = (answer: Answer, what: string) => {
  expectFailure(answer, { status: 409, code: "organization_not_empty", fields: [] }, what)
  expect(answer.json["error"]).toContain(what)
}

/** What is on record of an organization, beside the sessions of its people. */
const recorded = (organizationId: string) =>
  Effect.gen(function* () {
    const rows = yield* inDatabase<{ action: string }>`
      SELECT action FROM payments.audit_log
      WHERE organization_id = ${organizationId} AND target_type <> 'session' ORDER BY id`
    return rows.map(({ action }) => action)
  })

onSharedServiceWithMail("an organization", (it) => {
  it.effect("is made by a signed-in person, who owns it, with both of its workspaces", function* () {
    const person = yield* signIn(newEmail())
    const answer = yield* person.request("POST", path, { body: { name: "  Padaria São João " } })
    expect(answer.status).toBe(201)
    expect(answer.json).toEqual({
      id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      name: "Padaria São João",
      workspaces: [{ environment: "sandbox" }, { environment: "production" }]
    })
    const id = String(answer.json["id"])
    const workspaces = yield* inDatabase`
        SELECT environment FROM payments.workspaces WHERE organization_id = ${id} ORDER BY environment DESC`
    expect(workspaces).toEqual([{ environment: "sandbox" }, { environment: "production" }])
    expect((yield* person.request("GET", "/identity/session")).json).toMatchObject({
      organization: { id, name: "Padaria São João", role: "owner" },
      environment: "sandbox",
      workspaces: [
        { environment: "sandbox", permissions: expect.arrayContaining([...permissions]) },
        { environment: "production", permissions: expect.arrayContaining([...permissions]) }
      ]
    })
    const audit = yield* inDatabase`
        SELECT environment, author_kind, author_id, action, target_type, target_id, request_id
        FROM payments.audit_log WHERE organization_id = ${id}`
    expect(audit).toEqual([
      {
        environment: null,
        author_kind: "person",
        author_id: person.id,
        action: "organization.created",
        target_type: "organization",
        target_id: id,
        request_id: answer.headers.get("request-id")
      }
    ])
  })

  it.effect("is one of a person's: a second creation is 409 and makes nothing, also ten at once", function* () {
    const count = inDatabase<{ count: number }>`SELECT count(*)::int AS count FROM payments.organizations`
    const person = yield* signIn(newEmail())
    const [before] = yield* count
    const answers = yield* Effect.all(
      Array.from({ length: 10 }, (_, n) => person.request("POST", path, { body: { name: `Shop ${n}` } })),
      { concurrency: 10 }
    )
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(1)
    for (const answer of answers.filter(({ status }) => status !== 201)) {
      expectFailure(answer, exists)
    }
    expectFailure(yield* person.request("POST", path, { body: { name: "Again" } }), exists)
    expect(yield* count).toEqual([{ count: (before?.count ?? 0) + 1 }])
  })

  it.effect("is not made by nobody, by a key, without a trusted origin, or without a good name", function* () {
    const { organization, request } = yield* TestService
    const body = { name: "Shop" }
    const required = { status: 401, code: "authentication_required", fields: [] }
    expectFailure(yield* request("POST", path, { body }), required)
    expectFailure(yield* request("POST", path, { body, key: organization.testKey }), required)
    const person = yield* signIn(newEmail())
    const { cookie } = person
    const untrusted = { status: 403, code: "origin_not_trusted", fields: [] }
    expectFailure(yield* request("POST", path, { body, headers: { cookie } }), untrusted)
    expectFailure(yield* person.request("POST", path, { body, headers: { origin: "https://evil.example" } }), untrusted)
    for (const name of ["", "  ", "a".repeat(201), "a\r\nBcc: eve@example.com", "a\u0000", 7, null]) {
      const answer = yield* person.request("POST", path, { body: { name } })
      expectFailure(answer, { status: 422, code: "validation_failed", fields: ["name"] }, JSON.stringify(name))
    }
    expectFailure(
      yield* person.request("POST", path, { body: { ...body, id: "x", owner: "y" } }),
      refusedWith(422, "validation_failed", ["id", "owner"])
    )
    expect((yield* person.request("POST", path, { body: { name: "a".repeat(200) } })).status).toBe(201)
  })

  it.effect("can be made by the operator, who is then on record", function* () {
    const organizations = yield* serviceOf(Organizations)
    const ownerEmail = newEmail()
    const author = { kind: "operator", id: "root" } as const
    const { id, name } = yield* organizations.create({ name: "Made", ownerEmail: ownerEmail.toUpperCase(), author })
    expect(yield* organizations.get(id)).toEqual({ id, name })
    expect(yield* organizations.list).toContainEqual({ id, name })
    const [record] = yield* inDatabase`
        SELECT author_kind, author_id FROM payments.audit_log WHERE organization_id = ${id}`
    expect(record).toEqual({ author_kind: "operator", author_id: "root" })
    const again = yield* Effect.either(organizations.create({ name: "Second", ownerEmail, author }))
    expect(Either.isLeft(again) ? again.left._tag : "").toBe("OrganizationAlreadyExists")
    const session = yield* (yield* signIn(ownerEmail)).request("GET", "/identity/session")
    expect(session.json["organization"]).toEqual({ id, name, role: "owner" })
  })

  it.effect("is renamed by its owner, which is recorded", function* () {
    const { organizationId, ...owner } = yield* signInOwner
    const renamed = yield* rename(owner, organizationId, "  Padaria  ")
    expect([renamed.status, renamed.json]).toEqual([200, { id: organizationId, name: "Padaria" }])
    expect((yield* rename(owner, organizationId.toUpperCase(), "Padaria")).status).toBe(200)
    const session = yield* owner.request("GET", "/identity/session")
    expect(session.json).toMatchObject({ organization: { id: organizationId, name: "Padaria", role: "owner" } })
    expect(yield* recorded(organizationId)).toEqual(["organization.created", "organization.updated"])
    for (const name of ["", "a".repeat(201), "www.evil.example", "a\u0000", null]) {
      const answer = yield* rename(owner, organizationId, name)
      expectFailure(answer, { status: 422, code: "validation_failed", fields: ["name"] }, String(name))
    }
  })

  it.effect("is neither renamed nor closed by anybody else, and no other by its owner", function* () {
    const { makeKey, request } = yield* TestService
    const [owner, stranger] = [yield* signInOwner, yield* signInOwner]
    const { organizationId } = owner
    const others = [
      yield* signInMember(organizationId, "admin"),
      yield* signInMember(organizationId, "developer", ["sandbox"])
    ]
    for (const person of others) {
      expectFailure(yield* rename(person, organizationId, "Mine"), denied)
      expectFailure(yield* close(person, organizationId), denied)
    }
    for (const [person, other] of [
      [stranger, organizationId],
      [owner, stranger.organizationId],
      [owner, "00000000-0000-4000-8000-000000000000"]
    ] as const) {
      expectFailure(yield* rename(person, other, "Mine"), foreign)
      expectFailure(yield* close(person, other), foreign)
    }
    const key = yield* makeKey(organizationId, ["*"])
    const byKey = yield* request("DELETE", pathOf(organizationId), { key })
    expectFailure(byKey, { status: 401, code: "authentication_required", fields: [] })
    const untrusted = yield* request("DELETE", pathOf(organizationId), { headers: { cookie: owner.cookie } })
    expectFailure(untrusted, { status: 403, code: "origin_not_trusted", fields: [] })
  })

  it.effect("that was created by mistake is closed, and its owner accepts the invitation to another one", function* () {
    const service = yield* TestService
    const mailbox = yield* TestMailbox
    const [owner, inviter] = [yield* signInOwner, yield* signInOwner]
    const { organizationId } = owner
    yield* inviter.request("POST", "/identity/invitations", { body: { email: owner.email, role: "admin" } })
    const token = tokenIn(yield* mailbox.mailTo(owner.email, 2))
    const accept = service.request("POST", "/identity/invitation", { body: { token } })
    expectFailure(yield* accept, { status: 409, code: "organization_already_exists", fields: [] })
    const left = yield* owner.request("DELETE", `/identity/members/${owner.id}`)
    expectFailure(left, denied)
    expect(left.json["error"]).toContain("close the organization")

    const key = yield* service.makeKey(organizationId, ["*"])
    const endpoints = `/v2/organizations/${organizationId}/integrations/endpoints`
    yield* owner.request("POST", "/identity/invitations", { body: { email: newEmail(), role: "viewer" } })
    yield* closed(owner)
    expect((yield* owner.request("GET", "/identity/session")).json).toMatchObject({ organization: null })
    expectFailure(yield* service.request("GET", endpoints, { key }), { status: 401, code: "api_key_invalid" })
    expectFailure(yield* owner.request("GET", endpoints), foreign)
    expectFailure(yield* close(owner, organizationId), foreign)
    const records = yield* recorded(organizationId)
    expect(records.slice(-3).toSorted()).toEqual(["api_key.revoked", "invitation.revoked", "organization.closed"])

    const accepted = yield* accept
    expect(accepted.status, accepted.text).toBe(200)
    const member = personOf(service, cookieOf(accepted), accepted)
    expect((yield* member.request("GET", "/identity/session")).json).toMatchObject({
      organization: { id: inviter.organizationId, role: "admin" }
    })
  })

  it.effect("is closed only without a connected account, destination, checkout page or other member", function* () {
    const { makeKey, request, sql } = yield* TestService
    const owner = yield* signInOwner
    const { organizationId } = owner
    const provider = `/v2/organizations/${organizationId}`
    yield* comeBack(yield* consent(urlIn(yield* authorize(owner)), {}), owner)
    const { accountId } = yield* read(owner)
    expectNotEmpty(yield* close(owner, organizationId), "disconnect the account in sandbox.")

    const key = yield* makeKey(organizationId, ["*", "webhook-endpoints:*"])
    const endpoint = yield* request("POST", `${provider}/integrations/endpoints`, {
      key,
      headers: { "idempotency-key": "closing-endpoint" },
      body: { name: "Orders", url: "http://localhost:1/hook", events: ["payment.succeeded"] }
    })
    expect(endpoint.status, endpoint.text).toBe(200)
    const member = yield* signInMember(organizationId, "owner")
    yield* sql`
        INSERT INTO payments.provider_accounts (organization_id, environment, account_id, status, had_payments_before)
        VALUES (${organizationId}, 'production', ${`acct_live_${organizationId}`}, 'connected', false)`
    yield* sql`
        INSERT INTO payments.checkout_pages
          (organization_id, environment, id, slug, active, title, items, collect, allow_promotion_codes)
        VALUES (${organizationId}, 'sandbox', ${organizationId}, ${organizationId}, false, 'Bread', '[]', '{}', false)`
    expectNotEmpty(
      yield* close(owner, organizationId),
      "disconnect the account in sandbox; disconnect the account in production; delete its destinations; delete its checkout pages; remove its other members."
    )
    yield* sql`
        DELETE FROM payments.provider_accounts WHERE organization_id = ${organizationId} AND environment = 'production'`
    expect(
      (yield* request("DELETE", `${provider}/integrations/endpoints/${endpoint.json["id"]}`, { key })).status
    ).toBe(204)
    yield* sql`UPDATE payments.checkout_pages SET deleted_at = now() WHERE organization_id = ${organizationId}`
    expectNotEmpty(yield* close(owner, organizationId), "sandbox; remove its other members.")
    expect((yield* owner.request("DELETE", `/identity/members/${member.id}`)).status).toBe(204)
    expect((yield* disconnect(owner, accountId)).status).toBe(204)
    yield* closed(owner)
    // What was disconnected can be connected by another organization
    const next = yield* signInOwner
    const back = yield* consent(urlIn(yield* authorize(next)), { account: String(accountId) })
    expect((yield* comeBack(back, next)).headers.get("location")).toMatch(/\?oauth=connected$/)
  })

  it.effect("is handed over: another member becomes an owner, and the first one leaves", function* () {
    const owner = yield* signInOwner
    const heir = yield* signInMember(owner.organizationId, "developer", ["sandbox"])
    const appointed = yield* owner.request("PATCH", `/identity/members/${heir.id}`, { body: { role: "owner" } })
    expect(appointed.status, appointed.text).toBe(200)
    expect((yield* owner.request("DELETE", `/identity/members/${owner.id}`)).status).toBe(204)
    expect((yield* rename(heir, owner.organizationId, "Theirs")).status).toBe(200)
    expect(yield* (yield* serviceOf(Organizations)).get(owner.organizationId)).toEqual({
      id: owner.organizationId,
      name: "Theirs"
    })
    const again = yield* owner.request("POST", "/identity/organizations", { body: { name: "Mine" } })
    expect(again.status, again.text).toBe(201)
  })

  it.effect("is closed once if that is asked several times at once, and not while a member joins", function* () {
    const owner = yield* signInOwner
    const answers = yield* Effect.all(
      Array.from({ length: 5 }, () => close(owner, owner.organizationId)),
      { concurrency: 5 }
    )
    expect(answers.filter(({ status }) => status === 204)).toHaveLength(1)
    for (const { status } of answers) expect([204, 403]).toContain(status)
    const records = yield* recorded(owner.organizationId)
    expect(records.filter((action) => action === "organization.closed")).toHaveLength(1)
    const members = yield* inDatabase`
      SELECT 1 FROM payments.memberships WHERE organization_id = ${owner.organizationId}`
    expect(members).toEqual([])
  })
})
