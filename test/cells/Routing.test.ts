import { randomUUID } from "node:crypto"
import { expect } from "@effect/vitest"
import { Effect, Option } from "effect"
import { eventually } from "../harness/Eventually.ts"
import { cookieOf, newEmail } from "../harness/SignIn.ts"
import { testPublicUrl } from "../harness/TestService.ts"
import { Cells, onCells, type TestCell } from "./CellsBed.ts"

/** The token of a mailed link, with its routing tag. */
const linkToken = (text: string): string => {
  const [, token] = /^https:\/\/payments\.example\/identity\/[a-z-]+#(\S+)$/m.exec(text) ?? []
  expect(token, text).toBeDefined()
  return token ?? ""
}

const endpointBody = { name: "Test", url: "http://127.0.0.1:9/hook", events: ["payment.succeeded"] }

/** Signs a person in by mail, through the router. */
const signIn = (email: string) =>
  Effect.gen(function* () {
    const { mailbox, request } = yield* Cells
    const before = mailbox.mails.filter(({ to }) => to.includes(email)).length
    const asked = yield* request("POST", "/identity/sign-in-links", { body: { email } })
    expect(asked.status, asked.text).toBe(202)
    const token = linkToken((yield* mailbox.mailTo(email, before + 1)).text)
    const redeemed = yield* request("POST", "/identity/session", { body: { token } })
    expect(redeemed.status, redeemed.text).toBe(200)
    const cookie = cookieOf(redeemed)
    return {
      token,
      cookie,
      json: redeemed.json,
      request: (method: string, path: string, body?: unknown) =>
        request(method, path, { headers: { cookie, origin: testPublicUrl }, ...(body === undefined ? {} : { body }) })
    }
  })

const isPersonOf = ({ sql }: TestCell, email: string) =>
  Effect.map(Effect.orDie(sql`SELECT 1 FROM payments.people WHERE email = ${email}`), (rows) => rows.length > 0)

const receiptsOf = ({ sql }: TestCell, accountId: string) =>
  Effect.map(
    Effect.orDie(sql<{ outcome: string }>`SELECT outcome FROM payments.all_receipts WHERE account_id = ${accountId}`),
    (rows) => rows.map(({ outcome }) => outcome)
  )

