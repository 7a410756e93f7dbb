import { randomBytes } from "node:crypto"
import { createServer, request as forwardRequest } from "node:http"
import { SqlClient } from "@effect/sql"
import { Context, Effect, Layer, Redacted, type Scope } from "effect"
import { type Emulator, makeEmulator } from "../../src/emulator/Emulator.ts"
import { databaseLayer } from "../../src/platform/storage/Database.ts"
import { listening } from "../harness/Listening.ts"
import { createMigratedDatabase } from "../harness/TestDatabase.ts"
import { requestTo, type TestService } from "../harness/TestService.ts"
import { emptyDataDirectory, startService, stop } from "./ServiceProcess.ts"

/** The service as real processes, on one database and one provider. */

export interface ServiceProcess {
  readonly baseUrl: string
  readonly request: TestService["Type"]["request"]
  /** Ends it as a crash does: nothing of it runs on. */
  readonly kill: Effect.Effect<void>
}

export interface Installation {
  readonly organizationId: string
  readonly key: string
  readonly accountId: string
  readonly sql: SqlClient.SqlClient
  readonly emulator: Emulator
  /** The provider's secret key, to ask it directly. */
  readonly providerKey: string
  /** While the effect runs, the provider does what it is asked and its answers get lost. */
  readonly losingAnswers: <A, E, R>(
    use: (lost: { readonly count: () => number }) => Effect.Effect<A, E, R>
  ) => Effect.Effect<A, E, R>
  readonly processes: readonly [ServiceProcess, ServiceProcess]
  readonly start: Effect.Effect<ServiceProcess, unknown, Scope.Scope>
}

/** An HTTP server between the service and the emulator, which can lose answers. */
const makeGate = (
  target: string
): Effect.Effect<{ readonly url: string; readonly losingAnswers: Installation["losingAnswers"] }, never, Scope.Scope> =>
  Effect.gen(function* () {
    let lost = 0
    let losing = false
    const server = createServer((incoming, response) => {
      const forwarded = forwardRequest(
        new URL(incoming.url ?? "/", target),
        { method: incoming.method, headers: incoming.headers },
        (answer) => {
          if (losing && incoming.method === "POST") {
            answer.resume().on("end", () => {
              lost++
            })
            return
          }
          response.writeHead(answer.statusCode ?? 502, answer.headers)
          answer.pipe(response)
        }
      )
      forwarded.on("error", () => response.destroy())
      incoming.pipe(forwarded)
    })
    return {
      url: `http://127.0.0.1:${yield* listening(server)}`,
      losingAnswers: (use) => {
        const before = lost
        return Effect.acquireUseRelease(
          Effect.sync(() => {
            losing = true
          }),
          () => use({ count: () => lost - before }),
          () =>
            Effect.sync(() => {
              losing = false
            })
        )
      }
    }
  })

/**
 * Two processes of the service on one database and one provider, as `MODE=local` starts them: the second finds the
 * first one's organization. They end with the scope.
 */
export const installation = (
  settings: Readonly<Record<string, string>> = {}
): Effect.Effect<Installation, unknown, Scope.Scope> =>
  Effect.gen(function* () {
    const database = yield* createMigratedDatabase
    const providerKey = "sk_test_severalprocesses"
    const webhookSecret = "whsec_severalprocesses"
    const emulator = yield* makeEmulator({ secretKey: providerKey, webhookSecret })
    const gate = yield* makeGate(emulator.url)
    const accountId = yield* emulator.ensureAccount()
    const environment = {
      DATABASE_URL: Redacted.value(database.url),
      MASTER_KEYS: `test:${randomBytes(32).toString("base64")}`,
      PROVIDER_SANDBOX_SECRET_KEY: providerKey,
      PROVIDER_SANDBOX_WEBHOOK_SECRETS: webhookSecret,
      PROVIDER_API_URL: gate.url,
      LOCAL_ACCOUNT_ID: accountId,
      LOG_LEVEL: "Error",
      ...settings
    }
    const start = Effect.gen(function* () {
      const service = yield* startService(yield* emptyDataDirectory, environment)
      const { apiKey, baseUrl, organizationId } = service.local
      const kill = Effect.asVoid(Effect.orDie(stop(service, "SIGKILL")))
      return { apiKey, organizationId, baseUrl, request: requestTo(baseUrl), kill }
    })
    const first = yield* start
    const second = yield* start
    const storage = yield* Layer.build(databaseLayer({ url: database.url, poolSize: 4 }))
    return {
      organizationId: first.organizationId,
      key: first.apiKey,
      accountId,
      sql: Context.get(storage, SqlClient.SqlClient),
      emulator,
      providerKey,
      losingAnswers: gate.losingAnswers,
      processes: [first, second] as const,
      start
    }
  })
