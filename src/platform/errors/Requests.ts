import { documented } from "./DocumentedError.ts"

/** Errors about the request itself, and about limits on requests. */

export class RequestTimeout extends documented("RequestTimeout", "refused", {
  status: 408,
  message: "The request did not arrive in time; send it again on a new connection.",
  why: "The headers took longer than 15 seconds, the whole request longer than a minute, or nothing arrived for 20 seconds.",
  remedy:
    "Send it again on a new connection, with the same `Idempotency-Key` if it has one. Operators change `REQUEST_TIMEOUT`."
}) {}

export class PayloadTooLarge extends documented("PayloadTooLarge", "refused", {
  status: 413,
  message: "The request body is too large.",
  why: "A JSON body is over 256 KiB, an image over 4 MiB, or a notification over 1 MiB.",
  remedy: "Send less."
}) {}

export class UnsupportedMediaType extends documented("UnsupportedMediaType", "refused", {
  status: 415,
  message: "The request body must be JSON, sent with content-type: application/json.",
  why: "The body is not JSON or has no `content-type: application/json`, or an image's bytes are not a whole JPEG, PNG or WebP file; or the body is compressed (`content-encoding`).",
  remedy: "Send JSON with `content-type: application/json`, uncompressed, or an image in one of these formats."
}) {}

export class ValidationFailed extends documented("ValidationFailed", "refused", {
  status: 422,
  message: "The request is not valid; `fields` lists what was refused.",
  why: "The body, the path, the query or a header is not valid; unknown keys are refused too. The message says what is wrong with each field and what is right.",
  remedy: "Correct everything that `fields` lists. The same request never succeeds."
}) {}

export class HeadersTooLarge extends documented("HeadersTooLarge", "refused", {
  status: 431,
  message: "The request line and the headers are larger than 16 KiB together.",
  remedy: "Send fewer or shorter headers, cookies and query parameters."
}) {}

export class EventTypeNotSubscribed extends documented("EventTypeNotSubscribed", "refused", {
  status: 422,
  message: "The endpoint does not subscribe to this event type.",
  why: "The endpoint does not subscribe to the type of the test event, or to a type of the replay.",
  remedy: "Choose a type that it subscribes to, or add the type to its `events`."
}) {}

export class DestinationRejected extends documented("DestinationRejected", "refused", {
  status: 422,
  message: "The destination must be a public HTTPS URL on port 443, without credentials or query parameters.",
  why: "The URL is not a public HTTPS address on port 443, or has credentials or a query; the message says which rule it breaks.",
  remedy: "Use a public HTTPS URL. Put what identifies the receiver in the path."
}) {}

export class DestinationUnresolvable extends documented("DestinationUnresolvable", "refused", {
  status: 422,
  message: "The destination's host name does not resolve.",
  remedy: "Check the host name and its DNS records, then try again."
}) {}

export class IntegrationFilterInvalid extends documented("IntegrationFilterInvalid", "refused", {
  status: 422,
  message: "A filter is not valid; `fields` lists which.",
  why: "A filter's value has the wrong form, or `amountMin` is above `amountMax`.",
  remedy: "Correct the filters that `fields` lists."
}) {}

export class IntegrationFilterUnknown extends documented("IntegrationFilterUnknown", "refused", {
  status: 422,
  message: "There is no such filter; `fields` lists the unknown keys.",
  why: "`filters` has a key that is not a filter.",
  remedy: "Remove the keys that `fields` lists."
}) {}

export class RateLimitExceeded extends documented("RateLimitExceeded", "refused", {
  status: 429,
  message: "Too many requests; wait as long as Retry-After says.",
  retryAfter: "1 second",
  why: "One credential, all of an organization's credentials together, or a client address without a valid one sent too many requests in a minute; an organization or a mailbox caused too many sign-in links or invitations; an organization or a client address transfers too many images at once; or an organization runs too many searches at once. The message and `RateLimit-Scope` say which.",
  remedy: "Wait as long as `Retry-After` says. `RateLimit-Remaining` shows in advance how many requests are left."
}) {}

export class ImageQuotaExceeded extends documented("ImageQuotaExceeded", "refused", {
  status: 429,
  message: "The organization has reached its hourly limit of image uploads; wait as long as Retry-After says.",
  why: "The organization's image uploads of the last hour have reached its limit in this environment.",
  remedy: "Wait as long as `Retry-After` says. Operators raise `IMAGE_MEGABYTES_PER_HOUR`."
}) {}

export class TestRateLimitExceeded extends documented("TestRateLimitExceeded", "refused", {
  status: 429,
  message: "At most 5 new test events per minute and endpoint; wait as long as Retry-After says.",
  retryAfter: "60 seconds",
  why: "One endpoint was sent 5 new test events within a minute.",
  remedy: "Wait as long as `Retry-After` says. A repeat with the same `Idempotency-Key` does not count."
}) {}

export class SignatureInvalid extends documented("SignatureInvalid", "refused", {
  status: 400,
  message: "The notification carries no valid signature for this service.",
  why: "A notification has no valid signature of the provider, or its time is more than 5 minutes off.",
  remedy: "Operators check the signing secrets in `PROVIDER_…_WEBHOOK_SECRETS` and the machine's clock."
}) {}

/** The error of a cursor that names no item of this list: nothing at all, or an item of another tenant or list. */
export const unknownCursor = (cause?: unknown): ValidationFailed =>
  new ValidationFailed({
    message: "`starting_after` names no item of this list; start again from the beginning.",
    fields: ["starting_after"],
    ...(cause === undefined ? {} : { cause })
  })
