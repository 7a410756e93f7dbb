import { Copy } from "./Copy.tsx"

export const Code = (props: {
  readonly text: string
  readonly language?: string
  /** Names the text for screen readers. */
  readonly label?: string
  readonly copyLabel?: string
}) => (
  <div class="code">
    <div class="code-bar">
      <span class="code-language">{props.language ?? ""}</span>
      <Copy text={props.text} label={props.copyLabel ?? "Copy"} />
    </div>
    {props.label === undefined ? null : <span class="for-readers">{props.label}</span>}
    {/* biome-ignore lint/a11y/noNoninteractiveTabindex: scrollable text has to be reachable by keyboard */}
    <pre tabIndex={0}>
      <code>{props.text}</code>
    </pre>
  </div>
)

export const JsonView = ({ value }: { readonly value: unknown }) => (
  <Code text={JSON.stringify(value, null, 2) ?? "undefined"} language="json" label="JSON" />
)

/** A secret that is shown only once: whole, on one selectable line, with a copy button. */
export const Secret = ({ copyLabel, value }: { readonly value: string; readonly copyLabel: string }) => (
  <div class="secret">
    <code>{value}</code>
    <Copy text={value} label={copyLabel} />
  </div>
)
