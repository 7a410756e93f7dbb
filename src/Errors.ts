import * as HttpApiSchema from "@effect/platform/HttpApiSchema"
import { type Cause, Data, Duration, Schema } from "effect"
import { boundedFields, boundedMessage, maxFieldLength, maxRefusedFields } from "./bounds/Refusals.ts"

/**
 * Every error code of the API, one tagged error each (contract 12.5).
 *
 * The wire form of all of them is exactly `{error, code, fields, requestId}`. An error is raised where its condition
 * is known and becomes a response in one place, `Http.ts`. Messages are written for integrators and never carry a
 * secret, a key, a payer's URL, SQL or a stack; what an operator needs stays in `cause`, which is never sent.
 */

/**
 * What a failure means for the idempotency key of the request that it ended (contract 3.6):
 *
 * - `answer`: the operation began and this is its answer; a repeat gets it again.
 * - `refused`: nothing was done; the key is free for another try, with whatever parameters.
 * - `open`: whether something was done is not known; a repeat with the same parameters finds out.
 */
export type Settlement = "answer" | "refused" | "open"

/** What can be said beside the code when an error is raised. */
export interface ErrorDetails {
  /** English sentence for the integrator. Default: the code's own. */
  readonly message?: string
  /** Refused fields as dotted paths in the API's names, e.g. `line_items.0.price`. Default: none. */
  readonly fields?: ReadonlyArray<string>
  /** Sent as `Retry-After`, rounded up to whole seconds. */
  readonly retryAfter?: Duration.DurationInput
  /** Methods of the `Allow` header (405 only). */
  readonly allow?: ReadonlyArray<string>
  /** For operators: logged with server errors, never sent. */
  readonly cause?: unknown
  /** Where this one settles its request otherwise than its code does. */
  readonly settles?: Settlement
  /** Set by the derived client: the failed request's id. */
  readonly requestId?: string
}

interface Fields {
  readonly message: string
  readonly code: string
  readonly status: number
  readonly settles: Settlement
  readonly fields: ReadonlyArray<string>
  readonly retryAfter: Duration.Duration | null
  readonly allow: ReadonlyArray<string>
  readonly requestId: string
  readonly cause?: unknown
}

interface Documentation<Code extends string> {
  readonly status: number
  readonly code: Code
  /** Has no default: who adds an error decides what a repeat of the request gets. */
  readonly settles: Settlement
  readonly message: string
  readonly retryAfter?: Duration.DurationInput
}

/** A class of the documented errors, as `errorSchema` and the documents need it. */
export interface DocumentedErrorClass<A extends ApiError = ApiError> {
  readonly documentation: Documentation<string>
  readonly tag: string
  new (details?: ErrorDetails & { readonly code?: string }): A
}

const ApiErrorTypeId: unique symbol = Symbol.for("connected-payments/ApiError")

/** Any error of this page: what the edge turns into a response. */
export interface ApiError extends Fields {
  readonly _tag: string
  readonly [ApiErrorTypeId]: true
}

/** Whether a value is one of the documented errors. */
export const isApiError = (u: unknown): u is ApiError => typeof u === "object" && u !== null && ApiErrorTypeId in u

/** What the classes below have in common; said in full, so that their declarations stand on their own. */
export interface DocumentedErrorBase<Tag extends string> {
  readonly documentation: Documentation<string>
  readonly tag: string
  new (
    details?: ErrorDetails & { readonly code?: string }
  ): Cause.YieldableError & Fields & { readonly _tag: Tag; readonly [ApiErrorTypeId]: true }
}

/** The class of a documented error under its tag. */
export const documented = <const Tag extends string, const Code extends string>(
  tag: Tag,
  documentation: Documentation<Code>
): DocumentedErrorBase<Tag> =>
  class extends Data.TaggedError(tag)<Fields> {
    static readonly documentation: Documentation<string> = documentation
    static readonly tag: string = tag
    readonly [ApiErrorTypeId] = true as const

    constructor(details: ErrorDetails & { readonly code?: string } = {}) {
      const retryAfter = details.retryAfter ?? documentation.retryAfter
      super({
        message: details.message ?? documentation.message,
        code: details.code ?? documentation.code,
        status: documentation.status,
        settles: details.settles ?? documentation.settles,
        fields: details.fields ?? [],
        retryAfter: retryAfter === undefined ? null : Duration.decode(retryAfter),
        allow: details.allow ?? [],
        requestId: details.requestId ?? "",
        ...(details.cause === undefined ? {} : { cause: details.cause })
      })
    }
  }

