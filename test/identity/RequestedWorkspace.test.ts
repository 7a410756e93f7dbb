import { randomUUID } from "node:crypto"
import { expect } from "@effect/vitest"
import { Effect } from "effect"
import type { Environment } from "../../src/platform/kit/Environment.ts"
import { onSharedServiceWithMail, type Person, signInMember, signInOwner } from "../harness/SignIn.ts"
import { TestService } from "../harness/TestService.ts"
import { expectFailure } from "../surface/http/Refusals.ts"

const environments = ["sandbox", "production"] as const
const invalid = { status: 422, code: "validation_failed", fields: ["service-workspace"] }
const refused = { status: 403, code: "workspace_access_required", fields: [] }

/** A tab of a person's browser, which names its environment in every request. */
const tabOf = (person: Person, environment: string) => ({
  request: (method: string, path: string, options: { body?: unknown; headers?: Record<string, string> } = {}) =>
    person.request(method, path, { ...options, headers: { ...options.headers, "service-workspace": environment } })
})

const namesIn = (data: unknown): ReadonlyArray<string> => Array.from(Object(data), (one) => String(Object(one).name))

onSharedServiceWithMail("a workspace that a request names", (it) => {
  const management = (organizationId: string) => `/v2/organizations/${organizationId}/integrations`

  it.effect("is that of this request alone: two tabs never mix environments", function* () {
    const owner = yield* signInOwner
    const path = management(owner.organizationId)
    const tabs = environments.map((environment) => ({ environment, ...tabOf(owner, environment) }))
    const made = yield* Effect.forEach(
      tabs,
      ({ environment, request }) =>
        Effect.all([
          request("POST", `${path}/endpoints`, {
            body: { name: environment, url: "https://93.184.215.14/hook", events: ["payment.succeeded"] },
            headers: { "idempotency-key": "the-same-in-both" }
          }),
          request("PUT", "/identity/return-urls", {
            body: { successUrl: `https://shop.example/${environment}`, cancelUrl: null }
          }),
          request("POST", "/identity/api-keys", {
            body: {
              name: environment,
              permissions: ["products:read"],
              ...(environment === "production" ? { mode: "live" } : {})
            }
          })
        ]),
      { concurrency: "unbounded" }
    )
    for (const answer of made.flat()) expect(answer.status, answer.text).toBeLessThan(300)
    // Many at once, in turns
    const rounds = Array.from({ length: 10 }, () => tabs).flat()
    yield* Effect.forEach(
      rounds,
      ({ environment, request }) =>
        Effect.gen(function* () {
          expect(namesIn((yield* request("GET", `${path}/endpoints`)).json["data"])).toEqual([environment])
          const urls = yield* request("GET", "/identity/return-urls")
          expect(urls.json).toMatchObject({ environment, successUrl: `https://shop.example/${environment}` })
          expect(namesIn((yield* request("GET", "/identity/api-keys")).json["data"])).toEqual([environment])
          expect((yield* request("GET", "/identity/session")).json).toMatchObject({ environment })
        }),
      { concurrency: 5 }
    )
    // The session's own selection is as it was
    expect((yield* owner.request("GET", "/identity/session")).json).toMatchObject({ environment: "sandbox" })
    expect(namesIn((yield* owner.request("GET", `${path}/endpoints`)).json["data"])).toEqual(["sandbox"])
    const selected = yield* tabOf(owner, "sandbox").request("PUT", "/identity/session/workspace", {
      body: { environment: "production" }
    })
    expect(selected.json).toMatchObject({ environment: "production" })
    expect(namesIn((yield* owner.request("GET", `${path}/endpoints`)).json["data"])).toEqual(["production"])
  })

  it.effect("is one of the two, named once", function* () {
    const owner = yield* signInOwner
    const path = `${management(owner.organizationId)}/endpoints`
    const { organization, request } = yield* TestService
    for (const bad of ["", "Sandbox", "live", "sandbox, production", "sandbox, sandbox", "*", "x".repeat(5000)]) {
      const tab = tabOf(owner, bad)
      for (const answer of [
        yield* tab.request("GET", path),
        yield* tab.request("GET", "/identity/session"),
        yield* tab.request("GET", "/identity/return-urls"),
        yield* request("GET", `${management(organization.id)}/endpoints`, {
          key: organization.testKey,
          headers: { "service-workspace": bad }
        })
      ]) {
        expectFailure(answer, invalid, bad.slice(0, 30))
      }
    }
    // Whoever is nobody learns nothing of it
    const nobody = yield* request("GET", path, { headers: { "service-workspace": "nonsense" } })
    expectFailure(nobody, { status: 401, code: "authentication_required", fields: [] })
  })

  it.effect("needs access to it, whichever one is selected", function* () {
    const { organizationId } = yield* signInOwner
    const path = management(organizationId)
    for (const role of ["developer", "viewer"] as const) {
      for (const granted of environments) {
        const person = yield* signInMember(organizationId, role, [granted])
        const other: Environment = granted === "sandbox" ? "production" : "sandbox"
        const entered = yield* tabOf(person, granted).request("GET", `${path}/endpoints`)
        expect(entered.status, entered.text).toBe(200)
        const outside = tabOf(person, other)
        expectFailure(yield* outside.request("GET", `${path}/endpoints`), refused)
        expectFailure(yield* outside.request("GET", "/identity/return-urls"), refused)
        if (role === "developer") expectFailure(yield* outside.request("GET", "/identity/api-keys"), refused)
        // What depends on no workspace goes on
        expect((yield* outside.request("GET", "/identity/sessions")).status).toBe(200)
        expect((yield* outside.request("DELETE", "/identity/session")).status).toBe(204)
      }
    }
  })

  it.effect("of a key is the key's own", function* () {
    const { organization, request } = yield* TestService
    const keys = { sandbox: organization.testKey, production: organization.liveKey }
    for (const named of environments) {
      for (const own of environments) {
        const options = { key: keys[own], headers: { "service-workspace": named, "idempotency-key": randomUUID() } }
        const answers = [
          yield* request("GET", `${management(organization.id)}/endpoints`, options),
          yield* request("GET", "/identity/api-key", options)
        ]
        for (const answer of answers) {
          if (named === own) expect(answer.status, answer.text).toBe(200)
          else expectFailure(answer, invalid)
        }
      }
    }
  })
})
