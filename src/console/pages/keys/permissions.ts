/** The permissions of keys in words. */

export const permissionRows = [
  {
    permission: "payments:read",
    label: "Read payments",
    words: "Payments, charges, refunds, checkout sessions, payment links and customers without their personal data"
  },
  {
    permission: "payments:write",
    label: "Make payments",
    words: "Create checkout sessions and payment links, and refund"
  },
  { permission: "products:read", label: "Read the catalog", words: "Products, prices and their images" },
  {
    permission: "products:write",
    label: "Change the catalog",
    words: "Create, change and deactivate products and prices, and upload images"
  },
  { permission: "coupons:read", label: "Read promotion codes", words: "Promotion codes and their discounts" },
  { permission: "coupons:write", label: "Change promotion codes", words: "Create and deactivate promotion codes" },
  {
    permission: "transactions:read",
    label: "Read transactions",
    words: "Movements of the balance, payouts and disputes"
  },
  { permission: "subscriptions:write", label: "Change subscriptions", words: "Change and cancel subscriptions" },
  {
    permission: "payment-account:read",
    label: "Read the account",
    words: "Status, balance and payout settings of the connected account"
  },
  {
    permission: "webhook-endpoints:read",
    label: "Read destinations and events",
    words: "Destinations, deliveries, events and statistics"
  },
  {
    permission: "webhook-endpoints:write",
    label: "Change destinations",
    words: "Create, change and delete destinations, rotate their secrets, re-send and recover"
  },
  {
    permission: "audit-log:read",
    label: "Read the audit log",
    words: "Who changed what. Only owners and admins can give it"
  },
  {
    permission: "customers:read",
    label: "Read personal data",
    words: "Names, addresses and e-mail of customers. Only owners and admins can give it"
  }
] as const satisfies ReadonlyArray<Readonly<Record<"permission" | "label" | "words", string>>>

export type KeyPermission = (typeof permissionRows)[number]["permission"]

/** The permissions in a grant: `*` means all on payments, `webhook-endpoints:*` both on destinations. */
const included = (grant: string): ReadonlyArray<string> => {
  if (grant === "webhook-endpoints:*") return ["webhook-endpoints:read", "webhook-endpoints:write"]
  if (grant !== "*") return [grant]
  return permissionRows
    .map(({ permission }) => permission)
    .filter((permission) => !/^(?:webhook-endpoints|audit-log|customers):/.test(permission))
}

export const labelsOf = (grants: ReadonlyArray<string>): ReadonlyArray<string> => {
  const all = new Set(grants.flatMap(included))
  return permissionRows.filter(({ permission }) => all.has(permission)).map(({ label }) => label)
}

export const summaryOf = (grants: ReadonlyArray<string>): string => {
  const labels = labelsOf(grants)
  if (labels.length === permissionRows.length) return "Everything"
  return labels.length <= 3 ? labels.join(", ") : `${labels.slice(0, 2).join(", ")} and ${labels.length - 2} more`
}
