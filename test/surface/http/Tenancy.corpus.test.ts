import { createHash } from "node:crypto"
import { expect } from "@effect/vitest"
import { Context, Effect, Layer, Option, SchemaAST } from "effect"
import { permissions as allPermissions, type Grant } from "../../../src/identity/keys/Permissions.ts"
import { operations } from "../../../src/surface/contract/Api.ts"
import { type Operation, operationKey } from "../../../src/surface/contract/Operations.ts"
import { someOf } from "../../harness/Corpus.ts"
import { inDatabase, onSharedService, type RequestOptions, TestService } from "../../harness/TestService.ts"
import { expectFailure } from "./Refusals.ts"
import {
  attemptsThatChangeNothing,
  authenticatedOperations,
  changesNothing,
  isProviderOperation,
  makeThings,
  optionsOf,
  pathOf,
  sampleOf,
  samples,
  type Things
} from "./Samples.ts"

class Fixture extends Context.Tag("test/Tenancy/Fixture")<
  Fixture,
  {
    readonly mine: Things
    readonly production: Things
    readonly strangers: Things
    readonly keys: Readonly<Record<"revoked" | "expired" | "star" | "webhooks", string>>
    /** A key with exactly these permissions: the same one each time, since an organization has few. */
    readonly keyWith: (permissions: ReadonlyArray<Grant>) => Effect.Effect<string>
  }
>() {
  static readonly layer = Layer.effect(
    Fixture,
    Effect.gen(function* () {
      const service = yield* TestService
      const { makeKey, organization, sql, stranger } = service
      const everything: ReadonlyArray<Grant> = ["*", "webhook-endpoints:*"]
      const hashOf = (key: string) => createHash("sha256").update(key).digest()
      const revoked = yield* makeKey(organization.id, everything)
      yield* sql`UPDATE payments.api_keys SET revoked_at = now() WHERE key_hash = ${hashOf(revoked)}`
      const expired = yield* makeKey(organization.id, everything)
      yield* sql`
        UPDATE payments.api_keys SET expires_at = now() - interval '1 second' WHERE key_hash = ${hashOf(expired)}`
      const made = new Map<string, string>()
      const keyWith = (permissions: ReadonlyArray<Grant>) =>
        Effect.gen(function* () {
          const name = permissions.join()
          const key = made.get(name) ?? (yield* Effect.orDie(makeKey(organization.id, permissions)))
          made.set(name, key)
          return key
        })
      return {
        keyWith,
        mine: yield* makeThings(service, { organizationId: organization.id, key: organization.testKey }),
        production: yield* makeThings(service, {
          organizationId: organization.id,
          key: organization.liveKey,
          environment: "production"
        }),
        strangers: yield* makeThings(service, { organizationId: stranger.id, key: stranger.testKey }),
        keys: {
          revoked,
          expired,
          star: yield* makeKey(organization.id, ["*"]),
          webhooks: yield* makeKey(organization.id, ["webhook-endpoints:*"])
        }
      }
    }).pipe(Effect.orDie)
  )
}

/** Requests that are all refused don't mind each other. */
const atOnce = { concurrency: "unbounded", discard: true } as const

/** Sends an operation's good request with other credentials, to another organization, or about other things. */
const send = (operation: Operation, how: { organizationId?: string; things?: Things; credential: RequestOptions }) =>
  Effect.gen(function* () {
    const { organization, request } = yield* TestService
    const { mine } = yield* Fixture
    const { headers, ...rest } = optionsOf(operation, how.things ?? mine)
    const path = pathOf(operation, how.organizationId ?? organization.id, how.things ?? mine)
    return yield* request(operation.method, path, {
      ...rest,
      ...how.credential,
      headers: { ...headers, ...how.credential.headers }
    })
  })

const takesCursor = ({ endpoint }: Operation): boolean =>
  Option.exists(endpoint.urlParamsSchema, ({ ast }) =>
    SchemaAST.getPropertySignatures(SchemaAST.encodedAST(ast)).some(({ name }) => name === "starting_after")
  )

