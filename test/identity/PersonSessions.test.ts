import { expect } from "@effect/vitest"
import { Effect } from "effect"
import { TestMailbox } from "../harness/Mailbox.ts"
import { hashOf, onSharedServiceWithMail, type Person, signIn, signInOwner, tokenIn } from "../harness/SignIn.ts"
import { inDatabase, sendRequest } from "../harness/TestService.ts"
import { expectFailure } from "../surface/http/Refusals.ts"

const invalid = { status: 401, code: "session_invalid", fields: [] }
const untrusted = { status: 403, code: "origin_not_trusted", fields: [] }

onSharedServiceWithMail("the sessions of a person", (it) => {
  const firefox = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"

  const signInWith = (email: string, userAgent: string) => signIn(email, { "user-agent": userAgent })

  const sessionsOf = (person: Person) =>
    Effect.map(person.request("GET", "/identity/sessions"), (answer) => {
      expect(answer.status, answer.text).toBe(200)
      expect(answer.text).not.toContain(person.cookie.replace("__Host-svc_session=", ""))
      return Array.from(Object(answer.json["data"]), (item): Readonly<Record<string, unknown>> => Object(item))
    })

  const recorded = (organizationId: string) =>
    inDatabase<{ action: string; author: string; id: string }>`
      SELECT action, author_id AS author, target_id AS id FROM payments.audit_log
      WHERE organization_id = ${organizationId} AND target_type = 'session' ORDER BY audit_log.id`

  it.effect("are listed to them alone, ended one by one, and on the record of their organization", function* () {
    const owner = yield* signInOwner
    const stranger = yield* signInOwner
    const second = yield* signInWith(owner.email, firefox)
    const [latest, first, ...others] = yield* sessionsOf(second)
    const shown = {
      id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      environment: "sandbox",
      createdAt: expect.stringMatching(/Z$/),
      lastUsedAt: expect.stringMatching(/:00\.000Z$/),
      expiresAt: expect.stringMatching(/Z$/)
    }
    expect(others).toEqual([])
    expect(latest).toEqual({ ...shown, current: true, client: "Firefox on Linux" })
    expect(first).toEqual({ ...shown, current: false, client: null })
    const missing = { status: 404, code: "resource_not_found", fields: [] }
    const of = `/identity/sessions/${String(first?.["id"])}`
    expectFailure(yield* stranger.request("DELETE", of), missing)
    expect((yield* second.request("DELETE", of)).status).toBe(204)
    expectFailure(yield* owner.request("GET", "/identity/session"), invalid)
    expectFailure(yield* second.request("DELETE", of), missing)
    const malformed = { status: 422, code: "validation_failed", fields: ["id"] }
    expectFailure(yield* second.request("DELETE", "/identity/sessions/nonsense"), malformed)
    expect(yield* sessionsOf(second)).toHaveLength(1)
    const author = owner.id
    // The first one began before its person had an organization
    expect(yield* recorded(owner.organizationId)).toEqual([
      { action: "session.started", author, id: latest?.["id"] },
      { action: "session.ended", author, id: first?.["id"] }
    ])
  })

  it.effect("end all at once, with their open links, and nobody else's", function* () {
    const mailbox = yield* TestMailbox
    const owner = yield* signInOwner
    const stranger = yield* signInOwner
    const others = [yield* signInWith(owner.email, firefox), yield* signInWith(owner.email, "curl/8.9.1")]
    yield* sendRequest("POST", "/identity/sign-in-links", { body: { email: owner.email } })
    const token = tokenIn(yield* mailbox.mailTo(owner.email, 4))
    const cookie = { cookie: owner.cookie }
    expectFailure(yield* sendRequest("DELETE", "/identity/sessions", { headers: cookie }), untrusted)
    const answer = yield* owner.request("DELETE", "/identity/sessions")
    expect(answer.status, answer.text).toBe(204)
    expect(answer.headers.getSetCookie()[0]).toMatch(/^__Host-svc_session=; Max-Age=0/)
    for (const person of [owner, ...others]) {
      expectFailure(yield* person.request("GET", "/identity/session"), invalid)
    }
    expectFailure(yield* sendRequest("POST", "/identity/session", { body: { token } }), invalid)
    expect((yield* stranger.request("GET", "/identity/session")).status).toBe(200)
    const ended = (yield* recorded(owner.organizationId)).filter(({ action }) => action === "session.ended")
    expect(ended).toHaveLength(3)
  })

  it.effect("are at most 100: the next one ends the one that was not used for the longest time", function* () {
    const owner = yield* signInOwner
    yield* inDatabase`
        INSERT INTO payments.sessions (id, token_hash, person_id, expires_at, last_used_at)
        SELECT gen_random_uuid(), sha256(gen_random_uuid()::text::bytea), ${owner.id}, now() + interval '1 hour',
          now() - n * interval '1 minute'
        FROM generate_series(1, 100) AS n`
    yield* inDatabase`
        UPDATE payments.sessions SET last_used_at = now() - interval '1 day' WHERE token_hash = ${hashOf(owner)}`
    expect(yield* sessionsOf(yield* signInWith(owner.email, firefox))).toHaveLength(100)
    expectFailure(yield* owner.request("GET", "/identity/session"), invalid)
  })
})
