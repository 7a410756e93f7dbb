import type { ComponentChildren } from "preact"
import { useEffect, useRef, useState } from "preact/hooks"
import { Link, useLocation } from "wouter-preact"
import type { OperationKey } from "../api/Call.ts"
import { capitalized } from "../api/Reading.ts"
import { isSupported } from "../api/Supported.ts"
import { Modal } from "../components/Dialog.tsx"
import { Icon, type IconName } from "../components/Icon.tsx"
import { pageOf } from "../pages/search/terms.ts"
import { useSession, useWorkspace } from "../state/Session.ts"
import { AccountMenu } from "./AccountMenu.tsx"
import { Brand } from "./Brand.tsx"

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

const Navigation = ({ onNavigate }: { readonly onNavigate: () => void }) => {
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
                    <Link href={href} aria-current={isOpen(href, entry) ? "page" : undefined} onClick={onNavigate}>
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

/** The search field of all pages: opens an id's page at once, and the results of anything else. */
const SearchField = ({ onNavigate }: { readonly onNavigate: () => void }) => {
  const { can, path } = useWorkspace()
  const [location, navigate] = useLocation()
  const [text, setText] = useState("")
  useEffect(() => {
    if (!location.endsWith("/search")) setText("")
  }, [location])
  if (!can("payments:read") && !can("webhook-endpoints:read")) return null
  const open = (event: Event) => {
    event.preventDefault()
    const search = text.trim()
    if (search === "") return
    const page = pageOf(search)
    if (page === undefined) navigate(path("/search"), { state: { search } })
    else navigate(path(page))
    onNavigate()
  }
  return (
    <search>
      <form onSubmit={open}>
        <input
          type="search"
          aria-label="Search payments and events"
          placeholder="Order, e-mail, amount…"
          autocomplete="off"
          maxLength={255}
          value={text}
          onInput={({ currentTarget }) => setText(currentTarget.value)}
        />
      </form>
    </search>
  )
}

/** The list page of the same kind in another workspace, where this workspace's objects do not exist. */
const sameKind = (path: string): string => {
  const [, , kind = ""] = path.split("/")
  return kind === "" ? "" : `/${kind}`
}

const WorkspaceSwitch = ({ onNavigate }: { readonly onNavigate: () => void }) => {
  const { workspaces } = useSession()
  const { environment } = useWorkspace()
  const [location] = useLocation()
  return (
    <nav class="workspace-switch" aria-label="Workspace">
      <ul>
        {workspaces.map((workspace) => (
          <li key={workspace.environment}>
            <Link
              href={`/${workspace.environment}${sameKind(location)}`}
              className={`workspace workspace-${workspace.environment}`}
              aria-current={workspace.environment === environment ? "true" : undefined}
              onClick={onNavigate}
            >
              <span class="workspace-dot" aria-hidden="true" />
              {capitalized(workspace.environment)}
            </Link>
          </li>
        ))}
      </ul>
    </nav>
  )
}

const Side = ({ onNavigate }: { readonly onNavigate: () => void }) => {
  const { organization } = useSession()
  return (
    <>
      <div class="side-head">
        <Brand />
        <p class="side-organization" title={organization.name}>
          {organization.name}
        </p>
        <WorkspaceSwitch onNavigate={onNavigate} />
        <SearchField onNavigate={onNavigate} />
      </div>
      <Navigation onNavigate={onNavigate} />
      <AccountMenu onNavigate={onNavigate} />
    </>
  )
}

const Drawer = ({ onClose }: { readonly onClose: () => void }) => (
  <Modal class="drawer" aria-label="Navigation" onClose={onClose}>
    <div class="drawer-content">
      <button type="button" class="icon-button drawer-close" aria-label="Close the navigation" onClick={onClose}>
        <Icon name="close" />
      </button>
      <Side onNavigate={onClose} />
    </div>
  </Modal>
)

const SandboxBand = () => (
  <p class="sandbox-band">
    <strong>Sandbox</strong>
    <span>Test data. No real money moves here.</span>
  </p>
)

export const Shell = ({ children }: { readonly children: ComponentChildren }) => {
  const { environment } = useWorkspace()
  const [drawer, setDrawer] = useState(false)
  const close = () => setDrawer(false)
  const main = useRef<HTMLElement>(null)
  return (
    <div class={`shell shell-${environment}`}>
      <a
        class="skip-link"
        href={`${location.pathname}${location.search}#main`}
        onClick={(event) => {
          event.preventDefault()
          main.current?.focus()
        }}
      >
        Skip to the content
      </a>
      <header class="top">
        {environment === "sandbox" ? <SandboxBand /> : null}
        <div class="top-bar">
          <button
            type="button"
            class="icon-button"
            aria-label="Open the navigation"
            aria-haspopup="dialog"
            onClick={() => setDrawer(true)}
          >
            <Icon name="menu" />
          </button>
          <Brand />
        </div>
      </header>
      <aside class="side" aria-label="Workspace and pages">
        <Side onNavigate={close} />
      </aside>
      {drawer ? <Drawer onClose={close} /> : null}
      <main class="main" id="main" ref={main} tabIndex={-1}>
        {children}
      </main>
    </div>
  )
}
