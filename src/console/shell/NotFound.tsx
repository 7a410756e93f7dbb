import { useLocation } from "wouter-preact"
import { environmentIn } from "../api/Base.ts"
import { ButtonLink } from "../components/Button.tsx"
import { Empty } from "../components/Loaded.tsx"
import { Page } from "../components/Page.tsx"
import { type Environment, firstWorkspace, useSession } from "../state/Session.ts"

export const NotFound = () => {
  const session = useSession()
  const [path] = useLocation()
  return (
    <Page title="Page not found">
      <Empty
        title="There is nothing at this address"
        action={
          <ButtonLink href={`/${environmentIn(path) ?? firstWorkspace(session)}`} kind="primary">
            Go to the overview
          </ButtonLink>
        }
      >
        <p>The link may be old, or a letter may be missing.</p>
      </Empty>
    </Page>
  )
}

/** Page for a workspace that the signed-in person may not enter. */
export const NoAccess = ({ environment }: { readonly environment: Environment }) => {
  const { workspaces } = useSession()
  const [other] = workspaces
  return (
    <Page title="No access">
      <Empty
        title={`You have no access to the ${environment} workspace`}
        action={
          other === undefined ? null : (
            <ButtonLink href={`/${other.environment}`} kind="primary">
              Go to {other.environment}
            </ButtonLink>
          )
        }
      >
        <p>An owner or admin of your organization can give it to you, on the page People.</p>
      </Empty>
    </Page>
  )
}
