import type { ComponentType } from "preact"
import { useEffect, useState } from "preact/hooks"
import { useLocation } from "wouter-preact"
import { environmentIn } from "../api/Base.ts"
import { Button, ButtonLink } from "../components/Button.tsx"
import { Empty, Skeleton } from "../components/Loaded.tsx"
import { Notice } from "../components/Notice.tsx"
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

type Load = () => Promise<{ readonly default: ComponentType }>

/** A failure to load usually means that the service was updated: reloading gets its files. */
export const lazyPage = (load: Load): ComponentType => {
  let loaded: ComponentType | undefined
  const LazyPage = () => {
    const [state, setState] = useState<"loading" | "failed" | "loaded">(loaded === undefined ? "loading" : "loaded")
    useEffect(() => {
      if (loaded !== undefined) return
      let left = false
      load().then(
        (module) => {
          loaded = module.default
          if (!left) setState("loaded")
        },
        () => {
          if (!left) setState("failed")
        }
      )
      return () => {
        left = true
      }
    }, [])
    if (loaded !== undefined) {
      const Page = loaded
      return <Page />
    }
    if (state === "failed") {
      return (
        <div class="page" role="alert">
          <Notice
            tone="problem"
            title="This page could not be loaded"
            actions={<Button onClick={() => location.reload()}>Reload</Button>}
          >
            <p>The connection broke off, or the service has a newer version by now.</p>
          </Notice>
        </div>
      )
    }
    return (
      <div class="page">
        <Skeleton lines={6} />
      </div>
    )
  }
  return LazyPage
}
