import { Link, useLocation } from "wouter-preact"
import { useSession, useWorkspace } from "../state/Session.ts"

const names = { sandbox: "Sandbox", production: "Production" } as const

/** The list page of the same kind in another workspace, where this workspace's objects do not exist. */
const sameKind = (path: string): string => {
  const [, , kind = ""] = path.split("/")
  return kind === "" ? "" : `/${kind}`
}

/** Switches between workspaces; shows only those that the person may enter. */
export const WorkspaceSwitch = ({ onNavigate }: { readonly onNavigate?: () => void }) => {
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
              {names[workspace.environment]}
            </Link>
          </li>
        ))}
      </ul>
    </nav>
  )
}
