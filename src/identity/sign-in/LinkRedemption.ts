import { HttpServerRequest } from "@effect/platform"
import { Effect } from "effect"
import {
  type OriginNotTrusted,
  type RateLimitExceeded,
  type ServiceUnavailable,
  SessionInvalid
} from "../../platform/errors/Errors.ts"
import { requireTrustedOrigin } from "../AuthenticationLive.ts"
import { permissionsOf } from "../keys/GrantPolicy.ts"
import { Organizations } from "../organizations/Organizations.ts"
import type { Session } from "../Principal.ts"
import { RequestAdmission } from "../RequestAdmission.ts"
import type { SignedIn } from "./Api.ts"
import { setSessionCookie } from "./SessionCookie.ts"
import type { BegunSession } from "./SignIn.ts"

export const makeSessionAnswer = Effect.map(
  Organizations,
  (organizations) =>
    ({ email, environment, expiresAt, membership, personId }: Session): Effect.Effect<SignedIn, ServiceUnavailable> =>
      Effect.gen(function* () {
        // A membership always has its organization: a missing one would be a bug
        const organization =
          membership === null
            ? null
            : yield* organizations.get(membership.organizationId).pipe(
                Effect.catchTag("ResourceNotFound", Effect.die),
                Effect.map(({ id, name }) => ({ id, name, role: membership.role }))
              )
        return {
          person: { id: personId, email },
          organization,
          environment,
          workspaces:
            membership === null
              ? []
              : membership.environments.map((environment) => ({
                  environment,
                  permissions: [...permissionsOf(membership.role)]
                })),
          expiresAt
        }
      })
)

/** The description by which people recognize their sessions: only the browser and the system that signed in. */

const browsers: ReadonlyArray<readonly [name: string, form: RegExp]> = [
  // Before Chrome and Safari, which the others also name
  ["Edge", /\bEdg(?:A|iOS)?\//],
  ["Opera", /\bOPR\//],
  ["Samsung Internet", /\bSamsungBrowser\//],
  ["Firefox", /\b(?:Firefox|FxiOS)\//],
  ["Chrome", /\b(?:Chrome|CriOS)\//],
  ["Safari", /\bSafari\//]
]

const systems: ReadonlyArray<readonly [name: string, form: RegExp]> = [
  ["iOS", /\b(?:iPhone|iPad)\b/],
  ["Android", /\bAndroid\b/],
  ["Windows", /\bWindows\b/],
  ["macOS", /\bMacintosh\b/],
  ["ChromeOS", /\bCrOS\b/],
  ["Linux", /\bLinux\b/]
]

const maxUserAgentLength = 512

/** Such as `Firefox on Linux`; null for an unknown browser. The header itself is not kept. */
const describeClient = (userAgent: string | undefined): string | null => {
  const text = (userAgent ?? "").slice(0, maxUserAgentLength)
  const nameIn = (known: typeof browsers) => known.find(([, form]) => form.test(text))?.[0]
  const browser = nameIn(browsers)
  const system = nameIn(systems)
  return browser === undefined ? null : system === undefined ? browser : `${browser} on ${system}`
}

export interface RedemptionOptions {
  readonly trustedOrigins: ReadonlySet<string>
}

type Refusal = SessionInvalid | OriginNotTrusted | RateLimitExceeded | ServiceUnavailable

/** If a browser sends an `Origin`, it must be trusted: a foreign page must not sign its visitor in. */
const refuseForeignOrigin = (
  trustedOrigins: ReadonlySet<string>
): Effect.Effect<void, OriginNotTrusted, HttpServerRequest.HttpServerRequest> =>
  Effect.flatMap(HttpServerRequest.HttpServerRequest, (request) =>
    request.headers["origin"] === undefined ? Effect.void : requireTrustedOrigin(trustedOrigins)
  )

/**
 * The operations on a mailed token: `preview` shows its purpose; `redeem` redeems it, sets the session's cookie and
 * returns the session. Invalid tokens count as failed authentications of the client's address.
 */
export const makeRedemption = (options: RedemptionOptions) =>
  Effect.gen(function* () {
    const { countFailure } = yield* RequestAdmission
    const answer = yield* makeSessionAnswer
    const preview = <A, E>(
      ask: Effect.Effect<A, E | SessionInvalid>
    ): Effect.Effect<A, E | Refusal, HttpServerRequest.HttpServerRequest> =>
      Effect.zipRight(
        refuseForeignOrigin(options.trustedOrigins),
        Effect.tapError(ask, (error) => (error instanceof SessionInvalid ? countFailure : Effect.void))
      )
    const redeem = <E>(
      begin: (client: string | null) => Effect.Effect<BegunSession, E | SessionInvalid>
    ): Effect.Effect<SignedIn, E | Refusal, HttpServerRequest.HttpServerRequest> =>
      Effect.gen(function* () {
        const { headers } = yield* HttpServerRequest.HttpServerRequest
        const { session, token } = yield* preview(begin(describeClient(headers["user-agent"])))
        yield* setSessionCookie(token)
        return yield* answer(session)
      })
    return { preview, redeem }
  })