// Who calls

/** No credential was sent. */
export class AuthenticationRequired extends documented("AuthenticationRequired", {
  status: 401,
  code: "authentication_required",
  settles: "refused",
  message: "Send an API key in the x-api-key header, or sign in."
}) {}

/** Unknown, revoked or expired key: one answer for all three. */
export class ApiKeyInvalid extends documented("ApiKeyInvalid", {
  status: 401,
  code: "api_key_invalid",
  settles: "refused",
  message: "The API key is not valid: it is unknown, revoked or expired."
}) {}

/** Unknown or expired session. */
export class SessionInvalid extends documented("SessionInvalid", {
  status: 401,
  code: "session_invalid",
  settles: "refused",
  message: "The session is not valid or has expired; sign in again."
}) {}

/** The path's organization is not the credential's; also where no such organization exists. */
export class OrganizationAccessDenied extends documented("OrganizationAccessDenied", {
  status: 403,
  code: "organization_access_denied",
  settles: "refused",
  message: "This credential does not belong to the organization in the path."
}) {}

/** The credential lacks the operation's permission; the message names it. */
export class PermissionDenied extends documented("PermissionDenied", {
  status: 403,
  code: "permission_denied",
  settles: "refused",
  message: "This credential lacks the permission that the operation needs."
}) {}

/** A key without a webhook management scope, or a session whose role may not manage webhooks. */
export class EndpointManagementForbidden extends documented("EndpointManagementForbidden", {
  status: 403,
  code: "endpoint_management_forbidden",
  settles: "refused",
  message:
    "Webhook management needs a key with an explicit webhook-endpoints scope, or a role that may manage webhooks."
}) {}

/** A developer or viewer without access to the workspace of this environment. */
export class WorkspaceAccessRequired extends documented("WorkspaceAccessRequired", {
  status: 403,
  code: "workspace_access_required",
  settles: "refused",
  message: "This person has no access to the workspace of this environment; an owner or admin can grant it."
}) {}

/** A session's unsafe request without a trusted `Origin`. */
export class OriginNotTrusted extends documented("OriginNotTrusted", {
  status: 403,
  code: "origin_not_trusted",
  settles: "refused",
  message: "A signed-in person's changes need an Origin header that the service trusts."
}) {}

// Which resource

/** No such route, or no such object in this organization and environment. */
export class ResourceNotFound extends documented("ResourceNotFound", {
  status: 404,
  code: "resource_not_found",
  settles: "answer",
  message: "There is no such resource here."
}) {}

/** A known path with another method; the answer carries `Allow`. */
export class MethodNotAllowed extends documented("MethodNotAllowed", {
  status: 405,
  code: "method_not_allowed",
  settles: "refused",
  message: "This path does not take this method; the Allow header lists those it takes."
}) {}

// Conflicts with the present state

/** The person already has an organization. */
export class OrganizationAlreadyExists extends documented("OrganizationAlreadyExists", {
  status: 409,
  code: "organization_already_exists",
  settles: "refused",
  message: "This person already has an organization."
}) {}

/** No connected account in this environment, or it was disconnected. */
export class ProviderAccountNotConnected extends documented("ProviderAccountNotConnected", {
  status: 409,
  code: "provider_account_not_connected",
  settles: "refused",
  message: "This organization has no connected provider account in this environment, or it was disconnected."
}) {}

/** The same idempotency key with another operation or other parameters. */
export class IdempotencyKeyReused extends documented("IdempotencyKeyReused", {
  status: 409,
  code: "idempotency_key_reused",
  settles: "open",
  message: "This Idempotency-Key was used with another operation or other parameters; send a new one."
}) {}

/** The first request with this key is still running. */
export class IdempotencyRequestInProgress extends documented("IdempotencyRequestInProgress", {
  status: 409,
  code: "idempotency_request_in_progress",
  settles: "open",
  message: "The first request with this Idempotency-Key is still running; try again shortly.",
  retryAfter: "1 second"
}) {}

/** The organization has as many endpoints in this environment as it may have (setting `ENDPOINT_LIMIT`). */
export class EndpointLimitReached extends documented("EndpointLimitReached", {
  status: 409,
  code: "endpoint_limit_reached",
  settles: "refused",
  message: "The organization has as many endpoints in this environment as it may have; delete one first."
}) {}

/** The organization has 100 API keys that were not revoked, of both environments together. */
export class ApiKeyLimitReached extends documented("ApiKeyLimitReached", {
  status: 409,
  code: "api_key_limit_reached",
  settles: "refused",
  message: "The organization has as many API keys as it may have, 100 of both environments together; revoke one first."
}) {}

