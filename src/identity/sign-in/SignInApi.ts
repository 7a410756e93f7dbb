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

/** Body of operations that redeem a mailed link. */
export const RedeemToken = strict(Schema.Struct({ token: OneTimeToken }).annotations({ identifier: "RedeemToken" }))

export const SignInPreview = Schema.Struct({
  email: described(Schema.String, "The address that the link was mailed to"),
  expiresAt: ExpiresAt
}).annotations({ identifier: "SignInPreview" })

export const LinkPage = HttpApiSchema.Text({ contentType: "text/html" })

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
    HttpApiEndpoint.get("page", "/identity/sign-in")
      .addSuccess(LinkPage)
      .annotate(OpenApi.Summary, "The page that a sign-in link opens")
      .annotate(
        OpenApi.Description,
        "Opening it redeems nothing: the page shows whom the link signs in, and its button sends the token, which follows the link's #, to `POST /identity/session`. If the console is served, the answer is 303 and leads to its page, which does the same."
      )
  )
  .add(
    HttpApiEndpoint.post("preview", "/identity/sign-in/preview")
      .setUrlParams(NoQuery)
      .setPayload(RedeemToken)
      .addSuccess(SignInPreview)
      .addError(errorSchemas(SessionInvalid, OriginNotTrusted, RateLimitExceeded))
      .middleware(RedemptionLimit)
      .annotate(OpenApi.Summary, "Read whom a sign-in link is for")
      .annotate(OpenApi.Description, "Does not use the link: its page shows this before the person signs in.")
  )
  .add(
    HttpApiEndpoint.post("redeem", "/identity/session")
      .setUrlParams(NoQuery)
      .setPayload(RedeemToken)
      .addSuccess(SignedIn)
      .addError(errorSchemas(SessionInvalid, OriginNotTrusted, RateLimitExceeded))
      .middleware(RedemptionLimit)
      .annotate(OpenApi.Summary, "Sign in with a link's token; sets the session cookie")
      .annotate(
        OpenApi.Description,
        "A token works once, within 15 minutes, and ends the person's other open sign-in links. An `Origin` may be absent here; if it is sent, it must be a trusted one."
      )
  )
  .addError(errorSchema(ServiceUnavailable))
  .annotate(OpenApi.Description, "Signing in by e-mail link") {}
