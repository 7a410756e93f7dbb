import { randomUUID } from "node:crypto"
import { expect } from "@effect/vitest"
import { Context, Effect, Layer, Option } from "effect"
import { Organizations } from "../../src/identity/organizations/Organizations.ts"
import { Accounts } from "../../src/payments/Accounts.ts"
import { Provider } from "../../src/payments/Provider.ts"
import { AccountAccessRevoked } from "../../src/payments/ProviderErrors.ts"
import type { Author, Tenant } from "../../src/platform/kit/Tenant.ts"
import { eventuallyIs } from "../harness/Eventually.ts"
import { onSharedServiceWithWorker, TestService } from "../harness/TestService.ts"

const operator: Author = { kind: "operator", id: "root" }

const makeTenant = Effect.gen(function* () {
  const { services, sql } = yield* TestService
  const name = `o${Math.random().toString(36).slice(2)}`
  const { id } = yield* Context.get(services, Organizations).create({ name, ownerEmail: `${name}@example.com` })
  const tenant: Tenant = { organizationId: id, environment: "sandbox" }
  const audited = Effect.map(
    sql<{ entry: string }>`
      SELECT concat_ws(' ', action, target_id, author_kind, author_id, environment) AS entry FROM payments.audit_log
      WHERE organization_id = ${id} AND action LIKE 'account.%' ORDER BY id`,
    (rows) => rows.map(({ entry }) => entry)
  )
  const disconnect = sql`
    UPDATE payments.provider_accounts SET status = 'disconnected', disconnected_at = now()
    WHERE organization_id = ${id}`
  const noteFirstPayment = sql`
    UPDATE payments.provider_accounts SET first_payment_event_id = 'evt_first' WHERE organization_id = ${id}`
  const firstPayment = Effect.map(
    sql<{ event: string | null }>`
      SELECT first_payment_event_id AS event FROM payments.provider_accounts WHERE organization_id = ${id}`,
    ([row]) => row?.event
  )
  return { tenant, audited, disconnect, noteFirstPayment, firstPayment }
})

const provide = Effect.map(TestService, ({ services }) => Context.get(services, Accounts))

