import { HttpServerResponse } from "@effect/platform"
import type { Environment } from "../../platform/kit/Environment.ts"
import { escaped, page, plainStyle, privateHeaders } from "../../platform/kit/Page.ts"
import type { AuthorizationOutcome } from "./Authorizations.ts"

/** The outcome of a visit to the provider, as far as the URL tells. */
export type Visit =
  | { readonly of: "onboarding"; readonly ended: "returned" | "expired" }
  | { readonly of: "oauth"; readonly ended: AuthorizationOutcome | "signed_out" }
  /** The browser's network exceeded the rate limit. */
  | { readonly of: "oauth"; readonly ended: "limited"; readonly retrySeconds: number }

interface Words {
  readonly status: number
  readonly title: string
  readonly text: string
}

const onboardingWords: Readonly<Record<"returned" | "expired", Words>> = {
  returned: {
    status: 200,
    title: "Back from the payment provider",
    text: "The account's status shows whether everything was submitted. If something is missing, start the onboarding again: it continues where you left off."
  },
  expired: {
    status: 200,
    title: "This link no longer works",
    text: "An onboarding link works once and for a few minutes. Start the onboarding again from your account: it continues where you left off."
  }
}

/** Claims only what is certain: the same URL may just have connected the account, in another tab or before a reload. */
const oauthWords: Readonly<Record<AuthorizationOutcome | "signed_out" | "limited", Words>> = {
  connected: { status: 200, title: "The account is connected", text: "You can close this page." },
  denied: { status: 200, title: "Nothing was connected", text: "The access was declined at the payment provider." },
  expired: {
    status: 403,
    title: "This can't be finished here",
    text: "The request is too old, was finished already, or was begun in another browser. The account's status shows whether it is connected. If it is not, begin again there."
  },
  taken: {
    status: 409,
    title: "The account can't be connected",
    text: "It is linked to another organization, or another account is connected here. Disconnect that one first."
  },
  refused: {
    status: 403,
    title: "The account was not connected",
    text: "The access that was granted is not the one that was requested, or you may not connect accounts any more."
  },
  unusable: {
    status: 400,
    title: "The account was not connected",
    text: "The payment provider sent no usable consent: it may have expired or be incomplete. Begin again from your account."
  },
  failed: {
    status: 502,
    title: "This could not be finished",
    text: "The payment provider did not answer as expected. The account's status shows whether it is connected. If it is not, begin again there."
  },
  unavailable: {
    status: 503,
    title: "This could not be finished yet",
    text: "The service can't process requests at the moment; the payment provider is not the cause. Load this page again in a minute. If it can't be finished then, begin again from your account."
  },
  signed_out: {
    status: 401,
    title: "You are signed out",
    text: "Sign in again. The account's status shows whether it is connected. If it is not, begin again there."
  },
  limited: {
    status: 429,
    title: "Too many requests",
    text: "Too many requests came from your network. Wait a minute, and load this page again."
  }
}

const wordsOf = (visit: Visit): Words =>
  visit.of === "onboarding" ? onboardingWords[visit.ended] : oauthWords[visit.ended]

const style = `:root{color-scheme:light dark}${plainStyle}.mode{display:inline-block;margin:0;padding:.1rem .6rem;border-radius:1rem;font-size:.875rem;font-weight:600;color:#3d2c00;background:#ffd666}@media (prefers-color-scheme:dark){body{color:#ececec;background:#16181d}}`

const wordsPage = (
  environment: Environment | null,
  { status, text, title }: Words,
  headers: Readonly<Record<string, string>>
) =>
  page({
    title,
    style,
    status,
    headers,
    allowed: { img: "data:" },
    main: `${environment === "sandbox" ? '<p class="mode">Test mode</p>\n' : ""}<h1>${escaped(title)}</h1>
<p>${escaped(text)}</p>`
  })

const accountPage = (consoleUrl: string, environment: Environment): string => `${consoleUrl}/${environment}/account`

/**
 * Answers a browser that returns from the provider: redirects to the console's account page with the outcome in the
 * query, or shows a small page if there is no console, known environment or admitted session.
 *
 * @param consoleUrl the URL of the console; null if none is served
 */
export const afterVisit = (
  consoleUrl: string | null,
  environment: Environment | null,
  visit: Visit
): HttpServerResponse.HttpServerResponse =>
  consoleUrl === null || environment === null || visit.ended === "signed_out" || visit.ended === "limited"
    ? wordsPage(
        environment,
        wordsOf(visit),
        visit.ended === "limited" ? { "retry-after": String(visit.retrySeconds) } : {}
      )
    : HttpServerResponse.empty({
        status: 303,
        headers: { ...privateHeaders, location: `${accountPage(consoleUrl, environment)}?${visit.of}=${visit.ended}` }
      })
