import { randomUUID } from "node:crypto"
import { expect } from "@effect/vitest"
import { Effect, Either } from "effect"
import { Members } from "../../src/identity/members/Members.ts"
import type { Role } from "../../src/identity/Principal.ts"
import { OrganizationId } from "../../src/platform/kit/Ids.ts"
import { newEmail, onServiceWithMail, type Person, signIn, signInMember, signInOwner } from "../harness/SignIn.ts"
import { inDatabase, serviceOf, TestService } from "../harness/TestService.ts"
import { expectFailure } from "../surface/http/Refusals.ts"

const path = "/identity/members"
const denied = { status: 403, code: "permission_denied", fields: [] }
const missing = { status: 404, code: "resource_not_found", fields: [] }
const noOrganization = { status: 403, code: "organization_access_denied", fields: [] }

const company = Effect.gen(function* () {
  const { organizationId, ...owner } = yield* signInOwner
  return {
    organizationId,
    owner: owner as Person,
    admin: yield* signInMember(organizationId, "admin"),
    developer: yield* signInMember(organizationId, "developer", ["sandbox"]),
    viewer: yield* signInMember(organizationId, "viewer", ["production"])
  }
})

const change = (by: Person, of: Person, body: unknown) => by.request("PATCH", `${path}/${of.id}`, { body })
const remove = (by: Person, of: Person) => by.request("DELETE", `${path}/${of.id}`)
const roles = (person: Person) =>
  Effect.map(person.request("GET", path), ({ json }) =>
    Object.fromEntries(Array.from(Object(json["data"]), (m) => [String(Object(m).email), String(Object(m).role)]))
  )