/** Re-send of a delivery that has not failed. */
export class DeliveryNotFailed extends documented("DeliveryNotFailed", {
  status: 409,
  code: "delivery_not_failed",
  settles: "refused",
  message: "Only a failed delivery can be re-sent."
}) {}

/** Re-send of a delivery that has had all its 12 attempts. */
export class DeliveryRetryLimitReached extends documented("DeliveryRetryLimitReached", {
  status: 409,
  code: "delivery_retry_limit_reached",
  settles: "refused",
  message: "This delivery has had all of its 12 attempts."
}) {}

/** Re-send more than 72 hours after the delivery was created. */
export class DeliveryWindowExpired extends documented("DeliveryWindowExpired", {
  status: 409,
  code: "delivery_window_expired",
  settles: "refused",
  message: "A delivery can be re-sent within 72 hours of its creation; this one is older."
}) {}

/** Re-send to an endpoint that was deleted: its URL and its secrets are no longer used. */
export class EndpointDeleted extends documented("EndpointDeleted", {
  status: 409,
  code: "endpoint_deleted",
  settles: "refused",
  message: "The endpoint of this delivery was deleted; nothing is sent to it any more."
}) {}

/** A recovery while another of the same endpoint is running that does not reach back as far. */
export class RecoveryInProgress extends documented("RecoveryInProgress", {
  status: 409,
  code: "recovery_in_progress",
  settles: "refused",
  message: "Another recovery of this endpoint is running; start this one when that has finished."
}) {}

/** Synthetic test of a paused endpoint. */
export class EndpointPaused extends documented("EndpointPaused", {
  status: 409,
  code: "endpoint_paused",
  settles: "refused",
  message: "The endpoint is paused; activate it before sending a test event."
}) {}

/** Synthetic test in production. */
export class TestEnvironmentRequired extends documented("TestEnvironmentRequired", {
  status: 409,
  code: "test_environment_required",
  settles: "refused",
  message: "Test events exist in the sandbox only."
}) {}

// The request itself

/** The head or the body of the request did not arrive in time (setting `REQUEST_TIMEOUT`). */
export class RequestTimeout extends documented("RequestTimeout", {
  status: 408,
  code: "request_timeout",
  settles: "refused",
  message: "The request did not arrive in time; send it again on a new connection."
}) {}

/** JSON over 256 KiB, an image over 4 MiB, a notification over 1 MiB. */
export class PayloadTooLarge extends documented("PayloadTooLarge", {
  status: 413,
  code: "payload_too_large",
  settles: "refused",
  message: "The request body is too large."
}) {}

/** Not JSON where JSON is due; an image whose bytes are no whole JPEG, PNG or WebP. */
export class UnsupportedMediaType extends documented("UnsupportedMediaType", {
  status: 415,
  code: "unsupported_media_type",
  settles: "refused",
  message: "The request body must be JSON, sent with content-type: application/json."
}) {}

/** Invalid body, path, query or header; `fields` lists every refused one. */
export class ValidationFailed extends documented("ValidationFailed", {
  status: 422,
  code: "validation_failed",
  settles: "refused",
  message: "The request is not valid; `fields` lists what was refused."
}) {}

/** The request line and the headers are over 16 KiB together. */
export class HeadersTooLarge extends documented("HeadersTooLarge", {
  status: 431,
  code: "headers_too_large",
  settles: "refused",
  message: "The request line and the headers are larger than 16 KiB together."
}) {}

/** Synthetic test of a type that the endpoint does not subscribe to. */
export class EventTypeNotSubscribed extends documented("EventTypeNotSubscribed", {
  status: 422,
  code: "event_type_not_subscribed",
  settles: "refused",
  message: "The endpoint does not subscribe to this event type."
}) {}

/** The destination must be a public HTTPS URL without credentials or query parameters. */
export class DestinationRejected extends documented("DestinationRejected", {
  status: 422,
  code: "destination_rejected",
  settles: "refused",
  message: "The destination must be a public HTTPS URL on port 443, without credentials or query parameters."
}) {}

/** The destination's host name does not resolve. */
export class DestinationUnresolvable extends documented("DestinationUnresolvable", {
  status: 422,
  code: "destination_unresolvable",
  settles: "refused",
  message: "The destination's host name does not resolve."
}) {}

