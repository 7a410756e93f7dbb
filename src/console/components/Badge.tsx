import type { ComponentChildren } from "preact"
import type { Tone } from "./charts/chartScales.ts"

/** A highlighted word, such as a state. Its colour adds nothing to the word. */
export const Badge = (props: {
  readonly tone?: Tone | "sandbox" | undefined
  readonly children: ComponentChildren
}) => <span class={`badge badge-${props.tone ?? "neutral"}`}>{props.children}</span>

export const StatusBadge = ({ status }: { readonly status: { readonly words: string; readonly tone: Tone } }) => (
  <Badge tone={status.tone}>{status.words}</Badge>
)

/** A state that is on or off, such as `Active` and `Inactive`; the first word is shown in green. */
export const OnOffBadge = (props: {
  readonly isOn: boolean
  readonly words: readonly [on: string, off: string]
  readonly off?: Tone
}) => (props.isOn ? <Badge tone="ok">{props.words[0]}</Badge> : <Badge tone={props.off}>{props.words[1]}</Badge>)
