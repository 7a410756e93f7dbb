import { expect, vi } from "@effect/vitest"
import { Context, Deferred, Duration, Effect, Fiber } from "effect"
import pg from "pg"
import { credentialPolicies } from "../../../src/identity/keys/CredentialLimits.ts"
import { Keys, presentedKey } from "../../../src/identity/keys/Keys.ts"
import { inDatabase, onOneService, TestService } from "../../harness/TestService.ts"

const policies = credentialPolicies(600)
const nothing = { own: 0, returned: 0, organization: 0, organizationReturned: 0 } as const
const onApi = onOneService({ roles: { api: true, worker: false } })

/** A new key, and what the service says about it if no tokens are taken, as for most requests of a busy key. */
const newKey = (options: { readonly expiresAt?: Date } = {}) =>
  Effect.gen(function* () {
    const { clock, makeKey, organization, services } = yield* TestService
    const keys = Context.get(services, Keys)
    const tenant = { organizationId: organization.id, environment: "sandbox" } as const
    const text = yield* makeKey(organization.id, ["products:read"], options)
    const record = (yield* keys.list(tenant)).find(({ lastFour }) => lastFour === text.slice(-4))
    const id = record?.id ?? ""
    const admit = Effect.withClock(keys.admit(presentedKey(text), policies, nothing), clock)
    return {
      id,
      refusal: Effect.map(Effect.flip(admit), ({ _tag }) => _tag),
      principal: Effect.map(admit, ({ principal }) => principal),
      revoke: keys.revoke(tenant, id, { kind: "operator", id: "test" })
    }
  })

type Query = pg.Client["query"]

/** Holds the answer of the next look-up of a key, which the database has given, until it is let go. */
const holdingTheNextAnswer = Effect.gen(function* () {
  const given = yield* Deferred.make<void>()
  const letGo = yield* Deferred.make<void>()
  const query = pg.Client.prototype.query
  let holds = true
  yield* Effect.acquireRelease(
    Effect.sync(() =>
      vi.spyOn(pg.Client.prototype, "query").mockImplementation(function (
        this: pg.Client,
        ...args: ReadonlyArray<unknown>
      ) {
        const callback = args.at(-1)
        if (!holds || !JSON.stringify(args[0]).includes("key_hash") || typeof callback !== "function") {
          return Reflect.apply(query, this, args)
        }
        holds = false
        const later = (...answer: ReadonlyArray<unknown>) => {
          Deferred.unsafeDone(given, Effect.void)
          Effect.runCallback(Deferred.await(letGo), { onExit: () => Reflect.apply(callback, undefined, answer) })
        }
        return Reflect.apply(query, this, [...args.slice(0, -1), later])
        // The many overloads of `query` come down to its arguments
      } as Query)
    ),
    (spy) => Effect.sync(() => spy.mockRestore())
  )
  return { given: Deferred.await(given), letGo: Deferred.succeed(letGo, undefined) }
})

const revokedElsewhere = (id: string) => inDatabase`UPDATE payments.api_keys SET revoked_at = now() WHERE id = ${id}`

onApi("the remembered look-up of a key", (it) => {
  it.effect("serves for half a second, and is then made again", () =>
    Effect.gen(function* () {
      const { clock, passTime } = yield* TestService
      const { id, principal, refusal } = yield* newKey()
      clock.hold(true)
      const first = yield* principal
      yield* revokedElsewhere(id)
      expect(yield* principal).toBe(first)
      yield* passTime(Duration.millis(499))
      expect(yield* principal).toBe(first)
      yield* passTime(Duration.millis(1))
      expect(yield* refusal).toBe("ApiKeyInvalid")
      expect(yield* refusal).toBe("ApiKeyInvalid")
    }).pipe(Effect.ensuring(Effect.map(TestService, ({ clock }) => clock.hold(false))))
  )

  it.effect("does not outlive a revocation by the same process", function* () {
    const { principal, refusal, revoke } = yield* newKey()
    yield* principal
    expect(yield* revoke).toBe(true)
    expect(yield* refusal).toBe("ApiKeyInvalid")
  })

  it.scoped("is not kept if it was read before a revocation and answered after it", function* () {
    const { principal, refusal, revoke } = yield* newKey()
    const answer = yield* holdingTheNextAnswer
    const reading = yield* Effect.fork(principal)
    yield* answer.given
    yield* revoke
    yield* answer.letGo
    yield* Fiber.join(reading)
    expect(yield* refusal).toBe("ApiKeyInvalid")
  })

  it.effect("lasts no longer than the key", () =>
    Effect.gen(function* () {
      const { clock, passTime } = yield* TestService
      const { id, principal, refusal } = yield* newKey({ expiresAt: new Date(Date.now() + 60_000) })
      clock.hold(true)
      yield* principal
      yield* revokedElsewhere(id)
      yield* passTime(Duration.minutes(1))
      expect(yield* refusal).toBe("ApiKeyInvalid")
    }).pipe(Effect.ensuring(Effect.map(TestService, ({ clock }) => clock.hold(false))))
  )
})
