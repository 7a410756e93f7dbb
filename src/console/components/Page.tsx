import type { ComponentChildren } from "preact"
import { useEffect, useRef } from "preact/hooks"
import { Link, useLocation } from "wouter-preact"
import { environmentIn } from "../api/Base.ts"
import { Badge } from "./Badge.tsx"
import { Icon } from "./Icon.tsx"

const product = "connected-payments"

/** The page whose heading was focused last. On the first page of a visit, the browser's focus is left alone. */
const focused: { path: string | undefined } = { path: undefined }

/** Sets the tab's title, and moves the focus to the heading after a navigation. */
export const usePageHeading = (title: string) => {
  const [path] = useLocation()
  const heading = useRef<HTMLHeadingElement>(null)
  const environment = environmentIn(path)
  useEffect(() => {
    document.title = [title, ...(environment === "sandbox" ? ["Sandbox"] : []), product].join(" · ")
  }, [title, environment])
  useEffect(() => {
    const before = focused.path
    focused.path = path
    if (before !== undefined && before !== path) heading.current?.focus()
  }, [path])
  return heading
}

export const Page = (props: {
  readonly title: string
  readonly actions?: ComponentChildren
  /** A sentence below the heading. */
  readonly lead?: ComponentChildren
  readonly back?: { readonly href: string; readonly label: string } | undefined
  readonly children?: ComponentChildren
}) => {
  const heading = usePageHeading(props.title)
  const [path] = useLocation()
  return (
    <div class="page">
      {props.back === undefined ? null : (
        <Link href={props.back.href} className="page-back">
          <Icon name="back" />
          {props.back.label}
        </Link>
      )}
      <header class="page-header">
        <div class="page-title">
          <h1 ref={heading} tabIndex={-1}>
            {props.title}
          </h1>
          {environmentIn(path) === "sandbox" ? <Badge tone="sandbox">Sandbox</Badge> : null}
        </div>
        {props.actions === undefined || props.actions === null ? null : <div class="page-actions">{props.actions}</div>}
      </header>
      {props.lead === undefined || props.lead === null ? null : <p class="page-lead">{props.lead}</p>}
      {props.children}
    </div>
  )
}

export const Section = (props: {
  readonly title: string
  readonly actions?: ComponentChildren
  readonly lead?: ComponentChildren
  readonly children?: ComponentChildren
}) => (
  <section class="section">
    <header class="section-header">
      <h2>{props.title}</h2>
      {props.actions === undefined || props.actions === null ? null : (
        <div class="section-actions">{props.actions}</div>
      )}
    </header>
    {props.lead === undefined || props.lead === null ? null : <p class="section-lead">{props.lead}</p>}
    <div class="section-body">{props.children}</div>
  </section>
)

/** Facts as a definition list; omits facts without a value. */
export const Facts = ({
  items
}: {
  readonly items: ReadonlyArray<readonly [label: string, value: ComponentChildren]>
}) => (
  <dl class="facts">
    {items
      .filter(([, value]) => value !== undefined && value !== null && value !== false)
      .map(([label, value]) => (
        <div key={label}>
          <dt>{label}</dt>
          <dd>{value}</dd>
        </div>
      ))}
  </dl>
)
