import { documented } from "./DocumentedError.ts"

/** Failures and refusals of the payment provider. */

export class ProviderRequestRefused extends documented("ProviderRequestRefused", "refused", {
  status: 422,
  code: "provider_<provider code>",
  message: "The payment provider refused the request; `fields` lists the refused parameters that it names.",
  why: "The provider refused parameters: the code includes its own code, `fields` lists the parameters that it names, and the message says what is known of the reason, and the provider's id of the request.",
  remedy: "Correct them and send the request again; its `Idempotency-Key` can be used again."
}) {}

export class ProviderPaymentRefused extends documented("ProviderPaymentRefused", "answer", {
  status: 402,
  code: "provider_<provider code>",
  message: "The payment provider refused the payment.",
  why: "The provider refused a payment: the code includes the issuer's reason, and the message says it in words, with the provider's id of the request.",
  remedy: "Ask the payer for another payment method, unless the message advises something else."
}) {}

export class ProviderObjectNotFound extends documented("ProviderObjectNotFound", "answer", {
  status: 404,
  code: "provider_resource_missing",
  message: "The payment provider knows no such object on the connected account.",
  why: "The connected account has no such object.",
  remedy: "Check the id, and whether it belongs to the other environment or another account."
}) {}

export class ProviderUnavailable extends documented("ProviderUnavailable", "open", {
  status: 502,
  message: "The payment provider could not process the request; repeat it with the same Idempotency-Key.",
  why: "The provider failed, could not be reached, or refused the platform's key.",
  remedy: "Repeat the request with the same `Idempotency-Key`, with growing pauses."
}) {}

export class ProviderOutcomeUnknown extends documented("ProviderOutcomeUnknown", "open", {
  status: 502,
  message:
    "The payment provider failed, and stored that failure under this idempotency key: a repeat returns it again. Whether the request was carried out is unknown. Check whether its object exists or has changed, by reading or listing it; only if not, send the request again with a new idempotency key.",
  why: "The provider failed, and stored that failure under the `Idempotency-Key`: each repeat returns it, for a day. It may have carried out the request all the same.",
  remedy:
    "First check whether it was done: [Repeats](api.md#repeats-and-their-idempotency-key) says where. Only if it was not, send the request again with a new `Idempotency-Key`."
}) {}

export class ProviderPermissionDenied extends documented("ProviderPermissionDenied", "open", {
  status: 502,
  message: "The service may not do this on the connected account.",
  why: "The platform's key may not do this on the connected account, or is of another platform than the one that the account was linked under. No account is disconnected for it.",
  remedy:
    "Operators grant the key the permission at the provider, or set the right key: [The platform's key](running.md#the-platforms-key). Repeating does not help."
}) {}

export class ProviderOperationUnsupported extends documented("ProviderOperationUnsupported", "refused", {
  status: 501,
  message:
    "The payment provider of this installation has no such operation: do without it. /openapi.json lists the operations that there are.",
  why: "The installation uses another payment provider, which has no such operation. Nothing was done.",
  remedy:
    "Do without the operation: repeating does not help. The installation's `/openapi.json` lists what there is. Teams that add a provider: [Another provider](embedding.md#another-provider)."
}) {}

export class ProviderRateLimited extends documented("ProviderRateLimited", "open", {
  status: 503,
  message: "The payment provider asks for fewer requests; wait as long as Retry-After says.",
  retryAfter: "1 second",
  why: "The provider asks for fewer requests, or another request has locked the object.",
  remedy: "Wait as long as `Retry-After` says, and repeat with the same `Idempotency-Key`."
}) {}

export class ProviderTimeout extends documented("ProviderTimeout", "open", {
  status: 504,
  message: "The payment provider did not answer in time; repeat the request with the same Idempotency-Key.",
  why: "The provider did not answer in time; whether it carried out the request is unknown.",
  remedy: "Repeat with the same `Idempotency-Key`: the operation is done once, and the repeat returns its outcome."
}) {}
