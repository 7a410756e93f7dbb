import { expect } from "@effect/vitest"
import { Context, Effect } from "effect"
import { Organizations } from "../../src/identity/organizations/Organizations.ts"
import { OrganizationId } from "../../src/platform/kit/Ids.ts"
import { TestMailbox } from "../harness/Mailbox.ts"
import {
  cookieOf,
  newEmail,
  onSharedServiceWithMail,
  type Person,
  personOf,
  signInMember,
  signInOwner,
  tokenIn
} from "../harness/SignIn.ts"
import { type Answer, TestService } from "../harness/TestService.ts"
import { authorize, comeBack, consent, disconnect, read, urlIn } from "../payments/connecting/Connecting.ts"
import { expectFailure } from "../surface/http/Refusals.ts"

type Owner = Person & { readonly organizationId: string }

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
    const { sql } = yield* TestService
    const rows = yield* sql<{ action: string }>`
      SELECT action FROM payments.audit_log
      WHERE organization_id = ${organizationId} AND target_type <> 'session' ORDER BY id`
    return rows.map(({ action }) => action)
  })

onSharedServiceWithMail("an organization", (it) => {
  it.effect("is renamed by its owner, which is recorded", () =>
    Effect.gen(function* () {
      const owner = yield* signInOwner
      const { organizationId } = owner
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
  )

  it.effect("is neither renamed nor closed by anybody else, and no other by its owner", () =>
    Effect.gen(function* () {
      const { makeKey, request } = yield* TestService
      const [owner, stranger] = [yield* signInOwner, yield* signInOwner]
      const { organizationId } = owner
      const id = OrganizationId.make(organizationId)
      const others = [yield* signInMember(id, "admin"), yield* signInMember(id, "developer", ["sandbox"])]
      for (const person of others) {
        expectFailure(yield* rename(person, organizationId, "Mine"), denied)
        expectFailure(yield* close(person, organizationId), denied)
      }
      const unknown = "00000000-0000-4000-8000-000000000000"
      for (const [person, other] of [
        [stranger, organizationId],
        [owner, stranger.organizationId],
        [owner, unknown]
      ] as const) {
        expectFailure(yield* rename(person, other, "Mine"), foreign)
        expectFailure(yield* close(person, other), foreign)
      }
      const key = yield* makeKey(id, ["*"])
      const byKey = yield* request("DELETE", pathOf(organizationId), { key })
      expectFailure(byKey, { status: 401, code: "authentication_required", fields: [] })
      const untrusted = yield* request("DELETE", pathOf(organizationId), { headers: { cookie: owner.cookie } })
      expectFailure(untrusted, { status: 403, code: "origin_not_trusted", fields: [] })
    })
  )

  it.effect("that was created by mistake is closed, and its owner accepts the invitation to another one", () =>
    Effect.gen(function* () {
      const service = yield* TestService
      const mailbox = yield* TestMailbox
      const [owner, inviter] = [yield* signInOwner, yield* signInOwner]
      const { organizationId } = owner
      const id = OrganizationId.make(organizationId)
      yield* inviter.request("POST", "/identity/invitations", { body: { email: owner.email, role: "admin" } })
      const token = tokenIn(yield* mailbox.mailTo(owner.email, 2))
      const accept = service.request("POST", "/identity/invitation", { body: { token } })
      expectFailure(yield* accept, { status: 409, code: "organization_already_exists", fields: [] })
      const left = yield* owner.request("DELETE", `/identity/members/${owner.id}`)
      expectFailure(left, denied)
      expect(left.json["error"]).toContain("close the organization")

      const key = yield* service.makeKey(id, ["*"])
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
  )

  it.effect("is closed only once it has no connected account, destination, checkout page or other member", () =>
    Effect.gen(function* () {
      const { makeKey, request, sql } = yield* TestService
      const owner = yield* signInOwner
      const { organizationId } = owner
      const id = OrganizationId.make(organizationId)
      const provider = `/v2/organizations/${organizationId}`
      yield* comeBack(yield* consent(urlIn(yield* authorize(owner)), {}), owner)
      const { accountId } = yield* read(owner)
      expectNotEmpty(yield* close(owner, organizationId), "disconnect the account in sandbox.")

      const key = yield* makeKey(id, ["*", "webhook-endpoints:*"])
      const endpoint = yield* request("POST", `${provider}/integrations/endpoints`, {
        key,
        headers: { "idempotency-key": "closing-endpoint" },
        body: { name: "Orders", url: "http://localhost:1/hook", events: ["payment.succeeded"] }
      })
      expect(endpoint.status, endpoint.text).toBe(200)
      const member = yield* signInMember(id, "owner")
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
      const returned = yield* comeBack(back, next)
      expect(returned.headers.get("location")).toMatch(/\?oauth=connected$/)
    })
  )

  it.effect("is handed over: another member becomes an owner, and the first one leaves", () =>
    Effect.gen(function* () {
      const { services } = yield* TestService
      const owner = yield* signInOwner
      const heir = yield* signInMember(OrganizationId.make(owner.organizationId), "developer", ["sandbox"])
      const appointed = yield* owner.request("PATCH", `/identity/members/${heir.id}`, { body: { role: "owner" } })
      expect(appointed.status, appointed.text).toBe(200)
      expect((yield* owner.request("DELETE", `/identity/members/${owner.id}`)).status).toBe(204)
      expect((yield* rename(heir, owner.organizationId, "Theirs")).status).toBe(200)
      expect(yield* Context.get(services, Organizations).get(OrganizationId.make(owner.organizationId))).toEqual({
        id: owner.organizationId,
        name: "Theirs"
      })
      const again = yield* owner.request("POST", "/identity/organizations", { body: { name: "Mine" } })
      expect(again.status, again.text).toBe(201)
    })
  )

  it.effect("is closed once if that is asked several times at once, and not while a member joins", () =>
    Effect.gen(function* () {
      const { sql } = yield* TestService
      const owner = yield* signInOwner
      const answers = yield* Effect.all(
        Array.from({ length: 5 }, () => close(owner, owner.organizationId)),
        { concurrency: 5 }
      )
      expect(answers.filter(({ status }) => status === 204)).toHaveLength(1)
      for (const { status } of answers) expect([204, 403]).toContain(status)
      const records = yield* recorded(owner.organizationId)
      expect(records.filter((action) => action === "organization.closed")).toHaveLength(1)
      const members = yield* sql`
        SELECT 1 FROM payments.memberships WHERE organization_id = ${owner.organizationId}`
      expect(members).toEqual([])
    })
  )
})
