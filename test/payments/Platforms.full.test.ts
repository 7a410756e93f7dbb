import { randomUUID } from "node:crypto"
import { Context, Effect, Option, Redacted } from "effect"
import { anotherPlatformKey, makeEmulator } from "../../src/emulator/Emulator.ts"
import { Accounts } from "../../src/payments/Accounts.ts"
import { AccountConnection } from "../../src/payments/connecting/AccountConnection.ts"
import { Metrics, type MetricsWriter } from "../../src/platform/telemetry/Metrics.ts"
import { createMigratedDatabase } from "../harness/TestDatabase.ts"
import { testReturnUrls } from "../harness/TestService.ts"
import { describe, expect, it } from "../harness/Tests.ts"
import { expectFailure } from "../surface/http/Refusals.ts"
import { makeOrganization, type StartedService, startService } from "../surface/http/StartedService.ts"

const platformKey = "sk_test_theplatformitself"

/** One database and one provider, and processes with the platform's key or with another one's. */
const installation = Effect.gen(function* () {
  const database = yield* createMigratedDatabase
  const emulator = yield* makeEmulator({
    secretKey: platformKey,
    webhookSecret: "whsec_x",
    thinWebhookSecret: "whsec_y"
  })
  const start = (secretKey: string, apiUrl = emulator.url) =>
    startService({
      databaseUrl: database.url,
      provider: {
        sandbox: Option.some({ secretKey: Redacted.make(secretKey), webhookSecrets: [Redacted.make("whsec_x")] }),
        production: Option.none(),
        apiUrl: Option.some(new URL(apiUrl)),
        timeout: "5 seconds",
        ...testReturnUrls
      }
    })
  const newTenant = (service: StartedService) =>
    Effect.gen(function* () {
      const { id, key } = yield* makeOrganization(service.services, { name: `org-${randomUUID()}` })
      const accountId = yield* emulator.ensureAccount()
      const tenant = { organizationId: id, environment: "sandbox" } as const
      yield* Context.get(service.services, Accounts).link(tenant, accountId)
      const get = ({ request }: StartedService) => request("GET", `/v2/organizations/${id}/provider/balance`, { key })
      const status = Effect.map(
        Context.get(service.services, Accounts).show(tenant),
        Option.match({ onNone: () => null, onSome: ({ status }) => status })
      )
      return { accountId, get, status, tenant }
    })
  return { emulator, start, newTenant }
})

const platformIn = ({ sql }: StartedService) =>
  Effect.map(
    sql<{ id: string }>`SELECT platform_id AS id FROM payments.provider_platforms WHERE environment = 'sandbox'`,
    ([row]) => row?.id
  )

const forget = ({ sql }: StartedService) => sql`DELETE FROM payments.provider_platforms`

/** As a process of the platform that loses its key: it started when no account was linked yet. */
const withStranger = Effect.gen(function* () {
  const { start, ...rest } = yield* installation
  const counted: Array<ReadonlyArray<string>> = []
  const nothing = () => {}
  const metrics: MetricsWriter = {
    count: (name, attributes) => void counted.push([name, ...attributes]),
    record: nothing,
    set: nothing,
    observe: () => Effect.void
  }
  const wrong = yield* Effect.provideService(start(anotherPlatformKey), Metrics, metrics)
  return { ...rest, start, wrong, counted, right: yield* start(platformKey) }
})

const denied = { status: 502, code: "provider_permission_denied", fields: [] }

