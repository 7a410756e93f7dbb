import { expect } from "@effect/vitest"
import { Context, Effect } from "effect"
import { Members } from "../../src/identity/members/Members.ts"
import { TestMailbox } from "../harness/Mailbox.ts"
import {
  accept,
  newEmail,
  onSharedServiceWithMail,
  type Person,
  signInMember,
  signInOwner,
  tokenIn
} from "../harness/SignIn.ts"
import { type Answer, inDatabase, TestService } from "../harness/TestService.ts"
import { expectFailure } from "../surface/http/Refusals.ts"

/** What members give to others and to programs, keys and invitations, ends with their right to give it. */

const invalid = { status: 401, code: "session_invalid", fields: [] }
const denied = { status: 403, code: "permission_denied", fields: [] }

interface Listed {
  readonly id: string
  readonly createdBy: unknown
}

const listed = (answer: Answer): ReadonlyArray<Listed> => {
  expect(answer.status, answer.text).toBe(200)
  // The fields under test are compared as they are
  return (JSON.parse(answer.text) as { readonly data: ReadonlyArray<Listed> }).data
}

const makeKey = (
  person: Person,
  mode: "test" | "live" = "test",
  permissions: ReadonlyArray<string> = ["webhook-endpoints:read"]
) =>
  Effect.map(
    person.request("POST", "/identity/api-keys", { body: { name: "Backend", mode, permissions } }),
    (answer) => {
      expect(answer.status, answer.text).toBe(201)
      return { id: String(answer.json["id"]), key: String(answer.json["key"]), json: answer.json }
    }
  )

const invite = (person: Person, role: string) =>
  Effect.gen(function* () {
    const email = newEmail()
    const answer = yield* person.request("POST", "/identity/invitations", { body: { email, role } })
    expect(answer.status, answer.text).toBe(201)
    const mail = yield* (yield* TestMailbox).mailTo(email)
    return { id: String(answer.json["id"]), token: tokenIn(mail), json: answer.json }
  })

const company = Effect.gen(function* () {
  const { organizationId, ...owner } = yield* signInOwner
  return { owner, organizationId, admin: yield* signInMember(organizationId, "admin") }
})

const work = (organizationId: string, keys: ReadonlyArray<{ readonly key: string }>) =>
  Effect.flatMap(TestService, ({ request }) =>
    Effect.forEach(keys, ({ key }) =>
      Effect.map(
        request("GET", `/v2/organizations/${organizationId}/integrations/endpoints`, { key }),
        ({ status }) => status !== 401
      )
    )
  )

const audited = (organizationId: string, action: string) =>
  inDatabase<{ id: string; author: string; environment: string | null }>`
    SELECT target_id AS id, author_id AS author, environment FROM payments.audit_log
    WHERE organization_id = ${organizationId} AND action = ${action} ORDER BY audit_log.id`