onSharedServiceWithWorker("accounts", (it) => {
  it.effect("are linked after a look at the provider, shown as recorded, and audited with their author", function* () {
    const accounts = yield* provide
    const { emulator } = yield* TestService
    const { audited, tenant } = yield* makeTenant
    expect(yield* accounts.show(tenant)).toEqual(Option.none())
    const id = yield* emulator.ensureAccount()
    const linked = yield* accounts.link(tenant, id, operator)
    expect(linked).toEqual({
      accountId: id,
      status: "connected",
      linkedBy: "operator",
      hadPaymentsBefore: false,
      linkedAt: expect.any(Date),
      disconnectedAt: null
    })
    expect(yield* accounts.show(tenant)).toEqual(Option.some(linked))
    expect(yield* accounts.show({ ...tenant, environment: "production" })).toEqual(Option.none())
    expect(yield* audited).toEqual([`account.linked ${id} operator root sandbox`])
    expect(yield* accounts.use(tenant, ({ accountId }) => Effect.succeed(accountId))).toBe(id)
  })

  it.effect("that the provider does not know are not linked, and nothing is changed", function* () {
    const accounts = yield* provide
    const { emulator } = yield* TestService
    const { audited, tenant } = yield* makeTenant
    const refused = yield* Effect.flip(accounts.link(tenant, "acct_0000000000000000", operator))
    expect(refused._tag).toBe("AccountAccessRevoked")
    expect(yield* accounts.show(tenant)).toEqual(Option.none())
    const before = yield* accounts.link(tenant, yield* emulator.ensureAccount(), operator)
    yield* Effect.flip(accounts.link(tenant, "acct_0000000000000000", operator))
    expect(yield* accounts.show(tenant)).toEqual(Option.some(before))
    expect(yield* audited).toHaveLength(1)
  })

  it.effect(
    "had none before where all of the provider's charges failed: the first one that succeeds is the milestone, and " +
      "had some once the account is linked anew, not while it is connected",
    function* () {
      const accounts = yield* provide
      const { emulator, sql } = yield* TestService
      const { disconnect, tenant } = yield* makeTenant
      const accountId = yield* emulator.ensureAccount()
      yield* emulator.trigger({ type: "payment_intent.payment_failed", account: accountId })
      expect(yield* accounts.link(tenant, accountId, operator)).toMatchObject({ hadPaymentsBefore: false })
      yield* emulator.trigger({ type: "payment_intent.succeeded", account: accountId })
      yield* eventuallyIs(
        "the milestone",
        sql`
            SELECT 1 FROM payments.events
            WHERE organization_id = ${tenant.organizationId} AND type = 'milestone.first_payment'`,
        (rows) => rows.length > 0
      )
      expect(yield* accounts.link(tenant, accountId, operator)).toMatchObject({ hadPaymentsBefore: false })
      yield* disconnect
      expect(yield* accounts.link(tenant, accountId, operator)).toMatchObject({ hadPaymentsBefore: true })
    }
  )

  it.effect("once disconnected are used by nobody until a new link connects them again", function* () {
    const accounts = yield* provide
    const { emulator } = yield* TestService
    const { audited, disconnect, firstPayment, noteFirstPayment, tenant } = yield* makeTenant
    const id = yield* emulator.ensureAccount()
    yield* accounts.link(tenant, id, operator)
    yield* noteFirstPayment
    yield* disconnect
    expect(Option.getOrThrow(yield* accounts.show(tenant))).toMatchObject({
      status: "disconnected",
      disconnectedAt: expect.any(Date)
    })
    expect((yield* Effect.flip(accounts.use(tenant, () => Effect.void)))._tag).toBe("ProviderAccountNotConnected")
    expect(yield* accounts.link(tenant, id, operator)).toMatchObject({ status: "connected", disconnectedAt: null })
    expect(yield* firstPayment).toBe("evt_first")
    yield* accounts.use(tenant, () => Effect.void)
    expect(yield* audited).toEqual([
      `account.linked ${id} operator root sandbox`,
      `account.linked ${id} operator root sandbox`
    ])
  })

  it.effect("that the provider gives no access to are disconnected once, on record as its doing", function* () {
    const accounts = yield* provide
    const { emulator, sql } = yield* TestService
    const { audited, tenant } = yield* makeTenant
    yield* accounts.link(tenant, yield* emulator.ensureAccount(), operator)
    const gone = `acct_${randomUUID().replaceAll("-", "")}`
    yield* sql`
        UPDATE payments.provider_accounts SET account_id = ${gone} WHERE organization_id = ${tenant.organizationId}`
    const call = Effect.flip(accounts.use(tenant, () => Effect.fail(new AccountAccessRevoked({ accountId: gone }))))
    const refused = yield* Effect.all([call, call, call], { concurrency: "unbounded" })
    expect(refused.map(({ _tag }) => _tag)).toEqual(Array.from({ length: 3 }, () => "ProviderAccountNotConnected"))
    const disconnections = (yield* audited).filter((entry) => entry.startsWith("account.disconnected"))
    expect(disconnections).toEqual([`account.disconnected ${gone} provider stripe sandbox`])
  })

  for (const [what, isConnected] of [
    ["that are connected", true],
    ["that were disconnected meanwhile", false]
  ] as const) {
    it.effect(`${what} stay connected if linked while an older call is told that access was revoked`, function* () {
      const accounts = yield* provide
      const { emulator, services } = yield* TestService
      const { disconnect, tenant } = yield* makeTenant
      const accountId = yield* emulator.ensureAccount()
      yield* accounts.link(tenant, accountId, operator)
      const provider = Context.get(services, Provider)
      const revoked = new AccountAccessRevoked({ accountId })
      // Its owner gives access again before the answer arrives
      const late: Provider["Type"] = {
        ...provider,
        retrieveAccount: () =>
          Effect.zipRight(
            isConnected ? Effect.void : Effect.orDie(disconnect),
            accounts.link(tenant, accountId, operator)
          ).pipe(Effect.orDie, Effect.zipRight(revoked))
      }
      const { use } = yield* Layer.build(Accounts.layer).pipe(
        Effect.map(Context.get(Accounts)),
        Effect.provide(Context.add(services, Provider, late)),
        Effect.scoped
      )
      expect((yield* Effect.flip(use(tenant, () => revoked)))._tag).toBe("ProviderAccountNotConnected")
      expect(Option.getOrThrow(yield* accounts.show(tenant)).status).toBe("connected")
    })
  }

  it.effect("take a disconnected account's place, never a connected one's", function* () {
    const accounts = yield* provide
    const { emulator } = yield* TestService
    const { audited, disconnect, firstPayment, noteFirstPayment, tenant } = yield* makeTenant
    const [first, second] = [yield* emulator.ensureAccount(), yield* emulator.ensureAccount()]
    const before = yield* accounts.link(tenant, first, operator)
    yield* noteFirstPayment
    expect(yield* Effect.flip(accounts.link(tenant, second, operator))).toMatchObject({
      _tag: "AccountTaken",
      reason: "another_account"
    })
    expect(yield* accounts.show(tenant)).toEqual(Option.some(before))
    yield* disconnect
    expect(yield* accounts.link(tenant, second, operator)).toMatchObject({ accountId: second, status: "connected" })
    expect(yield* firstPayment).toBe(null)
    expect(yield* audited).toEqual([
      `account.linked ${first} operator root sandbox`,
      `account.unlinked ${first} operator root sandbox`,
      `account.linked ${second} operator root sandbox`
    ])
  })

  it.effect("belong to one organization; one that is unlinked can be linked to another", function* () {
    const accounts = yield* provide
    const { emulator } = yield* TestService
    const mine = yield* makeTenant
    const other = yield* makeTenant
    const id = yield* emulator.ensureAccount()
    const linked = yield* accounts.link(mine.tenant, id, operator)
    expect(yield* Effect.flip(accounts.link(other.tenant, id, operator))).toMatchObject({
      _tag: "AccountTaken",
      reason: "another_organization"
    })
    expect(yield* other.audited).toEqual([])
    expect(yield* accounts.unlink(mine.tenant, operator)).toEqual(Option.some(linked))
    expect(yield* accounts.unlink(mine.tenant, operator)).toEqual(Option.none())
    expect(yield* accounts.show(mine.tenant)).toEqual(Option.none())
    expect(yield* mine.audited).toEqual([
      `account.linked ${id} operator root sandbox`,
      `account.unlinked ${id} operator root sandbox`
    ])
    yield* accounts.link(other.tenant, id, operator)
    const refused = yield* Effect.flip(accounts.use(mine.tenant, () => Effect.void))
    expect(refused._tag).toBe("ProviderAccountNotConnected")
  })

  it.effect("linked by many at once end with one, each of the others refused", function* () {
    const accounts = yield* provide
    const { emulator } = yield* TestService
    const { audited, tenant } = yield* makeTenant
    const ids = yield* Effect.replicateEffect(emulator.ensureAccount(), 6)
    const results = yield* Effect.forEach(ids, (id) => Effect.either(accounts.link(tenant, id, operator)), {
      concurrency: "unbounded"
    })
    expect(results.filter(({ _tag }) => _tag === "Right")).toHaveLength(1)
    expect(yield* audited).toHaveLength(1)
  })

  it.effect("linked by several requests at once are linked, and on record, once", function* () {
    const accounts = yield* provide
    const { emulator } = yield* TestService
    const { audited, disconnect, tenant } = yield* makeTenant
    const id = yield* emulator.ensureAccount()
    const linkAtOnce = Effect.replicateEffect(accounts.link(tenant, id, operator), 6, { concurrency: "unbounded" })
    const entry = `account.linked ${id} operator root sandbox`
    const [first, ...others] = yield* linkAtOnce
    expect(others.filter(({ linkedAt }) => linkedAt.getTime() !== first?.linkedAt.getTime())).toEqual([])
    expect(yield* audited).toEqual([entry])
    yield* disconnect
    yield* linkAtOnce
    expect(yield* audited).toEqual([entry, entry])
  })
})
