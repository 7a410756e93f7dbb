import { randomUUID } from "node:crypto"
import { expect } from "@effect/vitest"
import { Context, Effect } from "effect"
import { ReturnUrls } from "../../src/identity/return-urls/ReturnUrls.ts"
import { Accounts } from "../../src/payments/Accounts.ts"
import type { Environment } from "../../src/platform/kit/Environment.ts"
import { newEmail, onSharedServiceWithMail, type Person, signIn, signInMember, signInOwner } from "../harness/SignIn.ts"
import { inDatabase, serviceOf, TestService, testReturnUrls } from "../harness/TestService.ts"
import { expectFailure } from "../surface/http/Refusals.ts"
import { idOf } from "../surface/http/Samples.ts"

const path = "/identity/return-urls"
const workspace = { status: 403, code: "workspace_access_required", fields: [] }
const invalid = (...fields: ReadonlyArray<string>) => ({ status: 422, code: "validation_failed", fields })

const own = {
  successUrl: "https://bakery.example/thanks?session_id={CHECKOUT_SESSION_ID}",
  cancelUrl: "https://bakery.example/cart"
}
const none = { successUrl: null, cancelUrl: null }

const read = (person: Person) => person.request("GET", path)
const set = (person: Person, body: unknown) => person.request("PUT", path, { body })

const select = (person: Person, environment: Environment) =>
  Effect.map(person.request("PUT", "/identity/session/workspace", { body: { environment } }), ({ status }) =>
    expect(status).toBe(200)
  )

const shop = Effect.gen(function* () {
  const { emulator, makeKey, request, services } = yield* TestService
  const owner = yield* signInOwner
  const { organizationId } = owner
  const accountId = yield* emulator.ensureAccount()
  yield* Context.get(services, Accounts).link({ organizationId, environment: "sandbox" }, accountId).pipe(Effect.orDie)
  const key = yield* makeKey(organizationId, ["*"])
  const post = (suffix: string, body: unknown, idempotencyKey: string = randomUUID()) =>
    request("POST", `/v2/organizations/${organizationId}/provider${suffix}`, {
      key,
      headers: { "idempotency-key": idempotencyKey },
      body
    })
  const price = idOf(yield* post("/prices", { currency: "brl", unit_amount: 500, product_data: { name: "Bread" } }))
  const body = { mode: "payment", line_items: [{ price, quantity: 1 }] }
  return {
    ...owner,
    accountId,
    sell: (idempotencyKey?: string) => post("/checkout/sessions", body, idempotencyKey),
    sellByLink: post("/payment-links", { line_items: body.line_items })
  }
})

const pagesOf = (successUrl: string | null, cancelUrl: string | null) => ({
  success_url: successUrl ?? testReturnUrls.checkoutSuccessUrl,
  cancel_url: cancelUrl ?? testReturnUrls.checkoutCancelUrl
})

