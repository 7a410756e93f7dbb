import type { ComponentType } from "preact"
import { useEffect, useState } from "preact/hooks"
import { Button } from "../components/Button.tsx"
import { Skeleton } from "../components/Loaded.tsx"
import { Notice } from "../components/Notice.tsx"

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
