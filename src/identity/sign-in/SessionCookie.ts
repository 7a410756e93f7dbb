import { HttpApp, type HttpServerRequest, HttpServerResponse } from "@effect/platform"
import { Duration, Effect, Redacted } from "effect"
import { sessionCookie } from "../Authentication.ts"
import { sessionHours } from "./SignInRepo.ts"

/** The session's cookie: pages can't read it, and other sites' requests don't send it, except when following a link. */

const attributes = { path: "/", httpOnly: true, secure: true, sameSite: "lax" } as const

const withCookie = (value: string, maxAge: Duration.Duration) =>
  HttpApp.appendPreResponseHandler((_request, response) =>
    Effect.orDie(HttpServerResponse.setCookie(response, sessionCookie, value, { ...attributes, maxAge }))
  )

export const setSessionCookie = (token: Redacted.Redacted) =>
  withCookie(Redacted.value(token), Duration.hours(sessionHours))

/** Removes the cookie with this request's response. */
export const clearSessionCookie = withCookie("", Duration.zero)

/** A browser sends at most one: if there are more, somebody else set the others. */
export const sessionCookiesOf = ({ headers }: HttpServerRequest.HttpServerRequest): ReadonlyArray<string> =>
  (headers["cookie"] ?? "").split(";").flatMap((pair) => {
    const at = pair.indexOf("=")
    return pair.slice(0, Math.max(0, at)).trim() === sessionCookie ? [pair.slice(at + 1).trim()] : []
  })
