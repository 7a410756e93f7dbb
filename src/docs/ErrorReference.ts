import { documentedErrors } from "../Errors.ts"
import { anchorOf } from "../kit/ErrorLink.ts"
import { withGenerated } from "./Generated.ts"
import { escaped } from "./Html.ts"

/** The reference of errors for integrators: each code, why it comes and what to do (contract 12.5). */

/** What is said of a code beside its status and its sentence, which are the error's own. */
interface Advice {
  readonly why: string
  readonly remedy: string
}

/** By the error's tag; a test holds it against the errors that there are. */
const advice: Readonly<Record<string, Advice>> = {
  AuthenticationRequired: {
    why: "The request carries neither a key nor a session.",
    remedy: "Send the key in `x-api-key`, or sign in."
  },
  ApiKeyInvalid: {
    why: "The key is unknown, revoked or expired; the answer does not tell which.",
    remedy: "Look the key up in the list of keys by its last four characters. Make a new one where it has ended."
  },
  SessionInvalid: { why: "The session or the sign-in link is unknown, used or expired.", remedy: "Sign in again." },
  OrganizationAccessDenied: {
    why: "The organization in the path is not the credential's. An organization that does not exist answers the same.",
    remedy: "Put the id of the key's own organization in the path."
  },
  PermissionDenied: {
    why: "The key or the role lacks the permission that the operation needs; the message names it.",
    remedy: "Use a key with that permission. A key's permissions never change: make a new key."
  },
  EndpointManagementForbidden: {
    why: "The key has no `webhook-endpoints` scope, which `*` does not include, or the role may not manage webhooks.",
    remedy: "Use a key with `webhook-endpoints:read` or `webhook-endpoints:write`."
  },
  WorkspaceAccessRequired: {
    why: "The signed-in person may not enter the workspace of this environment.",
    remedy: "Ask an owner or admin for access to it, or select another workspace."
  },
  OriginNotTrusted: {
    why: "A change in a signed-in person's name came without an `Origin` that the service trusts.",
    remedy: "Send it from the service's own pages. Operators add other origins to `TRUSTED_ORIGINS`."
  },
  ResourceNotFound: {
    why: "There is no such route, or no such object in this organization and environment.",
    remedy: "Check the path, the id, and whether a sandbox key asks for something of production."
  },
  MethodNotAllowed: { why: "The path exists and takes other methods.", remedy: "Use a method that `Allow` lists." },
  OrganizationAlreadyExists: {
    why: "The person has an organization already, and nobody has two.",
    remedy: "Use the organization that the session shows."
  },
  ProviderAccountNotConnected: {
    why: "No provider account is linked in this environment, or its access was revoked.",
    remedy: "Have the account linked again by the operator. Waiting does not help."
  },
  IdempotencyKeyReused: {
    why: "The `Idempotency-Key` was used within 24 hours for another operation or other parameters.",
    remedy: "Send a new key for a new intention, and the same parameters where you repeat one."
  },
  IdempotencyRequestInProgress: {
    why: "The first request with this key has not been answered yet.",
    remedy: "Repeat it unchanged after `Retry-After`."
  },
  EndpointLimitReached: {
    why: "The organization has as many endpoints in this environment as it may have.",
    remedy: "Delete one that is not needed. Operators raise `ENDPOINT_LIMIT`."
  },
  ApiKeyLimitReached: {
    why: "The organization has 100 API keys that were not revoked, of both environments together. Expired keys count.",
    remedy: "Revoke one that is not needed."
  },
  DeliveryNotFailed: {
    why: "The delivery is queued or was delivered.",
    remedy: "Read the delivery: nothing has to be sent again."
  },
  DeliveryRetryLimitReached: {
    why: "The delivery has had all of its 12 attempts.",
    remedy: "Read the event from the delivery and process it yourself."
  },
  DeliveryWindowExpired: {
    why: "The delivery was created more than 72 hours ago.",
    remedy: "Read the event from the delivery and process it yourself."
  },
  EndpointDeleted: {
    why: "The endpoint of the delivery was deleted; its secrets are erased.",
    remedy: "Create an endpoint for new events, and read the old ones from their deliveries."
  },
  RecoveryInProgress: {
    why: "Another recovery of this endpoint is running, and it does not reach back as far.",
    remedy: "Wait until the list of recoveries shows it as finished, then start this one."
  },
  EndpointPaused: { why: "A paused endpoint gets no test events.", remedy: "Activate it with `PATCH`, then test it." },
  TestEnvironmentRequired: {
    why: "Test events exist in the sandbox only.",
    remedy: "Test with a key and an endpoint of the sandbox."
  },
  RequestTimeout: {
    why: "The headers took longer than 15 seconds, the whole request longer than a minute, or nothing of it came for 20 seconds.",
    remedy:
      "Send it again on a new connection, with the same `Idempotency-Key` if it has one. Operators change `REQUEST_TIMEOUT`."
  },
  PayloadTooLarge: {
    why: "A JSON body over 256 KiB, an image over 4 MiB, or a notification over 1 MiB.",
    remedy: "Send less."
  },
  UnsupportedMediaType: {
    why: "The body is not JSON, it comes without `content-type: application/json`, or an image's bytes are no whole JPEG, PNG or WebP file.",
    remedy: "Send JSON with `content-type: application/json`, or an image in one of these forms."
  },
  ValidationFailed: {
    why: "The body, the path, the query or a header is not valid. Keys that are not known are refused too. The message says of each field what was wrong and what is right.",
    remedy: "Correct every place that `fields` lists. The same request never succeeds."
  },
  HeadersTooLarge: {
    why: "The request line and the headers are larger than 16 KiB together.",
    remedy: "Send fewer or shorter headers, cookies and query parameters."
  },
  EventTypeNotSubscribed: {
    why: "The endpoint does not subscribe to the type of the test event.",
    remedy: "Choose a type that it has, or add the type to its `events`."
  },
  DestinationRejected: {
    why: "The URL is no public HTTPS address on port 443, or has credentials or a query; the message says which rule it breaks.",
    remedy: "Give a public HTTPS URL. What identifies the receiver belongs in the path."
  },
  DestinationUnresolvable: {
    why: "The name of the destination's host does not resolve.",
    remedy: "Check the host's name and its DNS records, then try again."
  },
  IntegrationFilterInvalid: {
    why: "A filter's value has the wrong form, or `amountMin` is above `amountMax`.",
    remedy: "Correct the filters that `fields` lists."
  },
  IntegrationFilterUnknown: {
    why: "`filters` has a key that is no filter.",
    remedy: "Remove the keys that `fields` lists."
  },
  RateLimitExceeded: {
    why: "More requests in a minute than one credential, all of an organization's together, or one client address without a valid one may send; more sign-in links or invitations than an organization or a mailbox may cause; or too many images up or down at once from one organization or client address. The message and `RateLimit-Scope` say which.",
    remedy: "Wait as long as `Retry-After` says. `RateLimit-Remaining` tells beforehand how many are left."
  },
  ImageQuotaExceeded: {
    why: "The organization has uploaded as many bytes of images as it may within an hour in this environment.",
    remedy: "Wait as long as `Retry-After` says. Operators raise `IMAGE_MEGABYTES_PER_HOUR`."
  },
  TestRateLimitExceeded: {
    why: "More than 5 new test events within a minute for one endpoint.",
    remedy: "Wait as long as `Retry-After` says. A repeat with the same `Idempotency-Key` does not count."
  },
  SignatureInvalid: {
    why: "A notification without a valid signature of the provider, or more than 5 minutes off in time.",
    remedy: "Operators check the signing secrets in `PROVIDER_…_WEBHOOK_SECRETS` and the machine's clock."
  },
  ProviderRequestRefused: {
    why: "The provider refused parameters; the code carries its own, `fields` says which where it names them, and the message what we know of the reason.",
    remedy: "Correct them and send the request again; its `Idempotency-Key` is free."
  },
  ProviderPaymentRefused: {
    why: "The provider refused a payment; the code carries the reason.",
    remedy: "Ask the payer for another means of payment."
  },
  ProviderObjectNotFound: {
    why: "The connected account has no such object.",
    remedy: "Check the id, and whether it belongs to the other environment or another account."
  },
  ProviderUnavailable: {
    why: "The provider failed, could not be reached, or refused the platform's key.",
    remedy: "Repeat the request with the same `Idempotency-Key`, with growing pauses."
  },
  ProviderPermissionDenied: {
    why: "The platform's key may not do this on the connected account.",
    remedy: "Operators give the key the permission at the provider. Repeating does not help."
  },
  ProviderRateLimited: {
    why: "The provider asks for fewer requests, or the object is locked by another one.",
    remedy: "Wait as long as `Retry-After` says, and repeat with the same `Idempotency-Key`."
  },
  ProviderTimeout: {
    why: "The provider did not answer in time. Whether it did what was asked is not known.",
    remedy: "Repeat with the same `Idempotency-Key`: it is done once, and the repeat answers the outcome."
  },
  ServiceUnavailable: {
    why: "The service cannot reach its database, serves as many images as it may at once, or is just ending.",
    remedy: "Repeat after `Retry-After`, with the same `Idempotency-Key` where there is one."
  },
  InternalError: {
    why: "A bug of the service, logged with its cause under the request id.",
    remedy: "Quote `requestId` when you report it. Repeat with the same `Idempotency-Key`."
  }
}

