import { useId, useRef, useState } from "preact/hooks"
import { servicePath } from "../../api/Base.ts"
import { Code } from "../../components/Code.tsx"
import manifest from "../../package.json" with { type: "json" }
import { useSession, useWorkspace } from "../../state/Session.ts"
import { environmentFile, snippetsFor } from "./snippets.ts"

const kitUrl = `${location.origin}${servicePath}/packages/connected-payments-webhooks-${manifest.version}.tgz`

/** Receiver code by language, with this organization and environment filled in. Arrow keys switch between tabs. */
export const Snippets = ({ secret }: { readonly secret?: string | undefined }) => {
  const { organization } = useSession()
  const { environment } = useWorkspace()
  const snippets = snippetsFor({ kitUrl, organizationId: organization.id, livemode: environment === "production" })
  const [at, setAt] = useState(0)
  const id = useId()
  const tabs = useRef<HTMLDivElement>(null)
  const shown = snippets[at] ?? snippets[0]
  const go = (to: number) => {
    const next = (to + snippets.length) % snippets.length
    setAt(next)
    tabs.current?.querySelectorAll<HTMLElement>("[role=tab]")[next]?.focus()
  }
  const onKeyDown = (event: KeyboardEvent) => {
    const to = new Map([
      ["ArrowLeft", at - 1],
      ["ArrowRight", at + 1],
      ["Home", 0],
      ["End", snippets.length - 1]
    ]).get(event.key)
    if (to === undefined) return
    event.preventDefault()
    go(to)
  }
  if (shown === undefined) return null
  return (
    <div class="snippets">
      <p>
        Give the receiver the secret by its environment, never in its code. It verifies each event’s signature, checks
        that the event is for this organization and environment, and only then answers 2xx.
      </p>
      {secret === undefined ? null : (
        <Code text={environmentFile(secret)} language=".env" label="The receiver's environment" copyLabel="Copy line" />
      )}
      <div class="snippet-tabs" role="tablist" aria-label="Language" ref={tabs} onKeyDown={onKeyDown}>
        {snippets.map((snippet, index) => (
          <button
            key={snippet.id}
            type="button"
            role="tab"
            id={`${id}-${snippet.id}`}
            aria-selected={index === at}
            aria-controls={`${id}-panel`}
            tabIndex={index === at ? 0 : -1}
            onClick={() => setAt(index)}
          >
            {snippet.label}
          </button>
        ))}
      </div>
      <div role="tabpanel" id={`${id}-panel`} aria-labelledby={`${id}-${shown.id}`}>
        <Code text={shown.code} language={shown.file} label={`A receiver in ${shown.label}`} copyLabel="Copy code" />
      </div>
    </div>
  )
}
