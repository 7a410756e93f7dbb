import { createHash, randomUUID } from "node:crypto"
import { expect } from "@effect/vitest"
import { Context, Effect, Layer, Option } from "effect"
import { Members } from "../../src/identity/members/Members.ts"
import type { Role } from "../../src/identity/Principal.ts"
import type { Environment } from "../../src/platform/kit/Environment.ts"
import { OrganizationId } from "../../src/platform/kit/Ids.ts"
import { type ReceivedMail, sharedMailbox, TestMailbox } from "./Mailbox.ts"
import { type Answer, type RunningService, startForWorker, TestService, testPublicUrl } from "./TestService.ts"
import { layer } from "./Tests.ts"

const api = { roles: { api: true, worker: false } } as const

export const onServiceWithMail = (overrides: Parameters<typeof TestService.layer>[0] = {}) =>
  layer(
    Layer.unwrapEffect(
      Effect.map(TestMailbox, ({ url }) => TestService.layer({ ...api, ...overrides, smtpUrl: Option.some(url) }))
    ).pipe(Layer.provideMerge(TestMailbox.layer))
  )

/** `onOneService` with a real mail server behind it, for suites that look at addresses of their own alone. */
export const onOneServiceWithMail = (overrides: Parameters<typeof TestService.layer>[0]) => {
  let running: Promise<RunningService> | undefined
  const service = Effect.flatMap(sharedMailbox, ({ url }) =>
    Effect.promise(() => {
      running ??= startForWorker({ ...overrides, smtpUrl: Option.some(url) })
      return running
    })
  )
  return layer(Layer.merge(TestService.sharing(service), TestMailbox.shared))
}

/** `onSharedService` with a real mail server behind it. */
export const onSharedServiceWithMail = onOneServiceWithMail(api)

/** The same, whose links open pages without the console. Suites may move its clock forward. */
export const onServiceWithoutConsole = onOneServiceWithMail({ ...api, console: false })

export const newEmail = (): string => `person-${randomUUID()}@example.com`

export const tokenIn = (mail: ReceivedMail): string => {
  const [, token] = /^https:\/\/payments\.example\/identity\/[a-z-]+#([A-Za-z0-9_-]{43})$/m.exec(mail.text) ?? []
  expect(token, mail.text).toBeDefined()
  return token ?? ""
}

export const hashOf = ({ cookie }: Person): Buffer =>
  createHash("sha256").update(cookie.replace("__Host-svc_session=", "")).digest()

export const cookieOf = (answer: Answer): string => {
  const [set] = answer.headers.getSetCookie()
  return (set ?? "").split(";", 1)[0] ?? ""
}

export interface Person {
  readonly id: string
  readonly email: string
  readonly cookie: string
  /** A request as their browser sends it: with the cookie, and from a trusted origin. */
  readonly request: (
    method: string,
    path: string,
    options?: { readonly body?: unknown; readonly headers?: Readonly<Record<string, string>> }
  ) => Effect.Effect<Answer>
}

export const personOf = (service: TestService["Type"], cookie: string, answer: Answer): Person => {
  const { email, id } = Object(answer.json["person"])
  return {
    id: String(id),
    email: String(email),
    cookie,
    request: (method, path, options = {}) =>
      service.request(method, path, { ...options, headers: { cookie, origin: testPublicUrl, ...options.headers } })
  }
}

export const signIn = (email: string, headers: Readonly<Record<string, string>> = {}) =>
  Effect.gen(function* () {
    const service = yield* TestService
    const mailbox = yield* TestMailbox
    const before = mailbox.mails.filter(({ to }) => to.includes(email)).length
    const asked = yield* service.request("POST", "/identity/sign-in-links", { body: { email } })
    expect(asked.status, asked.text).toBe(202)
    const token = tokenIn(yield* mailbox.mailTo(email, before + 1))
    const redeemed = yield* service.request("POST", "/identity/session", { body: { token }, headers })
    expect(redeemed.status, redeemed.text).toBe(200)
    return personOf(service, cookieOf(redeemed), redeemed)
  })

/** Follows an invitation's link. */
export const accept = (token: string) =>
  Effect.flatMap(TestService, ({ request }) => request("POST", "/identity/invitation", { body: { token } }))

export const signInMember = (
  organizationId: OrganizationId,
  role: Role,
  environments: ReadonlyArray<Environment> = [],
  email = newEmail()
) =>
  Effect.gen(function* () {
    const { services } = yield* TestService
    yield* Context.get(services, Members)
      .add({ organizationId, email, role, environments, author: { kind: "operator", id: "test" } })
      .pipe(Effect.orDie)
    return yield* signIn(email)
  })

export const signInOwner = Effect.gen(function* () {
  const person = yield* signIn(newEmail())
  const created = yield* person.request("POST", "/identity/organizations", { body: { name: "Bakery" } })
  expect(created.status, created.text).toBe(201)
  return { ...person, organizationId: OrganizationId.make(String(created.json["id"])) }
})
