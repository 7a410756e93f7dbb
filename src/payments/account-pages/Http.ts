import { HttpApiBuilder, HttpServerRequest } from "@effect/platform"
import { Duration, Effect, Redacted } from "effect"
import { makeSessionAdmission } from "../../identity/AuthenticationLive.ts"
import { retrySeconds } from "../../platform/errors/Errors.ts"
import { BaseApi } from "../../platform/kit/BaseApi.ts"
import type { Environment } from "../../platform/kit/Environment.ts"
import { AccountConnection } from "../connecting/AccountConnection.ts"
import { afterVisit } from "../connecting/ConnectingPage.ts"
import { AccountPagesApi } from "./Api.ts"

export interface AccountPagesOptions {
  /** The URL of the console, which shows accounts itself; absent or null if none is served. */
  readonly consoleUrl?: string | null
}

/** The query of a request; the first value of a repeated parameter counts. */
const queryOf = ({ url }: HttpServerRequest.HttpServerRequest): URLSearchParams => {
  const mark = url.indexOf("?")
  return new URLSearchParams(mark === -1 ? "" : url.slice(mark + 1))
}

const environmentOf = (query: URLSearchParams): Environment | null => {
  const environment = query.get("environment")
  return environment === "sandbox" || environment === "production" ? environment : null
}

export const accountPagesHttp = ({ consoleUrl = null }: AccountPagesOptions) =>
  HttpApiBuilder.group(BaseApi.add(AccountPagesApi), "accountPages", (handlers) =>
    Effect.gen(function* () {
      const connection = yield* AccountConnection
      const admitSession = yield* makeSessionAdmission

      const afterOnboarding = (ended: "returned" | "expired") =>
        Effect.map(HttpServerRequest.HttpServerRequest, (request) =>
          afterVisit(consoleUrl, environmentOf(queryOf(request)), { of: "onboarding", ended })
        )

      const finish = Effect.gen(function* () {
        const query = queryOf(yield* HttpServerRequest.HttpServerRequest)
        const code = query.get("code")
        const session = yield* admitSession
        const { environment, outcome } = yield* connection.finishAuthorization(session, {
          state: query.get("state") ?? undefined,
          code: code === null ? undefined : Redacted.make(code),
          error: query.get("error") ?? undefined
        })
        // The console shows the account's status. An invalid state has no environment, so the session's is shown
        const shown = environment ?? (consoleUrl === null || outcome === "unavailable" ? null : session.environment)
        return afterVisit(consoleUrl, shown, { of: "oauth", ended: outcome })
      })

      const signedOut = () => Effect.succeed(afterVisit(consoleUrl, null, { of: "oauth", ended: "signed_out" }))

      return handlers
        .handleRaw("returned", () => afterOnboarding("returned"))
        .handleRaw("refresh", () => afterOnboarding("expired"))
        .handleRaw("authorized", () =>
          // Browsers show any answer, so refusals are pages as well
          Effect.catchTags(finish, {
            AuthenticationRequired: signedOut,
            SessionInvalid: signedOut,
            RateLimitExceeded: ({ retryAfter }) =>
              Effect.succeed(
                afterVisit(consoleUrl, null, {
                  of: "oauth",
                  ended: "limited",
                  retrySeconds: retrySeconds(retryAfter ?? Duration.minutes(1))
                })
              ),
            ServiceUnavailable: (error) =>
              Effect.as(
                Effect.logWarning("An authorization could not be finished", error.cause),
                afterVisit(consoleUrl, null, { of: "oauth", ended: "unavailable" })
              )
          })
        )
    })
  )
