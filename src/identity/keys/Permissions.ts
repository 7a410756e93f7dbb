import { Context, Schema } from "effect"

/** What an operation on payments needs (contract 2.5). */
export const PaymentPermission = Schema.Literal(
  "payments:read",
  "payments:write",
  "products:read",
  "products:write",
  "payment-account:read",
  "coupons:read",
  "coupons:write",
  "transactions:read",
  "subscriptions:write"
)
export type PaymentPermission = typeof PaymentPermission.Type

/** What webhook management by API key needs (contract 2.6). */
export const WebhookPermission = Schema.Literal("webhook-endpoints:read", "webhook-endpoints:write")
export type WebhookPermission = typeof WebhookPermission.Type

/** What reading the audit log needs: of people only owners and admins have it, and only they give it to a key. */
export const AuditPermission = Schema.Literal("audit-log:read")
export type AuditPermission = typeof AuditPermission.Type

/** What one operation needs. */
export const Permission = Schema.Union(PaymentPermission, WebhookPermission, AuditPermission)
export type Permission = typeof Permission.Type

/**
 * What a key can be given: permissions, `*` for all those of payments, `webhook-endpoints:*` for both scopes of webhook
 * management. No wildcard includes `audit-log:read`.
 */
export const Grant = Schema.Union(Permission, Schema.Literal("*", "webhook-endpoints:*")).annotations({
  identifier: "Grant"
})
export type Grant = typeof Grant.Type

/** All that a key can be given, each once. */
export const grants: ReadonlyArray<Grant> = [
  ...PaymentPermission.literals,
  ...WebhookPermission.literals,
  ...AuditPermission.literals,
  "*",
  "webhook-endpoints:*"
]

const permissionsOf = (grant: Grant): ReadonlyArray<Permission> => {
  switch (grant) {
    case "*":
      return PaymentPermission.literals
    case "webhook-endpoints:*":
      return WebhookPermission.literals
    default:
      return [grant]
  }
}

/** The permissions that grants amount to. `*` includes neither webhook management nor the audit log. */
export const expandGrants = (grants: Iterable<Grant>): ReadonlySet<Permission> => {
  const permissions = new Set<Permission>()
  for (const grant of grants) {
    for (const permission of permissionsOf(grant)) permissions.add(permission)
  }
  return permissions
}

/** Whether lacking this permission is answered as `endpoint_management_forbidden` rather than `permission_denied`. */
export const isWebhookPermission = Schema.is(WebhookPermission)

/**
 * The permission an operation needs: declared on its endpoint, read from there by the authentication, by the OpenAPI
 * document and by the permission tests.
 */
export class RequiredPermission extends Context.Tag("connected-payments/identity/RequiredPermission")<
  RequiredPermission,
  Permission
>() {}
