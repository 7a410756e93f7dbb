import type { ComponentChildren } from "preact"

export type Tone = "neutral" | "ok" | "warning" | "problem" | "info"

/** A word that stands out, such as a state. The colour only repeats what the word says. */
export const Badge = (props: { readonly tone?: Tone | "sandbox"; readonly children: ComponentChildren }) => (
  <span class={`badge badge-${props.tone ?? "neutral"}`}>{props.children}</span>
)
