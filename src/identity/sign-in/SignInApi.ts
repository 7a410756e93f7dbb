import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "@effect/platform"
import { Schema } from "effect"
import {
  errorSchema,
  errorSchemas,
  OriginNotTrusted,
  RateLimitExceeded,
  ServiceUnavailable,
  SessionInvalid
} from "../../platform/errors/Errors.ts"
import { described, ExpiresAt, NoQuery, strict, withStatus } from "../../platform/kit/Request.ts"
import { RedemptionLimit, SignInLinkLimit } from "../Authentication.ts"
import { Email, OneTimeToken } from "../Schemas.ts"
import { SignedIn } from "./SessionApi.ts"

export const RequestSignInLink = strict(
  Schema.Struct({ email: Email }).annotations({ identifier: "RequestSignInLink" })
)

/** The answer to a request for a sign-in link: the same for every address. */
export const SignInLinkRequested = Schema.Struct({
  sent: described(Schema.Literal(true), "Always true, whether or not the address is known"),
  toLog: described(
    Schema.Boolean,
    "Whether links are written to the service's log, as at a local start without a mail server"
  )
}).annotations({ identifier: "SignInLinkRequested" })

export const RedeemToken = strict(Schema.Struct({ token: OneTimeToken }).annotations({ identifier: "RedeemToken" }))

export const SignInPreview = Schema.Struct({
  email: described(Schema.String, "The address that the link was mailed to"),
  expiresAt: ExpiresAt
}).annotations({ identifier: "SignInPreview" })

export const LinkPage = HttpApiSchema.Text({ contentType: "text/html" })

/** The page that a mailed link opens; nothing is redeemed by opening it. */
export const linkPageEndpoint = (path: `/${string}`, summary: string, description: string) =>
  HttpApiEndpoint.get("page", path)
    .addSuccess(LinkPage)
    .annotate(OpenApi.Summary, summary)
    .annotate(OpenApi.Description, description)

/** An operation on a mailed link's token, which is the only credential. */
export const redemption = <const Name extends string>(
  name: Name,
  path: `/${string}`,
  summary: string,
  description: string
) =>
  HttpApiEndpoint.post(name, path)
    .setUrlParams(NoQuery)
    .setPayload(RedeemToken)
    .addError(errorSchemas(SessionInvalid, OriginNotTrusted, RateLimitExceeded))
    .middleware(RedemptionLimit)
    .annotate(OpenApi.Summary, summary)
    .annotate(OpenApi.Description, description)

/** Signing in by e-mail link (the contract leaves the session's login open). Needs no credential. */
export class SignInApi extends HttpApiGroup.make("signIn")
  .add(
    HttpApiEndpoint.post("requestLink", "/identity/sign-in-links")
      .setUrlParams(NoQuery)
      .setPayload(RequestSignInLink)
      .addSuccess(withStatus(202, SignInLinkRequested))
      .addError(errorSchema(RateLimitExceeded))
      .middleware(SignInLinkLimit)
      .annotate(OpenApi.Summary, "Ask for a sign-in link by e-mail")
      .annotate(
        OpenApi.Description,
        "The answer is the same whether or not the person exists; a new person is created at the first sign-in. At most 5 links to one mailbox in 15 minutes and 30 in a day for one client's network, and twice as many for all together."
      )
  )
  .add(
    linkPageEndpoint(
      "/identity/sign-in",
      "The page that a sign-in link opens",
      "Opening it redeems nothing: the page shows whom the link signs in, and its button sends the token, which follows the link's #, to `POST /identity/session`. If the console is served, the answer is 303 and leads to its page, which does the same."
    )
  )
  .add(
    redemption(
      "preview",
      "/identity/sign-in/preview",
      "Read whom a sign-in link is for",
      "Does not use the link: its page shows this before the person signs in."
    ).addSuccess(SignInPreview)
  )
  .add(
    redemption(
      "redeem",
      "/identity/session",
      "Sign in with a link's token; sets the session cookie",
      "A token works once, within 15 minutes, and ends the person's other open sign-in links. An `Origin` may be absent here; if it is sent, it must be a trusted one."
    ).addSuccess(SignedIn)
  )
  .addError(errorSchema(ServiceUnavailable))
  .annotate(OpenApi.Description, "Signing in by e-mail link") {}
