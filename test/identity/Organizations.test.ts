import { expect } from "@effect/vitest"
import { Context, Effect, Either } from "effect"
import { permissions } from "../../src/identity/keys/Permissions.ts"
import { Organizations } from "../../src/identity/organizations/Organizations.ts"
import { newEmail, onSharedServiceWithMail, signIn } from "../harness/SignIn.ts"
import { TestService } from "../harness/TestService.ts"
import { expectFailure } from "../surface/http/Refusals.ts"

const path = "/identity/organizations"
const exists = { status: 409, code: "organization_already_exists", fields: [] }

onSharedServiceWithMail("an organization", (it) => {
  it.effect("is made by a signed-in person, who owns it, with both of its workspaces", () =>
    Effect.gen(function* () {
      const { sql } = yield* TestService
      const person = yield* signIn(newEmail())
      const answer = yield* person.request("POST", path, { body: { name: "  Padaria São João " } })
      expect(answer.status).toBe(201)
      expect(answer.json).toEqual({
        id: expect.stringMatching(/^[0-9a-f-]{36}$/),
        name: "Padaria São João",
        workspaces: [{ environment: "sandbox" }, { environment: "production" }]
      })
      const id = String(answer.json["id"])
      const workspaces = yield* sql`
        SELECT environment FROM payments.workspaces WHERE organization_id = ${id} ORDER BY environment DESC`
      expect(workspaces).toEqual([{ environment: "sandbox" }, { environment: "production" }])
      const session = yield* person.request("GET", "/identity/session")
      expect(session.json).toMatchObject({
        organization: { id, name: "Padaria São João", role: "owner" },
        environment: "sandbox",
        workspaces: [
          { environment: "sandbox", permissions: expect.arrayContaining([...permissions]) },
          { environment: "production", permissions: expect.arrayContaining([...permissions]) }
        ]
      })
      const audit = yield* sql`
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
  )

  it.effect("is one of a person's: a second creation is 409 and makes nothing, also ten at once", () =>
    Effect.gen(function* () {
      const { sql } = yield* TestService
      const count = sql<{ count: number }>`SELECT count(*)::int AS count FROM payments.organizations`
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
  )

  it.effect("is not made by nobody, by a key, without a trusted origin, or without a good name", () =>
    Effect.gen(function* () {
      const { organization, request } = yield* TestService
      const body = { name: "Shop" }
      const required = { status: 401, code: "authentication_required", fields: [] }
      expectFailure(yield* request("POST", path, { body }), required)
      expectFailure(yield* request("POST", path, { body, key: organization.testKey }), required)
      const person = yield* signIn(newEmail())
      const { cookie } = person
      const untrusted = { status: 403, code: "origin_not_trusted", fields: [] }
      expectFailure(yield* request("POST", path, { body, headers: { cookie } }), untrusted)
      expectFailure(
        yield* person.request("POST", path, { body, headers: { origin: "https://evil.example" } }),
        untrusted
      )
      for (const name of ["", "  ", "a".repeat(201), "a\r\nBcc: eve@example.com", "a\u0000", 7, null]) {
        const answer = yield* person.request("POST", path, { body: { name } })
        expectFailure(answer, { status: 422, code: "validation_failed", fields: ["name"] }, JSON.stringify(name))
      }
      expectFailure(yield* person.request("POST", path, { body: { ...body, id: "x", owner: "y" } }), {
        status: 422,
        code: "validation_failed",
        fields: ["id", "owner"]
      })
      expect((yield* person.request("POST", path, { body: { name: "a".repeat(200) } })).status).toBe(201)
    })
  )

  it.effect("can be made by the operator, who is then on record", () =>
    Effect.gen(function* () {
      const { services, sql } = yield* TestService
      const organizations = Context.get(services, Organizations)
      const ownerEmail = newEmail()
      const author = { kind: "operator", id: "root" } as const
      const { id, name } = yield* organizations.create({ name: "Made", ownerEmail: ownerEmail.toUpperCase(), author })
      expect(yield* organizations.get(id)).toEqual({ id, name })
      expect(yield* organizations.list).toContainEqual({ id, name })
      const [record] = yield* sql`
        SELECT author_kind, author_id FROM payments.audit_log WHERE organization_id = ${id}`
      expect(record).toEqual({ author_kind: "operator", author_id: "root" })
      const again = yield* Effect.either(organizations.create({ name: "Second", ownerEmail, author }))
      expect(Either.isLeft(again) ? again.left._tag : "").toBe("OrganizationAlreadyExists")
      const owner = yield* signIn(ownerEmail)
      const session = yield* owner.request("GET", "/identity/session")
      expect(session.json["organization"]).toEqual({ id, name, role: "owner" })
    })
  )
})
