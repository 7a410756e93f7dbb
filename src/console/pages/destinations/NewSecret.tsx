import { Secret } from "../../components/Code.tsx"
import { Notice } from "../../components/Notice.tsx"

interface NewSecretProps {
  readonly signingSecret: string
  readonly standardWebhooksSecret: string
}

export const NewSecret = ({ signingSecret, standardWebhooksSecret }: NewSecretProps) => (
  <div class="new-secret">
    <Notice tone="warning" title="Store this secret now: it is shown only this once">
      <p>The receiver verifies events with it. If it is lost, rotate it: the destination gets a new one.</p>
    </Notice>
    <h3>Signing secret</h3>
    <Secret value={signingSecret} copyLabel="Copy secret" />
    <details>
      <summary>For a library of Standard Webhooks</summary>
      <p>The same secret in the form that those libraries take:</p>
      <Secret value={standardWebhooksSecret} copyLabel="Copy this form" />
    </details>
  </div>
)