onServiceWithMail()("members", (it) => {
  it.effect("are listed to every role, with what they may enter, and to nobody else", function* () {
    const { request, organization } = yield* TestService
    const { admin, developer, owner, viewer } = yield* company
    const both = ["sandbox", "production"]
    const expected = [
      [owner, "owner", both],
      [admin, "admin", both],
      [developer, "developer", ["sandbox"]],
      [viewer, "viewer", ["production"]]
    ] as const
    for (const person of [owner, admin, developer, viewer]) {
      const answer = yield* person.request("GET", path)
      expect(answer.status).toBe(200)
      expect(answer.json).toEqual({
        data: expected.map(([{ email, id }, role, environments]) => ({
          personId: id,
          email,
          role,
          environments,
          joinedAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/)
        }))
      })
    }
    expectFailure(yield* (yield* signIn(newEmail())).request("GET", path), noOrganization)
    const required = { status: 401, code: "authentication_required", fields: [] }
    expectFailure(yield* request("GET", path, { key: organization.testKey }), required)
  })

  it.effect(
    "are changed and removed as their roles allow",
    function* () {
      const { organizationId, ...people } = yield* company
      /** Who may change a member of one role into another. */
      const mayDecide = (actor: Role, ...about: ReadonlyArray<Role>) =>
        actor === "owner" || (actor === "admin" && about.every((role) => role === "developer" || role === "viewer"))
      const every = ["owner", "admin", "developer", "viewer"] as const
      for (const actor of every) {
        for (const from of every) {
          const target = yield* signInMember(organizationId, from)
          for (const to of every) {
            const answer = yield* change(people[actor], target, { role: to })
            const what = `${actor}: ${from} → ${to}`
            if (mayDecide(actor, from, to)) {
              expect([answer.status, answer.json["role"]], what).toEqual([200, to])
              yield* change(people.owner, target, { role: from })
            } else {
              expectFailure(answer, denied, what)
            }
          }
          const removal = yield* remove(people[actor], target)
          if (mayDecide(actor, from)) {
            expect([removal.status, removal.text], `${actor} removes ${from}`).toEqual([204, ""])
          } else {
            expectFailure(removal, denied, `${actor} removes ${from}`)
            yield* remove(people.owner, target)
          }
        }
      }
      const untouched = Object.fromEntries(every.map((role) => [people[role].email, role]))
      expect(yield* roles(people.viewer)).toEqual(untouched)
    },
    // A change and a refusal for each pair of roles
    240_000
  )

  it.effect("get and lose workspaces with their next request", function* () {
    const { developer, owner } = yield* company
    const select = (environment: string) =>
      developer.request("PUT", "/identity/session/workspace", { body: { environment } })
    const required = { status: 403, code: "workspace_access_required", fields: [] }
    expectFailure(yield* select("production"), required)
    const granted = yield* change(owner, developer, { environments: ["production", "sandbox"] })
    expect(granted.json["environments"]).toEqual(["sandbox", "production"])
    expect((yield* select("production")).json["environment"]).toBe("production")
    yield* change(owner, developer, { environments: ["sandbox"] })
    expectFailure(yield* select("production"), required)
    yield* change(owner, developer, { role: "admin" })
    expect((yield* select("production")).status).toBe(200)
    const demoted = yield* change(owner, developer, { role: "viewer" })
    expect(demoted.json).toMatchObject({ role: "viewer", environments: [] })
    const answers = yield* developer.request("GET", "/identity/session")
    expect(answers.json).toMatchObject({ organization: { role: "viewer" }, workspaces: [] })
    const both = yield* change(owner, developer, { role: "developer", environments: ["production"] })
    expect(both.json).toMatchObject({ role: "developer", environments: ["production"] })
  })

  it.effect("keep an owner: the last one is not removed or demoted and can't leave, also of two at once", function* () {
    const { admin, owner } = yield* company
    expectFailure(yield* remove(owner, owner), denied)
    expectFailure(yield* change(owner, owner, { role: "admin" }), denied)
    expect((yield* change(owner, admin, { role: "owner" })).status).toBe(200)
    const both = yield* Effect.all(
      [remove(owner, owner), remove(admin, admin), change(owner, admin, { role: "viewer" })],
      { concurrency: 3 }
    )
    expect(both.some(({ status }) => status === 403)).toBe(true)
    const owners = yield* inDatabase`
      SELECT 1 FROM payments.memberships WHERE role = 'owner' AND organization_id =
        (SELECT organization_id FROM payments.audit_log WHERE author_id = ${owner.id} LIMIT 1)`
    expect(owners).toHaveLength(1)
  })

  it.effect("may leave; who left or was removed is signed in without an organization at once", function* () {
    const { passTime, request } = yield* TestService
    const { developer, organizationId, owner, viewer } = yield* company
    expect((yield* remove(viewer, viewer)).status).toBe(204)
    expect((yield* remove(owner, developer)).status).toBe(204)
    // Nothing is left of what was taken ahead for the organization that they had
    yield* passTime("2 seconds")
    for (const person of [viewer, developer]) {
      const session = yield* person.request("GET", "/identity/session")
      expect(session.json).toMatchObject({ person: { email: person.email }, organization: null, workspaces: [] })
      expectFailure(yield* person.request("GET", path), noOrganization)
      const endpoints = `/v2/organizations/${organizationId}/integrations/endpoints`
      expectFailure(yield* request("GET", endpoints, { headers: { cookie: person.cookie } }), noOrganization)
      expectFailure(yield* remove(owner, person), missing)
    }
    expect((yield* viewer.request("POST", "/identity/organizations", { body: { name: "Own" } })).status).toBe(201)
  })

  it.effect("of another organization are not there", function* () {
    const mine = yield* company
    const theirs = yield* company
    for (const target of [theirs.viewer, { ...theirs.viewer, id: randomUUID() }]) {
      expectFailure(yield* change(mine.owner, target, { role: "admin" }), missing)
      expectFailure(yield* remove(mine.owner, target), missing)
    }
    expect((yield* roles(theirs.owner))[theirs.viewer.email]).toBe("viewer")
  })

  it.effect("refuse bad input", function* () {
    const { admin, developer, owner } = yield* company
    const refused = (...fields: ReadonlyArray<string>) => ({ status: 422, code: "validation_failed", fields })
    expectFailure(yield* change(owner, developer, { role: "root" }), refused("role"))
    expectFailure(yield* change(owner, developer, { role: null }), refused("role"))
    expectFailure(yield* change(owner, developer, { environments: ["test"] }), refused("environments.0"))
    expectFailure(yield* change(owner, developer, { environments: ["sandbox", "sandbox"] }), refused("environments"))
    expectFailure(yield* change(owner, admin, { environments: ["sandbox"] }), refused("environments"))
    expectFailure(
      yield* change(owner, developer, { role: "admin", environments: ["sandbox"] }),
      refused("environments")
    )
    expectFailure(
      yield* change(owner, developer, { email: "x@example.com", personId: "x" }),
      refused("email", "personId")
    )
    expectFailure(yield* owner.request("PATCH", `${path}/nonsense`, { body: {} }), refused("personId"))
    expectFailure(yield* owner.request("DELETE", `${path}/nonsense`), refused("personId"))
    expect((yield* change(owner, { ...developer, id: developer.id.toUpperCase() }, {})).status).toBe(200)
  })

  it.effect("leave one record of each change, and none of what changes nothing or is refused", function* () {
    const { admin, developer, organizationId, owner, viewer } = yield* company
    const records = inDatabase<{ action: string; author_id: string; target_id: string; request_id: string }>`
      SELECT action, author_id, target_id, request_id FROM payments.audit_log
      WHERE organization_id = ${organizationId} AND target_type = 'member' AND author_kind = 'person' ORDER BY id`
    yield* change(viewer, developer, { role: "viewer" })
    yield* change(owner, developer, { role: "developer", environments: ["sandbox"] })
    yield* remove(owner, owner)
    expect(yield* records).toEqual([])
    const changed = yield* change(admin, developer, { role: "viewer" })
    const removed = yield* remove(owner, viewer)
    expect(yield* records).toEqual([
      {
        action: "member.updated",
        author_id: admin.id,
        target_id: developer.id,
        request_id: changed.headers.get("request-id")
      },
      {
        action: "member.removed",
        author_id: owner.id,
        target_id: viewer.id,
        request_id: removed.headers.get("request-id")
      }
    ])
  })

  it.effect("are added by the operator, each to one organization", function* () {
    const { organizationId, owner } = yield* company
    const members = yield* serviceOf(Members)
    const author = { kind: "operator", id: "root" } as const
    const email = newEmail()
    const add = (options: { email: string; role: Role; environments: ReadonlyArray<"sandbox" | "production"> }) =>
      Effect.map(Effect.either(members.add({ ...options, organizationId, author })), (result) =>
        Either.isLeft(result) ? result.left._tag : result.right
      )
    expect(yield* add({ email: email.toUpperCase(), role: "developer", environments: ["production"] })).toMatchObject({
      email,
      role: "developer",
      environments: ["production"]
    })
    expect(yield* add({ email, role: "viewer", environments: [] })).toBe("OrganizationAlreadyExists")
    expect(yield* add({ email: newEmail(), role: "admin", environments: ["sandbox"] })).toBe("ValidationFailed")
    const elsewhere = members.add({
      organizationId: OrganizationId.make(randomUUID()),
      email: newEmail(),
      role: "viewer",
      environments: [],
      author
    })
    expect(yield* Effect.flip(elsewhere)).toMatchObject({ _tag: "ResourceNotFound" })
    const byKey = members.remove({ organizationId, personId: owner.id, author: { kind: "api_key", id: owner.id } })
    expect(yield* Effect.flip(byKey)).toMatchObject({ _tag: "PermissionDenied" })
  })
})