onCells("through a router", (it) => {
  it.effect("integrators reach the cell of the organization in the path, however it is spelled", () =>
    Effect.gen(function* () {
      const { north, request, south } = yield* Cells
      for (const { organization, sql } of [north, south]) {
        const path = `/v2/organizations/${organization.id}/integrations/endpoints`
        const created = yield* request("POST", path, {
          key: organization.testKey,
          body: endpointBody,
          headers: { "idempotency-key": randomUUID() }
        })
        expect(created.status, created.text).toBe(200)
        const rows = yield* sql`SELECT 1 FROM payments.endpoints WHERE id = ${String(created.json["id"])}`
        expect(rows).toHaveLength(1)
        const spelled = [
          `/v2/organizations/${organization.id.toUpperCase()}/integrations/endpoints`,
          `/%76%32/organizations/${organization.id.replace("-", "%2d")}/integrations/endpoints/?environment=`.replace(
            /\?.*/,
            ""
          ),
          `/v2/organizations/%${organization.id.charCodeAt(0).toString(16)}${organization.id.slice(1)}/integrations/endpoints`
        ]
        for (const other of spelled) {
          const listed = yield* request("GET", other, { key: organization.testKey })
          expect(listed.status, other + listed.text).toBe(200)
          expect(JSON.stringify(listed.json), other).toContain(String(created.json["id"]))
        }
      }
    })
  )

  it.effect("answers what a cell would, for organizations, routes and pages that nobody has", () =>
    Effect.gen(function* () {
      const { north, request } = yield* Cells
      const key = north.organization.testKey
      const foreign = "0198c3a2-5c4e-7b1f-9d3a-2f6e8b7c1d40"
      for (const [path, status] of [
        [`/v2/organizations/${foreign}/provider/products`, 403],
        ["/v2/organizations/nobody/provider/products", 422],
        ["/v2/organizations/%zz/provider/products", 422],
        ["/v2/elsewhere", 404],
        ["/..%2f..%2fv2", 404]
      ] as const) {
        const [through, direct] = yield* Effect.all([
          request("GET", path, { key }),
          Effect.promise(async () => {
            const { request: send } = await import("undici")
            const answer = await send(`${north.baseUrl}${path}`, { headers: { "x-api-key": key } })
            await answer.body.dump()
            return answer.statusCode
          })
        ])
        expect([path, through.status]).toEqual([path, direct])
        if (status !== direct) expect.soft(`${path} ${direct}`).toBe(`${path} ${status}`)
      }
      expect((yield* request("GET", "/docs")).status).toBe(200)
      expect((yield* request("GET", "/openapi.json")).json["openapi"]).toBeDefined()
      expect((yield* request("GET", "/console")).status).toBe(200)
      expect((yield* request("GET", "/health/live")).json).toEqual({ status: "live" })
    })
  )

  it.effect("a key of either cell works where the path has no organization", () =>
    Effect.gen(function* () {
      const { north, request, south } = yield* Cells
      for (const { organization } of [north, south]) {
        const shown = yield* request("GET", "/identity/api-key", { key: organization.testKey })
        expect(shown.json["organizationId"], shown.text).toBe(organization.id)
        const body = { jsonrpc: "2.0", id: 1, method: "tools/list", params: {} }
        const headers = { accept: "application/json, text/event-stream" }
        const tools = yield* request("POST", "/mcp", { key: organization.testKey, body, headers })
        expect(tools.status, tools.text).toBe(200)
        const bearer = { ...headers, authorization: `Bearer ${organization.testKey}` }
        expect((yield* request("POST", "/mcp", { body, headers: bearer })).status).toBe(200)
      }
    })
  )

  it.effect("the provider's notifications reach the cell of their account, and unknown ones the home", () =>
    Effect.gen(function* () {
      const { emulator, north, south } = yield* Cells
      for (const [cell, other] of [
        [north, south],
        [south, north]
      ] as const) {
        const { accountId } = cell.organization
        yield* emulator.trigger({ type: "payment_intent.succeeded", account: accountId })
        yield* eventually(
          "the receipt",
          Effect.map(receiptsOf(cell, accountId), (found) => (found.length > 0 ? Option.some(found) : Option.none()))
        )
        expect(yield* receiptsOf(cell, accountId)).not.toContain("unlinked")
        expect(yield* receiptsOf(other, accountId)).toEqual([])
      }
      const unknown = yield* emulator.ensureAccount()
      yield* emulator.trigger({ type: "payment_intent.succeeded", account: unknown })
      yield* eventually(
        "the receipt of an unknown account",
        Effect.map(receiptsOf(north, unknown), (found) => (found.length > 0 ? Option.some(found) : Option.none()))
      )
      expect(new Set(yield* receiptsOf(north, unknown))).toEqual(new Set(["unlinked"]))
      expect(yield* receiptsOf(south, unknown)).toEqual([])
    })
  )

  it.effect("people of both cells and new ones sign in by mail, and their sessions lead to their cell", () =>
    Effect.gen(function* () {
      const { directory, north, south } = yield* Cells
      for (const { name, organization } of [north, south]) {
        const person = yield* signIn(`owner-of-${name}@example.com`)
        expect(person.token.startsWith(`${organization.id}.`)).toBe(true)
        expect(person.cookie).toMatch(new RegExp(`^svc_session=${organization.id}\\.[A-Za-z0-9_-]{43}$`))
        const session = yield* person.request("GET", "/identity/session")
        expect(session.json["organization"]).toMatchObject({ id: organization.id })
        const keys = yield* person.request("GET", "/identity/api-keys")
        expect(keys.status, keys.text).toBe(200)
        const invited = newEmail()
        const invitation = yield* person.request("POST", "/identity/invitations", { email: invited, role: "viewer" })
        expect(invitation.status, invitation.text).toBe(201)
      }
      const email = newEmail()
      const person = yield* signIn(email)
      expect(person.cookie).toMatch(/^svc_session=north\./)
      expect(yield* directory.cellOfPerson(email)).toEqual(Option.some("north"))
      const created = yield* person.request("POST", "/identity/organizations", { name: "Bakery" })
      expect(created.status, created.text).toBe(201)
      expect((yield* person.request("GET", "/identity/session")).json["organization"]).toMatchObject({ name: "Bakery" })
    })
  )

  it.effect(
    "an invited person becomes one of the inviting cell, even if another one had them without an organization",
    () =>
      Effect.gen(function* () {
        const { directory, mailbox, north, request, south } = yield* Cells
        const owner = yield* signIn("owner-of-south@example.com")
        const email = newEmail()
        const early = yield* signIn(email)
        expect(yield* isPersonOf(north, email)).toBe(true)
        const invitation = yield* owner.request("POST", "/identity/invitations", { email, role: "admin" })
        expect(invitation.status, invitation.text).toBe(201)
        const token = linkToken((yield* mailbox.mailTo(email, 2)).text)
        const shown = yield* request("POST", "/identity/invitation/preview", { body: { token } })
        expect(shown.json, shown.text).toMatchObject({ email })
        const accepted = yield* request("POST", "/identity/invitation", { body: { token } })
        expect(accepted.status, accepted.text).toBe(200)
        expect(accepted.json["organization"]).toMatchObject({ id: south.organization.id })
        expect(yield* directory.cellOfPerson(email)).toEqual(Option.some("south"))
        // Neither the session from before nor a new one can have a second organization
        const second = yield* early.request("POST", "/identity/organizations", { name: "Second" })
        expect(second.json).toMatchObject({ code: "organization_already_exists" })
        const again = yield* signIn(email)
        expect((yield* again.request("GET", "/identity/session")).json["organization"]).toMatchObject({
          id: south.organization.id
        })
      })
  )
})