const unknownCursor = (operation: Operation): string =>
  isProviderOperation(operation)
    ? "unknown_cursor"
    : /\/(skipped|events)$/.test(operation.path)
      ? `svc_evt_${"0".repeat(64)}`
      : "01a1fcfb-855f-758a-8a83-c113f9e1051b"

/** Places in the lists of others, where these have any. */
const cursorsIn = (operation: Operation, things: Things) =>
  Effect.gen(function* () {
    const records = yield* inDatabase<{ id: string }>`
      SELECT id FROM payments.audit_log WHERE target_id = ${things.endpointId}`
    const cursors: Readonly<Record<string, ReadonlyArray<string>>> = {
      deliveries: [things.deliveryId],
      "checkout-pages": [things.checkoutPageId],
      recoveries: [things.recoveryId],
      replays: [things.replayId],
      events: [things.eventId],
      "audit-log": records.map(({ id }) => id)
    }
    return cursors[operation.path.split("/").at(-1) ?? ""] ?? []
  }).pipe(Effect.orDie)

const openOperations = [
  "GET /health/live",
  "GET /health/ready",
  "POST /webhooks/provider",
  "POST /webhooks/provider/thin",
  "GET /product-images/:file",
  "GET /pay/:slug",
  "POST /pay/:slug",
  "GET /pay/:slug/thanks",
  "POST /identity/sign-in-links",
  "GET /identity/sign-in",
  "POST /identity/session",
  "POST /identity/sign-in/preview",
  "GET /identity/invitation",
  "POST /identity/invitation",
  "POST /identity/invitation/preview",
  "GET /identity/account/return",
  "GET /identity/account/refresh",
  "GET /identity/account/oauth/return"
]

/** Operations that are open to every key, whatever its permissions. */
const keyOperations = ["GET /identity/api-key"]

/** Operations of a signed-in person: no permission of a key opens them. */
const personalOperations = operations.filter(
  ({ method, path, permission }) =>
    permission === undefined &&
    path.startsWith("/identity") &&
    ![...openOperations, ...keyOperations].includes(operationKey(method, path))
)

