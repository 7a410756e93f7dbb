/**
 * Every error code of the API, each a tagged error (contract 12.5).
 *
 * Each is sent as exactly `{error, code, fields, requestId}`. An error is raised where its condition is known and
 * becomes a response in one place, `surface/http/Answers.ts`. Messages are written for integrators and never carry a secret, a
 * key, a payer's URL, SQL or a stack; what an operator needs stays in `cause`, which is never sent.
 *
 * A class carries all facts about its error: status, code, message, why it is raised and what to do. To add one, define
 * it in `platform/errors/` and list it here.
 */

import {
  ApiKeyInvalid,
  AuthenticationRequired,
  EndpointManagementForbidden,
  OrganizationAccessDenied,
  OriginNotTrusted,
  PermissionDenied,
  SessionInvalid,
  WorkspaceAccessRequired
} from "./Access.ts"
import type { DocumentedErrorClass } from "./DocumentedError.ts"
import {
  ProviderObjectNotFound,
  ProviderOutcomeUnknown,
  ProviderPaymentRefused,
  ProviderPermissionDenied,
  ProviderRateLimited,
  ProviderRequestRefused,
  ProviderTimeout,
  ProviderUnavailable
} from "./Provider.ts"
import {
  DestinationRejected,
  DestinationUnresolvable,
  EventTypeNotSubscribed,
  HeadersTooLarge,
  ImageQuotaExceeded,
  IntegrationFilterInvalid,
  IntegrationFilterUnknown,
  PayloadTooLarge,
  RateLimitExceeded,
  RequestTimeout,
  SignatureInvalid,
  TestRateLimitExceeded,
  UnsupportedMediaType,
  ValidationFailed
} from "./Requests.ts"
import {
  AccountAlreadyConnected,
  AccountOauthUnavailable,
  AccountOnboardingUnavailable,
  ApiKeyLimitReached,
  CheckoutPageLimitReached,
  DeliveryNotFailed,
  DeliveryRetryLimitReached,
  DeliveryWindowExpired,
  EndpointDeleted,
  EndpointLimitReached,
  EndpointPaused,
  IdempotencyKeyReused,
  IdempotencyRequestInProgress,
  MethodNotAllowed,
  OrganizationAlreadyExists,
  OrganizationNotEmpty,
  ProviderAccountNotConnected,
  RecoveryInProgress,
  ReplayInProgress,
  ResourceNotFound,
  TestEnvironmentRequired
} from "./Resources.ts"
import { InternalError, ServiceUnavailable } from "./Service.ts"

export * from "./Access.ts"
export * from "./DocumentedError.ts"
export * from "./Provider.ts"
export { ProviderAnswer } from "./ProviderAnswer.ts"
export * from "./Requests.ts"
export * from "./Resources.ts"
export * from "./Service.ts"

/** Every documented error of the API: the source of the error reference and of the tests of every code. */
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
  OrganizationNotEmpty,
  ProviderAccountNotConnected,
  AccountAlreadyConnected,
  AccountOnboardingUnavailable,
  AccountOauthUnavailable,
  IdempotencyKeyReused,
  IdempotencyRequestInProgress,
  EndpointLimitReached,
  ApiKeyLimitReached,
  CheckoutPageLimitReached,
  DeliveryNotFailed,
  DeliveryRetryLimitReached,
  DeliveryWindowExpired,
  EndpointDeleted,
  RecoveryInProgress,
  ReplayInProgress,
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
  ProviderOutcomeUnknown,
  ProviderPermissionDenied,
  ProviderRateLimited,
  ProviderTimeout,
  ServiceUnavailable,
  InternalError
]
