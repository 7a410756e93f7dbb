import { expect } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { OrganizationId } from "../../../src/platform/kit/Ids.ts"
import { raw, sdk } from "../../emulator/Harness.ts"
import { type Person, signInOwner } from "../../harness/SignIn.ts"
import { type Answer, inDatabase, sendRequest, TestService, testPublicUrl } from "../../harness/TestService.ts"

export const path = "/identity/account"

export const sandbox = { environment: "sandbox" } as const

export const read = (person: Person) => Effect.map(person.request("GET", path), ({ json }) => json)

export const onboard = (person: Person) => person.request("POST", `${path}/onboarding`, { body: sandbox })

export const authorize = (person: Person) => person.request("POST", `${path}/oauth`, { body: sandbox })

export const disconnect = (person: Person, accountId: unknown) =>
  person.request("DELETE", `${path}?accountId=${accountId}`)

export const urlIn = (answer: Answer): URL => {
  expect(answer.status, answer.text).toBe(200)
  expect(Object.keys(answer.json).toSorted()).toEqual(["expiresAt", "url"])
  expect(answer.headers.get("cache-control")).toBe("no-store")
  return new URL(String(answer.json["url"]))
}

export const open = (url: URL | string) => raw("", String(url))

export const press = (url: URL | string, fields: Readonly<Record<string, string>>) =>
  raw("", String(url), { method: "POST", body: new URLSearchParams(fields) })

export const target = ({ headers, status, text }: { status: number; headers: Headers; text: string }): URL => {
  expect(status, text).toBe(303)
  return new URL(headers.get("location") ?? "")
}

export const complete = (link: URL, action: "finish" | "partial" | "leave", name = "Bakery") =>
  Effect.gen(function* () {
    return target(yield* press(target(yield* open(link)), { action, name }))
  })

export const consent = (url: URL, fields: Readonly<Record<string, string>>) =>
  Effect.map(press(url, { account: "new", action: "connect", ...fields }), target)

export const comeBack = (to: URL, person?: Person) =>
  Effect.gen(function* () {
    expect(to.origin).toBe(testPublicUrl)
    return yield* sendRequest("GET", `${to.pathname}${to.search}`, {
      headers: person === undefined ? {} : { cookie: person.cookie }
    })
  })

export const titleOf = ({ headers, text }: Answer): string => {
  expect(headers.get("content-type")).toBe("text/html; charset=utf-8")
  expect(headers.get("cache-control")).toBe("no-store")
  expect(headers.get("content-security-policy")).toMatch(/^default-src 'none'; style-src 'sha256-/)
  return /<h1>(.*)<\/h1>/.exec(text)?.[1] ?? ""
}

export const platform = Effect.map(TestService, ({ emulator, options }) => {
  const { sandbox: credentials } = options.provider
  if (credentials._tag === "None") throw new Error("The sandbox has credentials")
  return sdk(emulator.url, undefined, Redacted.value(credentials.value.secretKey))
})

export const hasAccess = (accountId: string) =>
  Effect.flatMap(platform, (stripe) =>
    Effect.promise(() =>
      stripe.accounts.retrieve(accountId).then(
        () => true,
        () => false
      )
    )
  )

export const createdAccounts = Effect.gen(function* () {
  const stripe = yield* platform
  const { data } = yield* Effect.promise(() => stripe.accounts.list({ limit: 100 }))
  return data.filter(({ metadata }) => metadata?.["svc_onboarding"] !== undefined).map(({ id }) => id)
})

/** A signed-in owner of a new organization, and what is recorded of its account. */
export const newOwner = Effect.gen(function* () {
  const owner = yield* signInOwner
  const organizationId = OrganizationId.make(owner.organizationId)
  const audited = inDatabase<{ entry: string }>`
    SELECT concat_ws(' ', action, target_id, author_kind, author_id) AS entry FROM payments.audit_log
    WHERE organization_id = ${organizationId} AND action LIKE 'account.%' ORDER BY id`.pipe(
    Effect.map((rows) => rows.map(({ entry }) => entry)),
    Effect.orDie
  )
  return { ...owner, organizationId, audited }
})