describe("a valid key of another platform", () => {
  it.scopedLive("disconnects nothing: its own calls fail, those of the right key do not", function* () {
    const { counted, newTenant, right, wrong } = yield* withStranger
    const { get, status } = yield* newTenant(right)
    expect(yield* platformIn(right)).toBe("acct_EmulatorPlatform")
    for (const _ of [1, 2]) expectFailure(yield* get(wrong), denied)
    expect(yield* status).toBe("connected")
    expect((yield* get(right)).status).toBe(200)
    const errors = wrong.log.filter(({ level }) => level === "ERROR").map(({ text }) => text)
    expect(errors.join("\n")).toContain("PROVIDER_SANDBOX_SECRET_KEY is a key of another platform")
    expect(wrong.log.map(({ text }) => text).join("\n")).not.toContain(anotherPlatformKey)
    expect(counted.filter(([name]) => name === "connected_payments.provider.access.refused.count")).toEqual(
      Array(2).fill(["connected_payments.provider.access.refused.count", "sandbox", "another"])
    )
  })

  it.scopedLive("does not start a process, which says which setting is wrong, and not what the key is", function* () {
    const { newTenant, start } = yield* installation
    const right = yield* start(platformKey)
    // Nothing is linked yet: which platform it will be is open
    yield* Effect.scoped(start(anotherPlatformKey))
    yield* newTenant(right)
    const refused = yield* Effect.flip(Effect.scoped(start(anotherPlatformKey)))
    expect(refused).toMatchObject({ _tag: "AnotherPlatform" })
    const { message } = Object(refused)
    expect(message).toMatch(/^PROVIDER_SANDBOX_SECRET_KEY: .* acct_AnotherPlatform, .* under acct_EmulatorPlatform/)
    expect(message).not.toContain(anotherPlatformKey)
    yield* Effect.scoped(start(platformKey))
  })

  it.scopedLive("creates no second account for an organization whose own can't be reached with it", function* () {
    const { newTenant, right, wrong } = yield* withStranger
    const { accountId, tenant } = yield* newTenant(right)
    yield* right.sql`UPDATE payments.provider_accounts SET status = 'disconnected', disconnected_at = now()`
    const onboarding = Context.get(wrong.services, AccountConnection).startOnboarding(tenant, {
      kind: "operator",
      id: "test"
    })
    expect(yield* Effect.flip(onboarding)).toMatchObject({ code: "provider_permission_denied" })
    expect(yield* right.sql`SELECT 1 FROM payments.account_onboardings`).toEqual([])
    expect(Option.map(yield* Context.get(right.services, Accounts).show(tenant), (known) => known.accountId)).toEqual(
      Option.some(accountId)
    )
  })

  it.scopedLive("takes the former one's place once none of its accounts is connected, and not before", function* () {
    const { newTenant, start } = yield* installation
    const service = yield* start(platformKey)
    const { tenant } = yield* newTenant(service)
    yield* service.sql`UPDATE payments.provider_platforms SET platform_id = 'acct_Former'`
    expect(yield* Effect.flip(newTenant(service))).toMatchObject({ code: "provider_permission_denied" })
    yield* Context.get(service.services, Accounts).unlink(tenant, { kind: "operator", id: "test" })
    yield* newTenant(service)
    expect(yield* platformIn(service)).toBe("acct_EmulatorPlatform")
  })
})

describe("accounts that were linked before their platform was recorded", () => {
  it.scopedLive("get it at the next start with a key that reaches one of them", function* () {
    const { newTenant, start } = yield* installation
    const right = yield* start(platformKey)
    yield* newTenant(right)
    yield* forget(right)
    yield* Effect.scoped(start(anotherPlatformKey))
    expect(yield* platformIn(right)).toBeUndefined()
    yield* Effect.scoped(start(platformKey))
    expect(yield* platformIn(right)).toBe("acct_EmulatorPlatform")
    expect(yield* Effect.flip(Effect.scoped(start(anotherPlatformKey)))).toMatchObject({ _tag: "AnotherPlatform" })
  })

  it.scopedLive("are disconnected by a key only that reaches another one of them", function* () {
    const { emulator, newTenant, right, wrong } = yield* withStranger
    const alone = yield* newTenant(right)
    yield* forget(right)
    yield* emulator.revokeAccount(alone.accountId)
    expectFailure(yield* alone.get(right), denied)
    expect(yield* alone.status).toBe("connected")
    const other = yield* newTenant(right)
    yield* forget(right)
    expectFailure(yield* alone.get(wrong), denied)
    expect(yield* alone.status).toBe("connected")
    expectFailure(yield* alone.get(right), { status: 409, code: "provider_account_not_connected" })
    expect([yield* alone.status, yield* other.status]).toEqual(["disconnected", "connected"])
    expect(yield* platformIn(right)).toBe("acct_EmulatorPlatform")
  })
})

describe("a provider that can't be asked", () => {
  it.scopedLive("keeps no process from starting, which warns", function* () {
    const { newTenant, start } = yield* installation
    yield* newTenant(yield* start(platformKey))
    const { log } = yield* start(platformKey, "http://127.0.0.1:9")
    expect(
      log
        .filter(({ level }) => level === "WARN")
        .map(({ text }) => text)
        .join()
    ).toContain("could not be asked which platform PROVIDER_SANDBOX_SECRET_KEY is of")
  })
})
