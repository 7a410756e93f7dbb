import type { ComponentChildren } from "preact"
import { useRef, useState } from "preact/hooks"
import { Link, useLocation } from "wouter-preact"
import { Modal } from "../components/Dialog.tsx"
import { Icon } from "../components/Icon.tsx"
import { useSession, useWorkspace } from "../state/Session.ts"
import { AccountMenu } from "./AccountMenu.tsx"
import { Brand } from "./Brand.tsx"
import { Navigation } from "./Navigation.tsx"
import { SearchField } from "./SearchField.tsx"

const environmentNames = { sandbox: "Sandbox", production: "Production" } as const

/** The list page of the same kind in another workspace, where this workspace's objects do not exist. */
const sameKind = (path: string): string => {
  const [, , kind = ""] = path.split("/")
  return kind === "" ? "" : `/${kind}`
}

const WorkspaceSwitch = ({ onNavigate }: { readonly onNavigate?: () => void }) => {
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
              {...(onNavigate === undefined ? {} : { onClick: onNavigate })}
            >
              <span class="workspace-dot" aria-hidden="true" />
              {environmentNames[workspace.environment]}
            </Link>
          </li>
        ))}
      </ul>
    </nav>
  )
}

const Side = ({ onNavigate }: { readonly onNavigate?: () => void }) => {
  const { organization } = useSession()
  const passed = onNavigate === undefined ? {} : { onNavigate }
  return (
    <>
      <div class="side-head">
        <Brand />
        <p class="side-organization" title={organization.name}>
          {organization.name}
        </p>
        <WorkspaceSwitch {...passed} />
        <SearchField {...passed} />
      </div>
      <Navigation {...passed} />
      <AccountMenu {...passed} />
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
        <Side />
      </aside>
      {drawer ? <Drawer onClose={() => setDrawer(false)} /> : null}
      <main class="main" id="main" ref={main} tabIndex={-1}>
        {children}
      </main>
    </div>
  )
}
