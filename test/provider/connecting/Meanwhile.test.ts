import { SqlClient } from "@effect/sql"
import { expect } from "@effect/vitest"
import { Context, Effect, Layer, Redacted } from "effect"
import type { Tenant } from "../../../src/kit/Tenant.ts"
import { Accounts } from "../../../src/provider/Accounts.ts"
import { AccountConnection } from "../../../src/provider/connecting/AccountConnection.ts"
import { Provider } from "../../../src/provider/Provider.ts"
import { onOneServiceWithMail, type Person, signInMember } from "../../harness/SignIn.ts"
import { TestService, testPublicUrl } from "../../harness/TestService.ts"
import { authorize, consent, createdAccounts, hasAccess, newOwner, onboard, read, urlIn } from "./Connecting.ts"

// What changes after an account was read at the provider and before it is linked

/** Connecting accounts while something happens before the provider answers the last question about an account. */
const connectingWhile = (happens: Effect.Effect<unknown, unknown>) =>
  Effect.gen(function* () {
    const { services, sql } = yield* TestService
    const provider = Context.get(services, Provider)
    const late: Provider["Type"] = {
      ...provider,
      hasCharges: (account) => Effect.zipRight(Effect.orDie(happens), provider.hasCharges(account))
    }
    const layer = AccountConnection.layer({ publicUrl: testPublicUrl }).pipe(Layer.provide(Accounts.layer))
    return Context.get(
      yield* Layer.build(layer).pipe(
        Effect.provide(Context.add(Context.add(services, Provider, late), SqlClient.SqlClient, sql))
      ),
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

const authorOf = ({ id }: Person) => ({ kind: "person", id }) as const

onOneServiceWithMail({ roles: { api: true, worker: false }, console: false })("an account", (it) => {
  it.scoped("that is created is not linked by a person who loses the role meanwhile, and serves the next one", () =>
    Effect.gen(function* () {
      const { admin, demote, owner, tenant } = yield* setUp
      const before = yield* createdAccounts
      const connection = yield* connectingWhile(demote)
      const refused = yield* Effect.flip(connection.startOnboarding(tenant, authorOf(admin)))
      expect(refused).toMatchObject({
        _tag: "PermissionDenied",
        message: "Only owners and admins may connect the provider account."
      })
      expect(yield* read(owner)).toMatchObject({ status: "not_connected", accountId: null })
      expect(yield* owner.audited).toEqual([])
      urlIn(yield* onboard(owner))
      expect((yield* createdAccounts).filter((id) => !before.includes(id))).toEqual([(yield* read(owner))["accountId"]])
    })
  )

  it.scoped("whose owner consents is not linked by a person who loses the role meanwhile, and is given back", () =>
    Effect.gen(function* () {
      const { emulator, sql } = yield* TestService
      const { admin, demote, owner, tenant } = yield* setUp
      const accountId = yield* emulator.ensureAccount()
      const { searchParams } = yield* consent(urlIn(yield* authorize(admin)), { account: accountId })
      const [session] = yield* sql<{ id: string }>`
        SELECT session_id AS id FROM payments.account_authorizations WHERE organization_id = ${tenant.organizationId}`
      const connection = yield* connectingWhile(demote)
      const finished = yield* connection.finishAuthorization(
        {
          id: session?.id ?? "",
          personId: admin.id,
          email: admin.email,
          environment: tenant.environment,
          expiresAt: new Date(Date.now() + 60_000),
          membership: { organizationId: tenant.organizationId, role: "admin", environments: ["sandbox", "production"] }
        },
        {
          state: searchParams.get("state") ?? "",
          code: Redacted.make(searchParams.get("code") ?? ""),
          error: undefined
        }
      )
      expect(finished).toEqual({ outcome: "refused", environment: "sandbox" })
      expect(yield* read(owner)).toMatchObject({ status: "not_connected", accountId: null })
      expect(yield* owner.audited).toEqual([])
      expect(yield* hasAccess(accountId)).toBe(false)
    })
  )
})
