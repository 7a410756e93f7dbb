import { randomUUID } from "node:crypto"
import { Context, type Duration, Effect, Layer, Option, Redacted } from "effect"
import { createMigratedDatabase } from "../harness/TestDatabase.ts"
import { type RequestOptions, testReturnUrls } from "../harness/TestService.ts"
import { makeOrganization, type StartedService, startService } from "../surface/http/StartedService.ts"
import { makeScriptedProvider, type ScriptedProvider } from "./ScriptedProvider.ts"

export const platformKey = "sk_test_scriptedplatformkey"

export const platformId = "acct_ThePlatform"

export class ScriptedService extends Context.Tag("test/provider/ScriptedService")<
  ScriptedService,
  StartedService & { readonly provider: ScriptedProvider }
>() {
  /** `timeout` is a call's whole time. */
  static readonly layer = (timeout: Duration.DurationInput = "30 seconds") =>
    Layer.scoped(
      ScriptedService,
      Effect.gen(function* () {
        const database = yield* createMigratedDatabase
        const provider = yield* makeScriptedProvider
        const service = yield* startService({
          databaseUrl: database.url,
          provider: {
            sandbox: Option.some({
              secretKey: Redacted.make(platformKey),
              webhookSecrets: [Redacted.make("whsec_scripted")]
            }),
            production: Option.none(),
            apiUrl: Option.some(provider.url),
            timeout,
            ...testReturnUrls
          }
        })
        yield* service.sql`
          INSERT INTO payments.provider_platforms (environment, platform_id) VALUES ('sandbox', ${platformId})`
        return { ...service, provider }
      })
    ).pipe(Layer.orDie)
}

export const scriptedTenant = Effect.gen(function* () {
  const { provider, request, services, sql } = yield* ScriptedService
  const { id, key } = yield* makeOrganization(services, { name: `org-${randomUUID()}` })
  const accountId = `acct_${id.replaceAll("-", "")}`
  yield* sql`
    INSERT INTO payments.provider_accounts (organization_id, environment, account_id, status, had_payments_before)
    VALUES (${id}, 'sandbox', ${accountId}, 'connected', false)`
  return {
    id,
    accountId,
    send: (method: string, path: string, options: RequestOptions = {}) =>
      request(method, `/v2/organizations/${id}/provider${path}`, { key, ...options }),
    calls: () => provider.calls.filter(({ headers }) => headers["stripe-account"] === accountId)
  }
})