onSharedServiceWithMail("return URLs", (it) => {
  it.effect("are the operator's until an owner sets the organization's own, and after these go", function* () {
    const owner = yield* shop
    expect((yield* read(owner)).json).toEqual({ environment: "sandbox", ...none, updatedAt: null })
    expect((yield* owner.sell()).json).toMatchObject(pagesOf(null, null))

    const answer = yield* set(owner, own)
    expect(answer.status, answer.text).toBe(200)
    expect(answer.json).toEqual({ environment: "sandbox", ...own, updatedAt: expect.stringMatching(/Z$/) })
    expect((yield* read(owner)).json).toEqual(answer.json)
    expect((yield* owner.sell()).json).toMatchObject(pagesOf(own.successUrl, own.cancelUrl))
    // The provider's own page follows the payment of a link
    expect((yield* owner.sellByLink).json).toMatchObject({ after_completion: { type: "hosted_confirmation" } })

    yield* set(owner, { ...own, cancelUrl: null })
    expect((yield* owner.sell()).json).toMatchObject(pagesOf(own.successUrl, null))
    expect((yield* set(owner, none)).json).toMatchObject(none)
    expect((yield* set(owner, none)).json).toMatchObject(none)
    expect((yield* owner.sell()).json).toMatchObject(pagesOf(null, null))

    const records = yield* inDatabase`
        SELECT environment, author_kind, author_id, target_type, target_id FROM payments.audit_log
        WHERE organization_id = ${owner.organizationId} AND action = 'return_urls.updated'`
    // One for each change: the last request changed nothing
    expect(records).toEqual(
      Array.from({ length: 3 }, () => ({
        environment: "sandbox",
        author_kind: "person",
        author_id: owner.id,
        target_type: "return_urls",
        target_id: owner.organizationId
      }))
    )
    const stranger = yield* shop
    expect(yield* (yield* serviceOf(ReturnUrls)).ownOf({ ...stranger, environment: "sandbox" })).toEqual(none)
  })

  it.effect("belong to one environment and one organization", function* () {
    const [owner, other] = [yield* shop, yield* shop]
    yield* set(owner, own)
    yield* select(owner, "production")
    expect((yield* read(owner)).json).toMatchObject({ environment: "production", ...none })
    const live = { successUrl: "https://bakery.example/live", cancelUrl: null }
    expect((yield* set(owner, live)).json).toMatchObject({ environment: "production", ...live })
    expect((yield* owner.sell()).json).toMatchObject(pagesOf(own.successUrl, own.cancelUrl))
    expect((yield* read(other)).json).toMatchObject(none)
    expect((yield* other.sell()).json).toMatchObject(pagesOf(null, null))
  })

  it.effect("are set by owners and admins, and read by whoever enters the workspace", function* () {
    const { organization, request } = yield* TestService
    const owner = yield* signInOwner
    expect((yield* set(yield* signInMember(owner.organizationId, "admin"), own)).json).toMatchObject(own)
    for (const role of ["developer", "viewer"] as const) {
      const member = yield* signInMember(owner.organizationId, role, ["sandbox"])
      expect((yield* read(member)).json).toMatchObject(own)
      expectFailure(yield* set(member, none), { status: 403, code: "permission_denied", fields: [] })
    }
    const elsewhere = yield* signInMember(owner.organizationId, "developer", [])
    expectFailure(yield* read(elsewhere), workspace)
    expectFailure(yield* set(elsewhere, none), workspace)
    const homeless = yield* signIn(newEmail())
    for (const answer of [yield* read(homeless), yield* set(homeless, none)]) {
      expectFailure(answer, { status: 403, code: "organization_access_denied", fields: [] })
    }
    for (const method of ["GET", "PUT"]) {
      const byKey = yield* request(method, path, {
        key: organization.testKey,
        ...(method === "PUT" ? { body: none } : {})
      })
      expectFailure(byKey, { status: 401, code: "authentication_required", fields: [] })
    }
    const foreign = yield* owner.request("PUT", path, { body: none, headers: { origin: "https://evil.example" } })
    expectFailure(foreign, { status: 403, code: "origin_not_trusted", fields: [] })
    expect((yield* read(owner)).json).toMatchObject(own)
  })

  it.effect("are http or https in the sandbox, https in production, and never hold credentials", function* () {
    const owner = yield* signInOwner
    const local = { successUrl: "http://localhost:3000/thanks", cancelUrl: "HTTP://127.0.0.1/cart" }
    expect((yield* set(owner, local)).json).toMatchObject({
      successUrl: "http://localhost:3000/thanks",
      cancelUrl: "http://127.0.0.1/cart"
    })
    const long = (length: number) => "https://bakery.example/".padEnd(length, "a")
    for (const successUrl of [
      "",
      "/thanks",
      "thanks",
      "javascript:alert(1)",
      "ftp://bakery.example",
      "https://",
      "https:///thanks",
      "https://bakery.example:99999/",
      "https://ana@bakery.example/",
      "https://ana:secret@bakery.example/",
      "https://bakery.example\\@evil.example/",
      "https://bakery.example/a b",
      "https://bakery.example/\n",
      " https://bakery.example/",
      long(2049),
      // Longer than that when it is escaped
      `https://bakery.example/${"é".repeat(400)}`,
      7,
      [own.successUrl]
    ]) {
      const answer = yield* set(owner, { successUrl, cancelUrl: null })
      expectFailure(answer, invalid("successUrl"), JSON.stringify(successUrl))
    }
    expectFailure(yield* set(owner, {}), invalid("cancelUrl", "successUrl"))
    expectFailure(yield* set(owner, { ...own, returnUrl: null }), invalid("returnUrl"))
    expect((yield* set(owner, { ...own, successUrl: long(2048) })).status).toBe(200)
    expect(
      (yield* set(owner, { ...own, successUrl: "https://bakery.example/{CHECKOUT_SESSION_ID}/é" })).json
    ).toMatchObject({ successUrl: "https://bakery.example/{CHECKOUT_SESSION_ID}/%C3%A9" })
    yield* select(owner, "production")
    expectFailure(yield* set(owner, local), invalid("cancelUrl", "successUrl"))
    expect((yield* set(owner, own)).status).toBe(200)
  })

  it.effect("that were changed since a try whose answer was lost don't stop its repeat", function* () {
    const { emulator } = yield* TestService
    const owner = yield* shop
    yield* set(owner, own)
    yield* emulator.addFault({
      fault: "lost_answer",
      account: owner.accountId,
      times: 1_000,
      method: "POST",
      path: "/v1/checkout/sessions"
    })
    const lost = yield* owner.sell("lost-session").pipe(Effect.ensuring(emulator.clearFaults))
    expectFailure(lost, { status: 502, code: "provider_unavailable" })
    yield* set(owner, { ...own, cancelUrl: "https://bakery.example/basket" })
    const repeated = yield* owner.sell("lost-session")
    expect(repeated.json).toMatchObject(pagesOf(own.successUrl, "https://bakery.example/basket"))
    yield* set(owner, none)
    expect((yield* owner.sell("lost-session")).text).toBe(repeated.text)
  })
})
