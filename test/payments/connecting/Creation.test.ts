import { randomUUID } from "node:crypto"
import { SqlClient } from "@effect/sql"
import { expect } from "@effect/vitest"
import { Context, Effect, Layer, Option } from "effect"
import { Organizations } from "../../../src/identity/organizations/Organizations.ts"
import { Accounts } from "../../../src/payments/Accounts.ts"
import { AccountConnection } from "../../../src/payments/connecting/AccountConnection.ts"
import { Provider, type ProviderShape } from "../../../src/payments/Provider.ts"
import type { ProviderCallFailure } from "../../../src/payments/ProviderErrors.ts"
import {
  IdempotencyKeyReused,
  type ProviderPermissionDenied,
  ProviderRequestRefused
} from "../../../src/platform/errors/Errors.ts"
import { RateLimits } from "../../../src/platform/kit/RateLimit.ts"
import { onSharedService, TestService } from "../../harness/TestService.ts"

type Failure = Exclude<ProviderCallFailure, ProviderPermissionDenied>

/** The service with a provider that answers creations as the test says, and the keys that these came with. */
const withCreations = (failures: ReadonlyArray<Failure>, found: Option.Option<string> = Option.none()) =>
  Effect.gen(function* () {
    const { emulator, services, sql } = yield* TestService
    const keys: Array<string> = []
    const waiting = [...failures]
    const provider: ProviderShape = {
      ...Context.get(services, Provider),
      createAccount: (_, { idempotencyKey }) => {
        keys.push(idempotencyKey)
        const failure = waiting.shift()
        return failure === undefined ? emulator.ensureAccount() : Effect.fail(failure)
      },
      findCreatedAccount: () => Effect.succeed(found)
    }
    const context = yield* Layer.build(
      AccountConnection.layer({ publicUrl: "https://payments.example" }).pipe(
        Layer.provide([Accounts.layer, RateLimits.layer]),
        Layer.provide(Layer.succeed(Provider, provider)),
        Layer.provide(Layer.succeed(SqlClient.SqlClient, sql))
      )
    )
    const organization = yield* Context.get(services, Organizations).create({
      name: "Bakery",
      ownerEmail: `${randomUUID()}@example.com`
    })
    const tenant = { organizationId: organization.id, environment: "sandbox" } as const
    const connection = Context.get(context, AccountConnection)
    // The operator may what an owner may
    const start = connection.startOnboarding(tenant, { kind: "operator", id: "test" })
    return { connection, keys, start, tenant }
  }).pipe(Effect.orDie)

onSharedService("the creation of an account", (it) => {
  it.scoped("is a new one after the provider refused it, which it would repeat under the same key", function* () {
    const refusal = new ProviderRequestRefused({ code: "provider_account_country_invalid_address" })
    const { keys, start } = yield* withCreations([refusal])
    expect(yield* Effect.flip(start)).toMatchObject({ code: "provider_account_country_invalid_address" })
    yield* start
    expect(new Set(keys).size).toBe(2)
    // From now on that account is completed
    yield* start
    expect(keys).toHaveLength(2)
  })

  it.scoped("finds what another version has created under the key, or begins anew", function* () {
    const { emulator } = yield* TestService
    const accountId = yield* emulator.ensureAccount()
    const known = yield* withCreations([new IdempotencyKeyReused()], Option.some(accountId))
    yield* known.start
    expect((yield* known.connection.show(known.tenant)).account).toMatchObject({ accountId })

    const unknown = yield* withCreations([new IdempotencyKeyReused()])
    expect((yield* Effect.flip(unknown.start))._tag).toBe("IdempotencyRequestInProgress")
    yield* unknown.start
    expect(new Set(unknown.keys).size).toBe(2)
  })
})
