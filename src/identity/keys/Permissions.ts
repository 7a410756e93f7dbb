import { Context, Schema } from "effect"

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

/** A permission for webhook management by API key (contract 2.6). */
export const WebhookPermission = Schema.Literal("webhook-endpoints:read", "webhook-endpoints:write")

/**
 * Permissions to read the audit log and customers' personal data: only owners and admins have them and can grant them to
 * a key. No wildcard includes them, so that a key has them only if named.
 */
const EntrustedPermission = Schema.Literal("audit-log:read", "customers:read")

/** A permission of a caller: one that an operation needs, or `customers:read`, which adds fields to some answers. */
export const Permission = Schema.Union(PaymentPermission, WebhookPermission, EntrustedPermission).annotations({
  identifier: "Permission"
})
export type Permission = typeof Permission.Type

/**
 * A grant of a key: a permission, `*` for all permissions on payments, or `webhook-endpoints:*` for both scopes of
 * webhook management. No wildcard includes `audit-log:read` or `customers:read`.
 */
export const Grant = Schema.Union(...Permission.members, Schema.Literal("*", "webhook-endpoints:*")).annotations({
  identifier: "Grant"
})
export type Grant = typeof Grant.Type

/**
 * A permission of an embedding team's own, for its own groups: see `ownPermissions`. No wildcard includes it, and only the
 * team's own code gives it.
 */
export const OwnPermission = Schema.String.pipe(
  Schema.pattern(/^[a-z][a-z0-9-]{0,39}:[a-z][a-z0-9-]{0,39}$/),
  Schema.brand("OwnPermission")
).annotations({
  identifier: "OwnPermission",
  description: "Of the service that this one is embedded in, which gives it to a key and checks it"
})
export type OwnPermission = typeof OwnPermission.Type

/** The own permissions that are declared: a key gets no others. */
export class OwnPermissions extends Context.Reference<OwnPermissions>()("connected-payments/identity/OwnPermissions", {
  defaultValue: (): ReadonlySet<string> => new Set()
}) {}

/** The entrusted permissions; others are in a wildcard. */
export const entrusted: ReadonlyArray<Permission> = EntrustedPermission.literals

export const permissions: ReadonlyArray<Permission> = [
  ...PaymentPermission.literals,
  ...WebhookPermission.literals,
  ...entrusted
]

export const isPermission = Schema.is(Permission)

export const isGrant = Schema.is(Grant)

export const grants: ReadonlyArray<Grant> = [...permissions, "*", "webhook-endpoints:*"]

const permissionsOf = (grant: Grant | OwnPermission): ReadonlyArray<Permission | OwnPermission> => {
  switch (grant) {
    case "*":
      return PaymentPermission.literals
    case "webhook-endpoints:*":
      return WebhookPermission.literals
    default:
      return [grant]
  }
}

/** Expands grants to permissions. `*` includes neither webhook management nor the `entrusted` permissions. */
export const expandGrants = (grants: Iterable<Grant | OwnPermission>): ReadonlySet<Permission | OwnPermission> => {
  const permissions = new Set<Permission | OwnPermission>()
  for (const grant of grants) {
    for (const permission of permissionsOf(grant)) permissions.add(permission)
  }
  return permissions
}

/** Whether a caller without this permission gets `endpoint_management_forbidden` rather than `permission_denied`. */
export const isWebhookPermission = Schema.is(WebhookPermission)

/** Declared on endpoints; read by the authentication, the OpenAPI document and the permission tests. */
export class RequiredPermission extends Context.Tag("connected-payments/identity/RequiredPermission")<
  RequiredPermission,
  Permission
>() {}
