import type { ComponentChildren } from "preact"

export type Tone = "neutral" | "ok" | "warning" | "problem" | "info"

/** A highlighted word, such as a state. Its colour adds nothing to the word. */
export const Badge = (props: { readonly tone?: Tone | "sandbox"; readonly children: ComponentChildren }) => (
  <span class={`badge badge-${props.tone ?? "neutral"}`}>{props.children}</span>
)
