import { expect } from "@effect/vitest"
import { Context, Deferred, Effect, Fiber, Layer, Option, Redacted } from "effect"
import { Accounts } from "../../../src/payments/Accounts.ts"
import { AccountConnection } from "../../../src/payments/connecting/AccountConnection.ts"
import { Provider } from "../../../src/payments/Provider.ts"
import type { Tenant } from "../../../src/platform/kit/Tenant.ts"
import { eventually } from "../../harness/Eventually.ts"
import { onServiceWithoutConsole, type Person, signInMember } from "../../harness/SignIn.ts"
import { inDatabase, TestService, testPublicUrl } from "../../harness/TestService.ts"
import { authorize, consent, createdAccounts, hasAccess, newOwner, onboard, read, urlIn } from "./Connecting.ts"

// What changes after an account was read at the provider and before it is linked

/** Connecting accounts while something happens before the provider answers the last question about an account. */
const connectingWhile = (happens: Effect.Effect<unknown, unknown>) =>
  Effect.gen(function* () {
    const { services } = yield* TestService
    const provider = Context.get(services, Provider)
    const late: Provider["Type"] = {
      ...provider,
      hasCharges: (account) => Effect.zipRight(Effect.orDie(happens), provider.hasCharges(account))
    }
    const layer = AccountConnection.layer({ publicUrl: testPublicUrl }).pipe(Layer.provide(Accounts.layer))
    return Context.get(
      yield* Layer.build(layer).pipe(Effect.provide(Context.add(services, Provider, late))),
      AccountConnection
    )
  })

/** An organization with an admin, who is about to lose the role. */
const setUp = Effect.gen(function* () {
  const owner = yield* newOwner
  const admin = yield* signInMember(owner.organizationId, "admin")
  const tenant: Tenant = { organizationId: owner.organizationId, environment: "sandbox" }
  const demote = owner.request("PATCH", `/identity/members/${admin.id}`, { body: { role: "viewer" } }).pipe(
    Effect.tap(({ status, text }) => expect(status, text).toBe(200)),
    Effect.provideService(TestService, yield* TestService)
  )
  return { owner, admin, tenant, demote }
})

const finishAs = (person: Person, { organizationId, environment }: Tenant, back: URL) =>
  Effect.gen(function* () {
    const [session] = yield* inDatabase<{ id: string }>`
      SELECT session_id AS id FROM payments.account_authorizations WHERE organization_id = ${organizationId}`
    return [
      {
        id: session?.id ?? "",
        personId: person.id,
        email: person.email,
        environment,
        expiresAt: new Date(Date.now() + 60_000),
        membership: { organizationId, role: "admin", environments: ["sandbox", "production"] }
      },
      {
        state: back.searchParams.get("state") ?? "",
        code: Redacted.make(back.searchParams.get("code") ?? ""),
        error: undefined
      }
    ] as const
  })

const authorOf = ({ id }: Person) => ({ kind: "person", id }) as const

onServiceWithoutConsole("an account", (it) => {
  it.scoped("that is created is not linked by who loses the role meanwhile, and serves the next one", function* () {
    const { admin, demote, owner, tenant } = yield* setUp
    const before = yield* createdAccounts
    const refused = yield* Effect.flip((yield* connectingWhile(demote)).startOnboarding(tenant, authorOf(admin)))
    expect(refused).toMatchObject({
      _tag: "PermissionDenied",
      message: "Only owners and admins may connect the provider account."
    })
    expect(yield* read(owner)).toMatchObject({ status: "not_connected", accountId: null })
    expect(yield* owner.audited).toEqual([])
    urlIn(yield* onboard(owner))
    expect((yield* createdAccounts).filter((id) => !before.includes(id))).toEqual([(yield* read(owner))["accountId"]])
  })

  it.scoped("whose owner consents is not linked by who loses the role meanwhile, and is given back", function* () {
    const { emulator } = yield* TestService
    const { admin, demote, owner, tenant } = yield* setUp
    const accountId = yield* emulator.ensureAccount()
    const back = yield* consent(urlIn(yield* authorize(admin)), { account: accountId })
    const connection = yield* connectingWhile(demote)
    const finished = yield* connection.finishAuthorization(...(yield* finishAs(admin, tenant, back)))
    expect(finished).toEqual({ outcome: "refused", environment: "sandbox" })
    expect(yield* read(owner)).toMatchObject({ status: "not_connected", accountId: null })
    expect(yield* owner.audited).toEqual([])
    expect(yield* hasAccess(accountId)).toBe(false)
  })

  it.scoped("whose owner consents is linked, whether or not the person waits for the page", function* () {
    const { admin, owner, tenant } = yield* setUp
    const back = yield* consent(urlIn(yield* authorize(admin)), {})
    const [asked, answers] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
    const connection = yield* connectingWhile(
      Effect.zipRight(Deferred.succeed(asked, undefined), Deferred.await(answers))
    )
    const request = yield* Effect.fork(connection.finishAuthorization(...(yield* finishAs(admin, tenant, back))))
    yield* Deferred.await(asked)
    yield* Fiber.interrupt(request)
    expect(yield* read(owner)).toMatchObject({ status: "not_connected" })
    yield* Deferred.succeed(answers, undefined)
    const connected = yield* eventually(
      "the account is linked",
      Effect.map(read(owner), (now) => (now["status"] === "connected" ? Option.some(now) : Option.none()))
    )
    expect(yield* hasAccess(String(connected["accountId"]))).toBe(true)
  })

  it.scoped("whose owner consents is given back if it can't be linked after all", function* () {
    const { emulator } = yield* TestService
    const { admin, owner, tenant } = yield* setUp
    const accountId = yield* emulator.ensureAccount()
    const back = yield* consent(urlIn(yield* authorize(admin)), { account: accountId })
    const connection = yield* connectingWhile(
      emulator.addFault({ fault: "html_502", method: "GET", path: `/v1/charges`, times: 1_000 })
    )
    const finished = yield* connection
      .finishAuthorization(...(yield* finishAs(admin, tenant, back)))
      .pipe(Effect.ensuring(emulator.clearFaults))
    expect(finished).toEqual({ outcome: "failed", environment: "sandbox" })
    expect(yield* read(owner)).toMatchObject({ status: "not_connected", accountId: null })
    expect(yield* hasAccess(accountId)).toBe(false)
  })
})
