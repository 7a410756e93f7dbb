import type { ComponentChildren } from "preact"
import { Link } from "wouter-preact"

export type ButtonKind = "primary" | "plain" | "danger" | "quiet"

/** A button. While `busy` it keeps its size and the focus, but ignores clicks. */
export const Button = (props: {
  readonly kind?: ButtonKind | undefined
  readonly busy?: boolean | undefined
  readonly disabled?: boolean | undefined
  readonly onClick?: (() => void) | undefined
  readonly type?: "button" | "submit"
  /** For a button whose text alone is unclear. */
  readonly label?: string | undefined
  readonly small?: boolean
  readonly children: ComponentChildren
}) => {
  const busy = props.busy === true
  return (
    <button
      type={props.type ?? "button"}
      class={`button button-${props.kind ?? "plain"}${props.small === true ? " button-small" : ""}`}
      disabled={props.disabled === true}
      aria-disabled={busy || undefined}
      aria-busy={busy || undefined}
      aria-label={props.label}
      onClick={(event) => {
        if (busy) event.preventDefault()
        else props.onClick?.()
      }}
    >
      {busy ? <span class="spinner" aria-hidden="true" /> : null}
      <span>{props.children}</span>
    </button>
  )
}

export const ButtonLink = (props: {
  readonly href: string
  readonly kind?: ButtonKind
  readonly small?: boolean
  readonly children: ComponentChildren
}) => (
  <Link
    href={props.href}
    className={`button button-${props.kind ?? "plain"}${props.small === true ? " button-small" : ""}`}
  >
    <span>{props.children}</span>
  </Link>
)

/** Removes an entry from a form's list. */
export const RemoveButton = ({ label, onClick }: { readonly label: string; readonly onClick: () => void }) => (
  <p>
    <Button small kind="quiet" label={label} onClick={onClick}>
      Remove
    </Button>
  </p>
)

/** Adds an entry to a form's list. */
export const AddButton = ({ children, onClick }: { readonly children: string; readonly onClick: () => void }) => (
  <p>
    <Button small onClick={onClick}>
      {children}
    </Button>
  </p>
)
