import { documented } from "./DocumentedError.ts"

/** Errors about credentials, permissions and origins. */

export class AuthenticationRequired extends documented("AuthenticationRequired", "refused", {
  status: 401,
  message: "Send an API key in the x-api-key header, or sign in; the Authorization header is not read.",
  why: "The request carries neither a key nor a session.",
  remedy: "Send the key in `x-api-key`, or sign in."
}) {}

export class ApiKeyInvalid extends documented("ApiKeyInvalid", "refused", {
  status: 401,
  message: "The API key is not valid: it is unknown, revoked or expired. Keys of this service begin with pk_.",
  why: "The key is unknown, revoked or expired; the answer does not say which.",
  remedy:
    "Look the key up in the list of keys by its last four characters. If it is revoked or expired, create a new one."
}) {}

export class SessionInvalid extends documented("SessionInvalid", "refused", {
  status: 401,
  message: "The session is not valid or has expired; sign in again.",
  why: "The session or the sign-in link is unknown, used or expired.",
  remedy: "Sign in again."
}) {}

export class OrganizationAccessDenied extends documented("OrganizationAccessDenied", "refused", {
  status: 403,
  message:
    "This credential does not belong to the organization in the path. `GET /identity/api-key` returns the organization of an API key.",
  why: "The organization in the path is not the credential's. An organization that does not exist gets the same answer.",
  remedy: "Put the id of the key's own organization in the path."
}) {}

export class PermissionDenied extends documented("PermissionDenied", "refused", {
  status: 403,
  message: "This credential lacks the permission that the operation needs.",
  why: "The key or the role lacks the permission that the operation needs; the message names it.",
  remedy: "Use a key with that permission. A key's permissions never change: create a new key."
}) {}

export class EndpointManagementForbidden extends documented("EndpointManagementForbidden", "refused", {
  status: 403,
  message:
    "Webhook management needs a key with an explicit webhook-endpoints scope, or a role that may manage webhooks.",
  why: "The key has no `webhook-endpoints` scope, which `*` does not include, or the role may not manage webhooks.",
  remedy: "Use a key with `webhook-endpoints:read` or `webhook-endpoints:write`."
}) {}

export class WorkspaceAccessRequired extends documented("WorkspaceAccessRequired", "refused", {
  status: 403,
  message: "This person has no access to the workspace of this environment; an owner or admin can grant it.",
  why: "The signed-in person has no access to the workspace of this environment.",
  remedy: "Ask an owner or admin for access to it, or select another workspace."
}) {}

export class OriginNotTrusted extends documented("OriginNotTrusted", "refused", {
  status: 403,
  message: "A signed-in person's changes need an Origin header that the service trusts.",
  why: "A signed-in person's change came without an `Origin` that the service trusts.",
  remedy: "Send it from the service's own pages. Operators add other origins to `TRUSTED_ORIGINS`."
}) {}