/** `amountMin` greater than `amountMax`, or a filter value of the wrong form. */
export class IntegrationFilterInvalid extends documented("IntegrationFilterInvalid", {
  status: 422,
  code: "integration_filter_invalid",
  settles: "refused",
  message: "A filter is not valid; `fields` lists which."
}) {}

/** Unknown key in `filters`. */
export class IntegrationFilterUnknown extends documented("IntegrationFilterUnknown", {
  status: 422,
  code: "integration_filter_unknown",
  settles: "refused",
  message: "There is no such filter; `fields` lists the unknown keys."
}) {}

/** More requests than one credential, one organization, one client address or one mailbox may cause; the message says which. */
export class RateLimitExceeded extends documented("RateLimitExceeded", {
  status: 429,
  code: "rate_limit_exceeded",
  settles: "refused",
  message: "Too many requests; wait as long as Retry-After says.",
  retryAfter: "1 second"
}) {}

/** More bytes of images than an organization may upload within an hour in one environment (setting `IMAGE_MEGABYTES_PER_HOUR`). */
export class ImageQuotaExceeded extends documented("ImageQuotaExceeded", {
  status: 429,
  code: "image_quota_exceeded",
  settles: "refused",
  message:
    "The organization has uploaded as many bytes of images as it may in an hour; wait as long as Retry-After says."
}) {}

/** More than 5 new synthetic tests per minute for one endpoint. */
export class TestRateLimitExceeded extends documented("TestRateLimitExceeded", {
  status: 429,
  code: "test_rate_limit_exceeded",
  settles: "refused",
  message: "At most 5 new test events per minute and endpoint; wait as long as Retry-After says.",
  retryAfter: "60 seconds"
}) {}

/** Inbound only: no valid provider signature, or a time more than 5 minutes off. */
export class SignatureInvalid extends documented("SignatureInvalid", {
  status: 400,
  code: "signature_invalid",
  settles: "refused",
  message: "The notification carries no valid signature for this service."
}) {}

// The provider

/** The provider refused parameters; `code` is `provider_<provider code>`, `fields` are in the API's names. */
export class ProviderRequestRefused extends documented("ProviderRequestRefused", {
  status: 422,
  code: "provider_<provider code>",
  settles: "refused",
  message: "The payment provider refused the request; `fields` lists the refused parameters where it names them."
}) {}

/** The provider refused a payment; `code` is `provider_<decline code or provider code>`. */
export class ProviderPaymentRefused extends documented("ProviderPaymentRefused", {
  status: 402,
  code: "provider_<provider code>",
  settles: "answer",
  message: "The payment provider refused the payment."
}) {}

/** The provider knows no such object on the connected account. */
export class ProviderObjectNotFound extends documented("ProviderObjectNotFound", {
  status: 404,
  code: "provider_resource_missing",
  settles: "answer",
  message: "The payment provider knows no such object on the connected account."
}) {}

/** Provider 5xx, a refused platform key, or no connection. */
export class ProviderUnavailable extends documented("ProviderUnavailable", {
  status: 502,
  code: "provider_unavailable",
  settles: "open",
  message: "The payment provider could not process the request; repeat it with the same Idempotency-Key."
}) {}

/** The platform's own key may not do this at the provider. */
export class ProviderPermissionDenied extends documented("ProviderPermissionDenied", {
  status: 502,
  code: "provider_permission_denied",
  settles: "open",
  message: "The service may not do this on the connected account."
}) {}

/** Provider 429, its lock time-outs included. */
export class ProviderRateLimited extends documented("ProviderRateLimited", {
  status: 503,
  code: "provider_rate_limited",
  settles: "open",
  message: "The payment provider asks for fewer requests; wait as long as Retry-After says.",
  retryAfter: "1 second"
}) {}

/** No answer within the provider time-out. A write's outcome is unknown. */
export class ProviderTimeout extends documented("ProviderTimeout", {
  status: 504,
  code: "provider_timeout",
  settles: "open",
  message: "The payment provider did not answer in time; repeat the request with the same Idempotency-Key."
}) {}

// The service

/** The service's database cannot be reached. */
export class ServiceUnavailable extends documented("ServiceUnavailable", {
  status: 503,
  code: "service_unavailable",
  settles: "open",
  message: "The service cannot process requests at the moment; try again shortly.",
  retryAfter: "2 seconds"
}) {}

/** A defect; logged with its cause under the request id. */
export class InternalError extends documented("InternalError", {
  status: 500,
  code: "internal_error",
  settles: "open",
  message: "Something went wrong inside the service; quote the request id when you report it."
}) {}

