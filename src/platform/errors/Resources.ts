import { enumerated } from "../bounds/Rules.ts"
import { documented } from "./DocumentedError.ts"

/** Errors about missing resources, and about operations that a resource's state does not allow. */

export class ResourceNotFound extends documented("ResourceNotFound", "answer", {
  status: 404,
  message: "There is no such resource here.",
  why: "There is no such route, or no such object in this organization and environment.",
  remedy: "Check the path and the id, and whether a sandbox key asks for a production object."
}) {}

export class MethodNotAllowed extends documented("MethodNotAllowed", "refused", {
  status: 405,
  message: "This path does not support this method; the Allow header lists those that it supports.",
  why: "The path exists, but does not support this method.",
  remedy: "Use a method that `Allow` lists."
}) {}

/** The error for a path's other methods, with the right ones in words. */
export const methodNotAllowed = (method: string, allow: ReadonlyArray<string>): MethodNotAllowed =>
  new MethodNotAllowed({ allow, message: `This path takes ${enumerated(allow)}, not ${method}.` })

export class OrganizationAlreadyExists extends documented("OrganizationAlreadyExists", "refused", {
  status: 409,
  message: "This person already has an organization.",
  why: "The person already has an organization, and can't have two.",
  remedy:
    "Use the organization that the session shows. To go to another one, leave it or, as its last owner, close it first."
}) {}

export class OrganizationNotEmpty extends documented("OrganizationNotEmpty", "refused", {
  status: 409,
  message: "The organization can't be closed while it has accounts, destinations, checkout pages or other members.",
  why: "The organization to be closed has a connected account, destinations, checkout pages or other members; the message says which.",
  remedy: "Disconnect, delete or remove what the message lists, then close it."
}) {}

export class ProviderAccountNotConnected extends documented("ProviderAccountNotConnected", "refused", {
  status: 409,
  message: "This organization has no connected provider account in this environment, or it was disconnected.",
  why: "No provider account is linked in this environment, or its access was revoked.",
  remedy:
    "An owner or admin connects one with `POST /identity/account/onboarding`, or the operator links one. Waiting does not help."
}) {}

export class AccountAlreadyConnected extends documented("AccountAlreadyConnected", "refused", {
  status: 409,
  code: "account_taken",
  message: "Another account is connected in this environment; disconnect it first.",
  why: "Another account is connected in this environment, or the account is linked to another organization; the message says which.",
  remedy:
    "Disconnect the other account first. An account of another organization is disconnected there, and unlinked by the operator."
}) {}

export class AccountOnboardingUnavailable extends documented("AccountOnboardingUnavailable", "refused", {
  status: 409,
  message: "The connected account was not created here; its owner supplies what is due in the provider's dashboard.",
  why: "The connected account existed before and was connected with its owner's consent, so the platform can't open its onboarding.",
  remedy: "Supply what is due in the provider's own dashboard."
}) {}

export class AccountOauthUnavailable extends documented("AccountOauthUnavailable", "refused", {
  status: 409,
  message: "Existing accounts can't be connected in this environment; create a new one by onboarding.",
  why: "The operator has not set up the provider's OAuth for this environment.",
  remedy:
    "Use `POST /identity/account/onboarding`. Operators set `PROVIDER_SANDBOX_OAUTH_CLIENT_ID` or `PROVIDER_PRODUCTION_OAUTH_CLIENT_ID`."
}) {}

export class IdempotencyKeyReused extends documented("IdempotencyKeyReused", "open", {
  status: 409,
  message: "This Idempotency-Key was used with another operation or other parameters; send a new one.",
  why: "The `Idempotency-Key` was used within 24 hours for another operation or other parameters.",
  remedy: "Send a new key with a new request, and the same parameters when you repeat one."
}) {}

export class IdempotencyRequestInProgress extends documented("IdempotencyRequestInProgress", "open", {
  status: 409,
  message: "The first request with this Idempotency-Key is still running; try again shortly.",
  retryAfter: "1 second",
  why: "The first request with this key has not been answered yet.",
  remedy: "Repeat it unchanged after `Retry-After`."
}) {}

export class EndpointLimitReached extends documented("EndpointLimitReached", "refused", {
  status: 409,
  message: "The organization has the maximum number of endpoints in this environment; delete one first.",
  why: "The organization has the maximum number of endpoints in this environment.",
  remedy: "Delete one that is not needed. Operators raise `ENDPOINT_LIMIT`."
}) {}

export class ApiKeyLimitReached extends documented("ApiKeyLimitReached", "refused", {
  status: 409,
  message: "The organization has the maximum of 100 API keys in both environments together; revoke one first.",
  why: "The organization has 100 API keys that were not revoked, in both environments together. Expired keys count.",
  remedy: "Revoke one that is not needed."
}) {}

export class CheckoutPageLimitReached extends documented("CheckoutPageLimitReached", "refused", {
  status: 409,
  message: "The organization has the maximum of 100 checkout pages in this environment; delete one first.",
  why: "The organization has 100 checkout pages in this environment. Inactive ones count, deleted ones don't.",
  remedy: "Delete one that is not needed."
}) {}

export class DeliveryNotFailed extends documented("DeliveryNotFailed", "refused", {
  status: 409,
  message: "Only a failed delivery can be re-sent.",
  why: "The delivery is queued or was delivered.",
  remedy:
    "Read the delivery: a queued one is sent at its `nextAttemptAt`. A replay of its time sends the event at once, as a further delivery."
}) {}

export class DeliveryRetryLimitReached extends documented("DeliveryRetryLimitReached", "refused", {
  status: 409,
  message: "This delivery has had all of its 12 attempts.",
  why: "The delivery has had all of its 12 attempts.",
  remedy: "Read the event from the delivery and process it yourself."
}) {}

export class DeliveryWindowExpired extends documented("DeliveryWindowExpired", "refused", {
  status: 409,
  message: "A delivery can be re-sent within 72 hours of its creation; this one is older.",
  why: "The delivery was created more than 72 hours ago.",
  remedy: "Read the event from the delivery and process it yourself."
}) {}

export class EndpointDeleted extends documented("EndpointDeleted", "refused", {
  status: 409,
  message: "The endpoint of this delivery was deleted; nothing more is sent to it.",
  why: "The endpoint of the delivery was deleted; its secrets are erased.",
  remedy: "Create an endpoint for new events, and read the old ones from their deliveries."
}) {}

export class RecoveryInProgress extends documented("RecoveryInProgress", "refused", {
  status: 409,
  message: "Another recovery of this endpoint is running; start this one when that has finished.",
  why: "Another recovery of this endpoint is running, and it does not reach back as far.",
  remedy: "Wait until the list of recoveries shows it as finished, then start this one."
}) {}

export class ReplayInProgress extends documented("ReplayInProgress", "refused", {
  status: 409,
  message: "Another replay to this endpoint is running; start this one when that has ended, or cancel it.",
  why: "Another replay to this endpoint is running.",
  remedy: "Wait until the list of replays shows it as finished, or cancel it, then start this one."
}) {}

export class EndpointPaused extends documented("EndpointPaused", "refused", {
  status: 409,
  message: "The endpoint is paused; activate it before sending a test event.",
  why: "A paused endpoint gets no test events and no replay.",
  remedy: "Activate it with `PATCH`, or rotate its signing secret if it has none, then try again."
}) {}

export class TestEnvironmentRequired extends documented("TestEnvironmentRequired", "refused", {
  status: 409,
  message: "Test events exist in the sandbox only.",
  remedy: "Test with a key and an endpoint of the sandbox."
}) {}
