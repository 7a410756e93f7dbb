import { SqlClient } from "@effect/sql"
import { Context, Effect, Layer, Redacted } from "effect"
import { makeEmulator } from "../../../src/emulator/Emulator.ts"
import { Accounts } from "../../../src/payments/Accounts.ts"
import { databaseLayer } from "../../../src/platform/storage/Database.ts"
import { preferReplica, replicaOf } from "../../../src/platform/storage/ReadReplica.ts"
import { masterKeysSetting, testMasterKeys, testWebhookSecret } from "../../harness/TestService.ts"
import { makeOrganization, providerAt, startService } from "../../surface/http/StartedService.ts"

const secretKey = "sk_test_replicated"

/** The whole service in this process on a database of the test's choice, with an organization and its account. */
export const serviceOn = Effect.fnUntraced(function* (database: { readonly url: string; readonly readUrl?: string }) {
  const emulator = yield* makeEmulator({ secretKey, webhookSecret: testWebhookSecret })
  const service = yield* startService({
    databaseUrl: Redacted.make(database.url),
    ...(database.readUrl === undefined ? {} : { databaseReadUrl: Redacted.make(database.readUrl) }),
    provider: providerAt(emulator.url, secretKey),
    settings: { roles: { api: true, worker: true } }
  })
  const { id, key } = yield* makeOrganization(service.services, {
    name: "replicated",
    permissions: ["*", "webhook-endpoints:*", "audit-log:read"]
  })
  const accountId = yield* emulator.ensureAccount()
  yield* Context.get(service.services, Accounts).link({ organizationId: id, environment: "sandbox" }, accountId)
  yield* service.sql`UPDATE payments.provider_accounts SET had_payments_before = true`
  const base = `/v2/organizations/${id}/integrations`
  const get = (path: string) => service.request("GET", `${base}${path}`, { key })
  const subscribe = (url: string) =>
    service
      .request("POST", `${base}/endpoints`, {
        key,
        headers: { "idempotency-key": crypto.randomUUID() },
        body: { name: "Orders", url, events: ["payment.succeeded"] }
      })
      .pipe(Effect.map(({ json }) => String(json["id"])))
  return {
    ...service,
    emulator,
    organizationId: id,
    key,
    accountId,
    webhookSecret: testWebhookSecret,
    /** What commands need to work on the same provider and data. */
    commandSettings: {
      MASTER_KEYS: masterKeysSetting(testMasterKeys),
      PROVIDER_SANDBOX_SECRET_KEY: secretKey,
      PROVIDER_SANDBOX_WEBHOOK_SECRETS: testWebhookSecret,
      PROVIDER_API_URL: emulator.url
    },
    processes: [{ role: "api" as const, baseUrl: service.baseUrl }],
    get,
    subscribe
  }
})

/** Just the connections, to a primary and to what is said to be its replica. */
export const connected = (url: string, readUrl: string) =>
  Effect.gen(function* () {
    const storage = yield* Layer.build(
      Layer.provideMerge(replicaOf(Redacted.make(readUrl), 2), databaseLayer({ url: Redacted.make(url), poolSize: 2 }))
    )
    return { sql: Context.get(storage, SqlClient.SqlClient), prefer: yield* Effect.provide(preferReplica, storage) }
  })
