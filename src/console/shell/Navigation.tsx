import { Link, useLocation } from "wouter-preact"
import type { OperationKey } from "../api/operations.ts"
import { isSupported } from "../api/Supported.ts"
import { Icon, type IconName } from "../components/Icon.tsx"
import { useWorkspace } from "../state/Session.ts"

interface Entry {
  readonly path: string
  readonly label: string
  readonly icon: IconName
  /** Hidden from people without this permission. */
  readonly needs?: string
  /** Hidden if the provider has none of these operations, which the page is about. */
  readonly about?: ReadonlyArray<OperationKey>
}

const groups: ReadonlyArray<{ readonly label: string; readonly entries: ReadonlyArray<Entry> }> = [
  {
    label: "",
    entries: [
      { path: "/", label: "Overview", icon: "overview" },
      { path: "/start", label: "Start", icon: "start" }
    ]
  },
  {
    label: "Payments",
    entries: [
      {
        path: "/payments",
        label: "Payments",
        icon: "payments",
        needs: "payments:read",
        about: ["paymentIntents.list", "charges.list", "checkoutSessions.list"]
      },
      { path: "/products", label: "Products", icon: "catalog", needs: "products:read", about: ["products.list"] },
      {
        path: "/promotion-codes",
        label: "Promotion codes",
        icon: "promotion",
        needs: "coupons:read",
        about: ["promotionCodes.list"]
      },
      {
        path: "/payment-links",
        label: "Payment links",
        icon: "link",
        needs: "payments:read",
        about: ["paymentLinks.list", "checkoutPages.list"]
      }
    ]
  },
  {
    label: "Events",
    entries: [
      { path: "/destinations", label: "Destinations", icon: "destinations", needs: "webhook-endpoints:read" },
      { path: "/deliveries", label: "Deliveries", icon: "deliveries", needs: "webhook-endpoints:read" },
      { path: "/events", label: "Events", icon: "events", needs: "webhook-endpoints:read" }
    ]
  },
  {
    label: "Organization",
    entries: [
      { path: "/keys", label: "API keys", icon: "keys" },
      { path: "/people", label: "People", icon: "people" },
      { path: "/audit-log", label: "Audit log", icon: "audit", needs: "audit-log:read" },
      { path: "/account", label: "Account", icon: "account" }
    ]
  }
]

export const Navigation = ({ onNavigate }: { readonly onNavigate?: () => void }) => {
  const { can, path } = useWorkspace()
  const [location] = useLocation()
  const isOpen = (href: string, entry: Entry) =>
    location === href || (entry.path !== "/" && location.startsWith(`${href}/`))
  return (
    <nav class="navigation" aria-label="Pages">
      {groups.map(({ entries, label }) => (
        <div class="navigation-group" key={label}>
          {label === "" ? null : <p class="navigation-label">{label}</p>}
          <ul>
            {entries
              .filter(
                ({ about, needs }) =>
                  (needs === undefined || can(needs)) && (about === undefined || about.some(isSupported))
              )
              .map((entry) => {
                const href = path(entry.path)
                return (
                  <li key={entry.path}>
                    <Link
                      href={href}
                      aria-current={isOpen(href, entry) ? "page" : undefined}
                      {...(onNavigate === undefined ? {} : { onClick: onNavigate })}
                    >
                      <Icon name={entry.icon} />
                      {entry.label}
                    </Link>
                  </li>
                )
              })}
          </ul>
        </div>
      ))}
    </nav>
  )
}
