import { HttpApiBuilder, HttpServerRequest } from "@effect/platform"
import { Effect, Redacted } from "effect"
import type { Environment } from "../../events/Environment.ts"
import { makeSessionAdmission } from "../../identity/AuthenticationLive.ts"
import { BaseApi } from "../../kit/BaseApi.ts"
import { AccountConnection } from "./AccountConnection.ts"
import { afterVisit } from "./ConnectingPage.ts"
import { AccountPagesApi } from "./PagesApi.ts"

/** The settings that the pages need. */
export interface AccountPagesOptions {
  /** The URL of the console, which shows accounts itself; absent or null if none is served. */
  readonly consoleUrl?: string | null
}

/** The query of a request; of a parameter that is given more than once, the first counts. */
const queryOf = ({ url }: HttpServerRequest.HttpServerRequest): URLSearchParams => {
  const mark = url.indexOf("?")
  return new URLSearchParams(mark === -1 ? "" : url.slice(mark + 1))
}

const environmentOf = (query: URLSearchParams): Environment | null => {
  const environment = query.get("environment")
  return environment === "sandbox" || environment === "production" ? environment : null
}

/** Serves `AccountPagesApi`. */
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
        const request = yield* HttpServerRequest.HttpServerRequest
        const query = queryOf(request)
        const code = query.get("code")
        const session = yield* admitSession
        const { environment, outcome } = yield* connection.finishAuthorization(session, {
          state: query.get("state") ?? undefined,
          code: code === null ? undefined : Redacted.make(code),
          error: query.get("error") ?? undefined
        })
        return afterVisit(consoleUrl, environment, { of: "oauth", ended: outcome })
      })

      return handlers
        .handleRaw("returned", () => afterOnboarding("returned"))
        .handleRaw("refresh", () => afterOnboarding("expired"))
        .handleRaw("authorized", () =>
          // A browser shows what it gets, so that a refusal is a page as well
          Effect.catchAll(finish, (error) =>
            Effect.succeed(
              afterVisit(consoleUrl, null, {
                of: "oauth",
                ended:
                  error._tag === "SessionInvalid" || error._tag === "AuthenticationRequired" ? "signed_out" : "failed"
              })
            )
          )
        )
    })
  )
