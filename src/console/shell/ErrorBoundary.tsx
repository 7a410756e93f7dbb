import { Component, type ComponentChildren } from "preact"
import { Button } from "../components/Button.tsx"
import { Notice } from "../components/Notice.tsx"

interface Props {
  readonly children: ComponentChildren
}

/** Shows an error message for a page that has failed; the browser console has the cause. */
export class ErrorBoundary extends Component<Props, { readonly failed: boolean }> {
  override state = { failed: false }

  static override getDerivedStateFromError() {
    return { failed: true }
  }

  override componentDidCatch(error: unknown) {
    console.error(error)
  }

  override render() {
    if (!this.state.failed) return this.props.children
    return (
      <main class="plain" id="main">
        <div class="plain-card" role="alert">
          <h1>This page has failed</h1>
          <Notice tone="problem" actions={<Button onClick={() => location.reload()}>Reload</Button>}>
            <p>That is a mistake in the page, not in what you did. Nothing that you had saved is lost.</p>
          </Notice>
        </div>
      </main>
    )
  }
}