/** A documented error as the reference shows it. */
export interface ReferencedError extends Advice {
  /** Its place on the page: `/docs/errors#validation_failed`. */
  readonly anchor: string
  readonly status: number
  readonly code: string
  readonly message: string
  /** Whether every answer carries `Retry-After`. */
  readonly retryAfter: boolean
}

/** Every documented error, by status and in the order of their declaration. */
export const errorReference: ReadonlyArray<ReferencedError> = documentedErrors
  .map(({ documentation, tag }) => {
    const { code, message, retryAfter, status } = documentation
    const { remedy, why } = advice[tag] ?? { remedy: "", why: "" }
    return {
      anchor: anchorOf({ code, status }),
      status,
      code,
      message,
      retryAfter: retryAfter !== undefined,
      why,
      remedy
    }
  })
  .sort((a, b) => a.status - b.status)

/** The reference as a Markdown table. */
export const errorTable = (): string =>
  [
    "| Status | `code` | Why | What to do |",
    "| --- | --- | --- | --- |",
    ...errorReference.map(({ code, remedy, status, why }) => `| ${status} | \`${code}\` | ${why} | ${remedy} |`),
    ""
  ].join("\n")

/** A text with the table of errors between its markers brought up to date. */
export const withErrorTable = (text: string): string => withGenerated(text, "errors", errorTable())

/** The texts above mark code in backquotes. */
const marked = (text: string): string => escaped(text).replaceAll(/`([^`]+)`/g, "<code>$1</code>")

/** Each error as a part of the page of errors, with a place to link to. */
export const errorSections: ReadonlyArray<{
  readonly anchor: string
  readonly heading: string
  readonly html: string
}> = errorReference.map((error) => ({
  anchor: error.anchor,
  heading: error.code,
  html: `<section id="${error.anchor}">
<h3><code>${escaped(error.code)}</code> <small>${error.status}</small></h3>
<p><q>${marked(error.message)}</q></p>
<p>${marked(error.why)}</p>
<p><strong>What to do:</strong> ${marked(error.remedy)}${error.retryAfter ? " The answer carries <code>Retry-After</code>." : ""}</p>
</section>`
}))