onSharedService("tenancy", (it) => {
  it.layer(Fixture.layer, { timeout: "4 minutes" })("of every operation", (it) => {
    it.effect("holds by a sample of every operation, and only the named ones are open to all", () =>
      Effect.sync(() => {
        for (const operation of authenticatedOperations) {
          expect(operation.permission, operation.path).toBe(sampleOf(operation).permission)
        }
        const keys = operations.map(({ method, path }) => operationKey(method, path))
        expect(Object.keys(samples).filter((key) => !keys.includes(key))).toEqual([])
        const open = operations.filter(
          (operation) => operation.permission === undefined && !personalOperations.includes(operation)
        )
        expect(open.map(({ method, path }) => operationKey(method, path)).toSorted()).toEqual(
          [...openOperations, ...keyOperations].toSorted()
        )
      })
    )

    it.effect("keeps what is a signed-in person's from everybody else, keys included", () =>
      changesNothing(function* () {
        const { organization, request } = yield* TestService
        expect(personalOperations.length).toBeGreaterThan(10)
        for (const { method, path } of personalOperations) {
          const url = path.replaceAll(/:\w+/g, "0199c0de-0000-7000-8000-000000000001")
          const cookie = `__Host-svc_session=${"A".repeat(43)}`
          const withKey = yield* request(method, url, { key: organization.testKey })
          expectFailure(withKey, { status: 401, code: "authentication_required" }, `${method} ${path}`)
          const withCookie = yield* request(method, url, { headers: { cookie } })
          expectFailure(withCookie, { status: 401, code: "session_invalid" }, `${method} ${path}`)
        }
      })
    )

    for (const [turn, operation] of authenticatedOperations.entries()) {
      const name = operationKey(operation.method, operation.path)
      const needed = sampleOf(operation).permission
      const others = allPermissions.filter((permission) => permission !== needed)
      /** Keys with every permission but the operation's own, and with none. */
      const keysWithout = Effect.flatMap(Fixture, ({ keyWith }) => Effect.all([keyWith(others), keyWith([])]))
      // Making a key is a change
      const { attempt, expectNoChange } = attemptsThatChangeNothing(keysWithout)

      it.effect(`${name} refuses every credential that is not good`, () =>
        attempt(function* () {
          const { organization } = yield* TestService
          const { keys } = yield* Fixture
          const missing: ReadonlyArray<RequestOptions> = [
            {},
            { headers: { authorization: `Bearer ${organization.testKey}` } },
            { headers: { cookie: `x-api-key=${organization.testKey}` } }
          ]
          const invalid = [
            `pk_test_${"A".repeat(43)}`,
            "nonsense",
            organization.testKey.toUpperCase(),
            `${organization.testKey}A`,
            organization.testKey.repeat(20),
            organization.testKey.replace("pk_test_", "pk_live_"),
            keys.revoked,
            keys.expired
          ]
          const refused = [
            ...missing.map((credential) => ["authentication_required", credential] as const),
            ...invalid.map((key) => ["api_key_invalid", { key }] as const)
          ]
          yield* Effect.forEach(
            someOf(refused, turn),
            ([code, credential]) =>
              Effect.map(send(operation, { credential }), (answer) =>
                expectFailure(answer, { status: 401, code, fields: [] }, JSON.stringify(credential).slice(0, 40))
              ),
            atOnce
          )
        })
      )

      it.effect(`${name} takes no credential from the query or the body`, () =>
        attempt(function* () {
          const { organization, request } = yield* TestService
          const { mine } = yield* Fixture
          const { body, headers } = optionsOf(operation, mine)
          const secret = { "x-api-key": organization.testKey, api_key: organization.testKey }
          const query = new URLSearchParams(secret)
          const answer = yield* request(operation.method, `${pathOf(operation, organization.id, mine)}?${query}`, {
            headers,
            ...(body === undefined ? {} : { body: { ...Object(body), ...secret } })
          })
          expectFailure(answer, { status: 401, code: "authentication_required" })
          expect(answer.text).not.toContain(organization.testKey)
        })
      )

      it.effect(`${name} is closed to other organizations' keys, whether the organization exists or not`, () =>
        attempt(function* () {
          const { organization, stranger } = yield* TestService
          const denied = (organizationId: string, key: string) =>
            Effect.map(send(operation, { organizationId, credential: { key } }), (answer) =>
              expectFailure(answer, { status: 403, code: "organization_access_denied", fields: [] })
            )
          const key = organization.testKey
          const malformed = (organizationId: string) =>
            Effect.map(send(operation, { organizationId, credential: { key } }), (answer) =>
              expectFailure(
                answer,
                { status: 422, code: "validation_failed", fields: ["organizationId"] },
                organizationId
              )
            )
          const refusals = [
            denied(organization.id, stranger.testKey),
            denied(organization.id, stranger.liveKey),
            denied(stranger.id, key),
            denied("01a1fcfb-855f-758a-8a83-c113f9e1051b", key),
            ...["not-a-uuid", "00000000", `${organization.id}x`, "%00", "%ff"].map(malformed)
          ]
          yield* Effect.all(someOf(refusals, turn), atOnce)
        })
      )

      if (takesCursor(operation)) {
        it.effect(`${name} refuses a starting_after that is none of the tenant's own`, function* () {
          const { organization, request } = yield* TestService
          const { mine, production, strangers } = yield* Fixture
          const path = pathOf(operation, organization.id, mine)
          const cursors = yield* Effect.forEach([strangers, production], (things) => cursorsIn(operation, things))
          for (const cursor of [unknownCursor(operation), ...cursors.flat()]) {
            const answer = yield* request("GET", `${path}?starting_after=${cursor}`, { key: organization.testKey })
            // The provider's word for a parameter of its own (contract 12.3)
            const code = isProviderOperation(operation) ? "provider_resource_missing" : "validation_failed"
            expectFailure(answer, { status: 422, code, fields: ["starting_after"] }, cursor)
          }
        })
      }

      it.effect(`${name} refuses a key that has every permission but its own`, function* () {
        const { keys } = yield* Fixture
        const isWebhook = needed.startsWith("webhook-endpoints:")
        const code = isWebhook ? "endpoint_management_forbidden" : "permission_denied"
        const [without, nothing] = yield* keysWithout
        yield* attempt(function* () {
          for (const key of [without, nothing, isWebhook ? keys.star : keys.webhooks]) {
            const answer = yield* send(operation, { credential: { key } })
            expectFailure(answer, { status: 403, code, fields: [] })
            expect(answer.json["error"]).toContain(needed)
          }
        })
      })

      if (sampleOf(operation).id !== undefined) {
        it.effect(`${name} knows nothing of another tenant's or another environment's things`, () =>
          attempt(function* () {
            const { organization } = yield* TestService
            const { production, strangers, mine } = yield* Fixture
            const provider = isProviderOperation(operation)
            const absent = (key: string, things: Things, refusal: { status: number; code: string }) =>
              Effect.map(send(operation, { credential: { key }, things }), (answer) => expectFailure(answer, refusal))
            const notFound = { status: 404, code: provider ? "provider_resource_missing" : "resource_not_found" }
            const notConnected = { status: 409, code: "provider_account_not_connected" }
            yield* Effect.all(
              [
                absent(organization.testKey, strangers, notFound),
                absent(organization.testKey, production, notFound),
                absent(organization.liveKey, mine, provider ? notConnected : notFound),
                absent(organization.liveKey, strangers, provider ? notConnected : notFound)
              ],
              atOnce
            )
          })
        )
      }

      if (isProviderOperation(operation)) {
        it.effect(`${name} does not reach the sandbox account with a live key`, () =>
          attempt(function* () {
            const { organization } = yield* TestService
            const answer = yield* send(operation, { credential: { key: organization.liveKey } })
            expectFailure(answer, { status: 409, code: "provider_account_not_connected", fields: [] })
          })
        )
      }

      it.effect(`${name} changes nothing by any of these refusals`, () => expectNoChange)

      it.effect(`${name} passes with exactly its permission, in sandbox`, function* () {
        const { keyWith } = yield* Fixture
        const key = yield* keyWith([sampleOf(operation).permission])
        const answer = yield* send(operation, { credential: { key } })
        expect(answer.status, answer.text).toBe(sampleOf(operation).status ?? 200)
      })
    }

    it.effect("keeps a stranger's objects out of bodies and cursors too", () =>
      changesNothing(function* () {
        const { organization, request } = yield* TestService
        const { strangers } = yield* Fixture
        const base = `/v2/organizations/${organization.id}`
        const key = organization.testKey
        const price = yield* request("POST", `${base}/provider/prices`, {
          key,
          headers: { "idempotency-key": "strangers-product" },
          body: { product: strangers.productId, currency: "brl", unit_amount: 100 }
        })
        expectFailure(price, { status: 422, code: "provider_resource_missing", fields: ["product"] })
        const session = yield* request("POST", `${base}/provider/checkout/sessions`, {
          key,
          headers: { "idempotency-key": "strangers-price" },
          body: { mode: "payment", line_items: [{ price: strangers.priceId, quantity: 1 }] }
        })
        expectFailure(session, { status: 422, code: "provider_resource_missing", fields: ["line_items.0.price"] })
      })
    )

    it.effect("lists each environment's endpoints for its own keys alone", function* () {
      const { organization, request } = yield* TestService
      const { mine, production } = yield* Fixture
      const path = `/v2/organizations/${organization.id}/integrations/endpoints`
      const sandboxList = (yield* request("GET", path, { key: organization.testKey })).text
      const productionList = (yield* request("GET", path, { key: organization.liveKey })).text
      expect(sandboxList).toContain(mine.endpointId)
      expect(sandboxList).not.toContain(production.endpointId)
      expect(productionList).toContain(production.endpointId)
      expect(productionList).not.toContain(mine.endpointId)
    })

    it.effect("takes the organization's id in capitals for the same organization", function* () {
      const { organization, request } = yield* TestService
      const path = `/v2/organizations/${organization.id.toUpperCase()}/integrations/endpoints`
      expect((yield* request("GET", path, { key: organization.testKey })).status).toBe(200)
    })
  })
})
