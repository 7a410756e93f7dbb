import permissionUses from "../../api/permissionUses.json" with { type: "json" }

/** The permissions of keys in words, each explained by the operations that need it. */

export type KeyPermission = keyof typeof permissionUses

const labels: Readonly<Record<KeyPermission, string>> = {
  "payments:read": "Read payments",
  "payments:write": "Make payments",
  "products:read": "Read the catalog",
  "products:write": "Change the catalog",
  "payment-account:read": "Read the account",
  "coupons:read": "Read promotion codes",
  "coupons:write": "Change promotion codes",
  "transactions:read": "Read transactions",
  "subscriptions:write": "Change subscriptions",
  "webhook-endpoints:read": "Read destinations and events",
  "webhook-endpoints:write": "Change destinations",
  "audit-log:read": "Read the audit log",
  "customers:read": "Read personal data"
}

const isPermission = (name: string): name is KeyPermission => Object.hasOwn(labels, name)

/** Only owners and admins have these, and can give them. */
const entrusted = /^(?:audit-log|customers):/

export const permissionRows = Object.keys(permissionUses)
  .filter(isPermission)
  .map((permission) => {
    // Needed by no operation: it adds fields to the answers of others
    const uses =
      permissionUses[permission].uses.replace("endpoints", "destinations") ||
      "names, addresses and e-mail of payers in what the key reads"
    const words = `${uses.charAt(0).toUpperCase()}${uses.slice(1)}`
    return {
      permission,
      label: labels[permission],
      words: entrusted.test(permission) ? `${words}. Only owners and admins can give it` : words
    }
  })

/** The path of a first request that a key with these permissions may make: any key may read itself. */
export const firstRequest = (granted: ReadonlyArray<string>): string =>
  granted.filter(isPermission).flatMap((permission) => permissionUses[permission].first ?? [])[0] ?? "/identity/api-key"

/** The permissions in a grant: `*` means all on payments, `webhook-endpoints:*` both on destinations. */
const included = (grant: string): ReadonlyArray<string> => {
  if (grant === "webhook-endpoints:*") return ["webhook-endpoints:read", "webhook-endpoints:write"]
  if (grant !== "*") return [grant]
  return permissionRows
    .map(({ permission }) => permission)
    .filter((permission) => !entrusted.test(permission) && !permission.startsWith("webhook-endpoints:"))
}

export const labelsOf = (grants: ReadonlyArray<string>): ReadonlyArray<string> => {
  const all = new Set(grants.flatMap(included))
  const named = permissionRows.filter(({ permission }) => all.has(permission)).map(({ label }) => label)
  // Those of an embedding service's own have no other words
  return [...named, ...grants.filter((grant) => !isPermission(grant) && !grant.includes("*"))]
}

export const summaryOf = (grants: ReadonlyArray<string>): string => {
  const labels = labelsOf(grants)
  if (labels.length === permissionRows.length) return "Everything"
  return labels.length <= 3 ? labels.join(", ") : `${labels.slice(0, 2).join(", ")} and ${labels.length - 2} more`
}