/** The cursor of a list names nothing that the list has: nothing at all, or what another tenant or another list has. */
export const unknownCursor = (cause?: unknown): ValidationFailed =>
  new ValidationFailed({
    message: "`starting_after` names nothing in this list; start again from its beginning.",
    fields: ["starting_after"],
    ...(cause === undefined ? {} : { cause })
  })

/** All classes of documented errors: the source of the error reference and of the tests over every code. */
export const documentedErrors: ReadonlyArray<DocumentedErrorClass> = [
  AuthenticationRequired,
  ApiKeyInvalid,
  SessionInvalid,
  OrganizationAccessDenied,
  PermissionDenied,
  EndpointManagementForbidden,
  WorkspaceAccessRequired,
  OriginNotTrusted,
  ResourceNotFound,
  MethodNotAllowed,
  OrganizationAlreadyExists,
  ProviderAccountNotConnected,
  IdempotencyKeyReused,
  IdempotencyRequestInProgress,
  EndpointLimitReached,
  ApiKeyLimitReached,
  DeliveryNotFailed,
  DeliveryRetryLimitReached,
  DeliveryWindowExpired,
  EndpointDeleted,
  RecoveryInProgress,
  EndpointPaused,
  TestEnvironmentRequired,
  RequestTimeout,
  PayloadTooLarge,
  UnsupportedMediaType,
  ValidationFailed,
  HeadersTooLarge,
  EventTypeNotSubscribed,
  DestinationRejected,
  DestinationUnresolvable,
  IntegrationFilterInvalid,
  IntegrationFilterUnknown,
  RateLimitExceeded,
  ImageQuotaExceeded,
  TestRateLimitExceeded,
  SignatureInvalid,
  ProviderRequestRefused,
  ProviderPaymentRefused,
  ProviderObjectNotFound,
  ProviderUnavailable,
  ProviderPermissionDenied,
  ProviderRateLimited,
  ProviderTimeout,
  ServiceUnavailable,
  InternalError
]

/** The body of every failure. */
export interface ErrorBody {
  readonly error: string
  readonly code: string
  readonly fields: ReadonlyArray<string>
  readonly requestId: string
}

/** The wire form of an error, under the id of the request that failed; small, whatever the error was raised with. */
export const errorBody = (error: ApiError, requestId: string): ErrorBody => ({
  error: boundedMessage(error.message),
  code: error.code,
  fields: boundedFields(error.fields),
  requestId
})

/** How long to wait before a repeat, as `Retry-After` says it: whole seconds, at least one. */
export const retrySeconds = (wait: Duration.Duration): number => Math.max(1, Math.ceil(Duration.toSeconds(wait)))

const wireSchema = (documentation: Documentation<string>, identifier: string) =>
  Schema.Struct({
    error: Schema.String.annotations({ description: "English message", examples: [documentation.message] }),
    code: documentation.code.includes("<")
      ? Schema.String.pipe(Schema.pattern(/^provider_/)).annotations({ description: documentation.code })
      : Schema.Literal(documentation.code),
    // The bounds are for readers: a client takes what a later version may say
    fields: Schema.Array(Schema.String).annotations({
      jsonSchema: {
        type: "array",
        description: `Refused fields as dotted paths, the first ${maxRefusedFields} of them; empty where none apply`,
        maxItems: maxRefusedFields,
        items: { type: "string", maxLength: maxFieldLength }
      }
    }),
    requestId: Schema.String.annotations({ description: "The request's id, also in the request-id header" })
  }).annotations({ identifier, description: documentation.message })

const schemas = new Map<DocumentedErrorClass, unknown>()

/**
 * The schema of an error class for `HttpApi` declarations: documents its status and body, and decodes to the class in
 * the derived client.
 */
export const errorSchema = <A extends ApiError>(errorClass: DocumentedErrorClass<A>): Schema.Schema<A, ErrorBody> => {
  const known = schemas.get(errorClass)
  if (known !== undefined) {
    // The map is keyed by the class itself, so what it holds is that class's schema
    return known as Schema.Schema<A, ErrorBody>
  }
  const { documentation, tag } = errorClass
  const made: Schema.Schema<A, ErrorBody> = Schema.transform(
    wireSchema(documentation, tag),
    Schema.instanceOf(errorClass),
    {
      strict: true,
      decode: (body) =>
        new errorClass({ message: body.error, code: body.code, fields: body.fields, requestId: body.requestId }),
      encode: (error) => errorBody(error, error.requestId)
    }
  ).annotations(HttpApiSchema.annotations({ status: documentation.status }))
  schemas.set(errorClass, made)
  return made
}