onSharedServiceWithMail("what a member gave", (it) => {
  it.effect("says who created it; what is older than the record of it names nobody", function* () {
    const { sql } = yield* TestService
    const { admin, organizationId, owner } = yield* company
    const key = yield* makeKey(admin)
    const invitation = yield* invite(admin, "viewer")
    const createdBy = { kind: "person", id: admin.id }
    expect([key.json["createdBy"], invitation.json["createdBy"]]).toEqual([createdBy, createdBy])
    const lists = Effect.all([
      Effect.map(owner.request("GET", "/identity/api-keys"), listed),
      Effect.map(owner.request("GET", "/identity/invitations"), listed)
    ])
    const creators = Effect.map(lists, (both) => both.flat().map((item) => item.createdBy))
    expect(yield* creators).toEqual([createdBy, createdBy])
    for (const table of ["api_keys", "invitations"]) {
      yield* sql`
          UPDATE payments.${sql.literal(table)} SET created_by_kind = NULL, created_by_id = NULL
          WHERE organization_id = ${organizationId}`
    }
    expect(yield* creators).toEqual([null, null])
    expect((yield* owner.request("DELETE", `/identity/members/${admin.id}`)).status).toBe(204)
    expect(yield* work(organizationId, [key])).toEqual([true])
    expect((yield* accept(invitation.token)).status).toBe(200)
  })

  it.effect("ends with their removal, in both environments, each with a record; others' stays", function* () {
    const { admin, organizationId, owner } = yield* company
    const own = [yield* makeKey(owner), yield* makeKey(owner, "live")]
    const theirs = [yield* makeKey(admin), yield* makeKey(admin, "live")]
    const kept = yield* invite(owner, "viewer")
    const lost = [yield* invite(admin, "developer"), yield* invite(admin, "viewer")]
    expect((yield* owner.request("DELETE", `/identity/members/${admin.id}`)).status).toBe(204)
    expect(yield* work(organizationId, [...own, ...theirs])).toEqual([true, true, false, false])
    for (const { token } of lost) expectFailure(yield* accept(token), invalid)
    expect(listed(yield* owner.request("GET", "/identity/invitations")).map(({ id }) => id)).toEqual([kept.id])
    expect((yield* accept(kept.token)).status).toBe(200)
    const author = owner.id
    expect(yield* audited(organizationId, "api_key.revoked")).toEqual([
      { id: theirs[0]?.id, author, environment: "sandbox" },
      { id: theirs[1]?.id, author, environment: "production" }
    ])
    expect(yield* audited(organizationId, "invitation.revoked")).toEqual(
      lost.map(({ id }) => ({ id, author, environment: null }))
    )
  })

  it.effect("is kept of keys where who removes them says so, and never where they go themselves", function* () {
    const { admin, organizationId, owner } = yield* company
    const key = yield* makeKey(admin)
    const { token } = yield* invite(admin, "viewer")
    const of = `/identity/members/${admin.id}`
    expectFailure(yield* admin.request("DELETE", `${of}?keep_keys=true`), denied)
    const bad = { status: 422, code: "validation_failed", fields: ["keep_keys"] }
    expectFailure(yield* owner.request("DELETE", `${of}?keep_keys=yes`), bad)
    expect((yield* owner.request("DELETE", `${of}?keep_keys=true`)).status).toBe(204)
    expect(yield* work(organizationId, [key])).toEqual([true])
    expectFailure(yield* accept(token), invalid)
    const second = yield* signInMember(organizationId, "admin")
    const left = yield* makeKey(second)
    expect((yield* second.request("DELETE", `/identity/members/${second.id}`)).status).toBe(204)
    expect(yield* work(organizationId, [left])).toEqual([false])
  })

  it.effect("ends with a demotion where they could not give it any more, and only there", function* () {
    const { organizationId, owner } = yield* company
    const second = yield* signInMember(organizationId, "owner")
    const keys = [
      yield* makeKey(second),
      yield* makeKey(second, "test", ["webhook-endpoints:read", "audit-log:read"]),
      yield* makeKey(second, "live")
    ]
    const [forAdmin, forViewer] = [yield* invite(second, "admin"), yield* invite(second, "viewer")]
    const change = (body: unknown, query = "") =>
      Effect.map(owner.request("PATCH", `/identity/members/${second.id}${query}`, { body }), ({ status, text }) =>
        expect(status, text).toBe(200)
      )
    yield* change({ role: "admin" })
    expect(yield* work(organizationId, keys)).toEqual([true, true, true])
    expectFailure(yield* accept(forAdmin.token), invalid)
    yield* change({ role: "developer", environments: ["sandbox"] })
    expect(yield* work(organizationId, keys)).toEqual([true, false, false])
    expectFailure(yield* accept(forViewer.token), invalid)
    yield* change({ role: "viewer" }, "?keep_keys=true")
    expect(yield* work(organizationId, keys)).toEqual([true, false, false])
    yield* change({ role: "developer" })
    yield* change({ role: "viewer" })
    expect(yield* work(organizationId, keys)).toEqual([false, false, false])
  })

  it.effect("is not accepted from an inviter who may not invite any more, whoever removed them", function* () {
    const { sql } = yield* TestService
    const { admin, organizationId, owner } = yield* company
    const { token } = yield* invite(admin, "viewer")
    const second = yield* invite(owner, "admin")
    // As a process of the version before does it, which knows nothing of creators
    yield* sql`DELETE FROM payments.memberships WHERE person_id = ${admin.id}`
    expectFailure(yield* accept(token), invalid)
    yield* sql`UPDATE payments.memberships SET role = 'admin' WHERE person_id = ${owner.id}`
    expectFailure(yield* accept(second.token), invalid)
    yield* sql`UPDATE payments.memberships SET role = 'owner' WHERE person_id = ${owner.id}`
    expect((yield* accept(second.token)).status).toBe(200)
    expect((yield* sql`SELECT 1 FROM payments.memberships WHERE organization_id = ${organizationId}`).length).toBe(2)
  })

  it.effect("is accepted or created before the removal, or not at all, when they race", function* () {
    const { services, sql } = yield* TestService
    const { organizationId, owner } = yield* company
    for (let round = 0; round < 3; round++) {
      const admin = yield* signInMember(organizationId, "admin")
      const invitation = yield* invite(admin, "viewer")
      const [accepted, removed, ...created] = yield* Effect.all(
        [
          accept(invitation.token),
          owner.request("DELETE", `/identity/members/${admin.id}`),
          ...Array.from({ length: 4 }, () =>
            admin.request("POST", "/identity/api-keys", { body: { name: "Late", permissions: ["payments:read"] } })
          )
        ],
        { concurrency: "unbounded" }
      )
      expect(removed?.status).toBe(204)
      expect([200, 401]).toContain(accepted?.status)
      for (const { status, text } of created) expect([201, 403], text).toContain(status)
      const [left] = yield* sql<{ keys: number; invitations: number }>`
          SELECT
            (SELECT count(*)::int FROM payments.api_keys
              WHERE created_by_id = ${admin.id} AND revoked_at IS NULL) AS keys,
            (SELECT count(*)::int FROM payments.invitations
              WHERE created_by_id = ${admin.id} AND revoked_at IS NULL AND accepted_at IS NULL) AS invitations`
      expect(left).toEqual({ keys: 0, invitations: 0 })
      const revoked = yield* audited(organizationId, "invitation.revoked")
      expect(revoked.some(({ id }) => id === invitation.id)).toBe(accepted?.status === 401)
    }
    expect((yield* Context.get(services, Members).list(organizationId)).length).toBeGreaterThanOrEqual(2)
  })
})
