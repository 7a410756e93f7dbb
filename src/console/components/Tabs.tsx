import type { ComponentChildren } from "preact"
import { Link } from "wouter-preact"
import { Button } from "./Button.tsx"

/** Views of one page. They are links: the view lives in the address. */
export const Tabs = (props: {
  readonly label: string
  readonly items: ReadonlyArray<{ readonly id: string; readonly label: string; readonly href: string }>
  readonly current: string
}) => (
  <nav class="tabs" aria-label={props.label}>
    <ul>
      {props.items.map(({ href, id, label }) => (
        <li key={id}>
          <Link href={href} aria-current={id === props.current ? "page" : undefined}>
            {label}
          </Link>
        </li>
      ))}
    </ul>
  </nav>
)

/** A row of filters above a table. */
export const Filters = (props: {
  /** Empties all of them; left out while there is none to empty. */
  readonly onClear?: (() => void) | undefined
  readonly children: ComponentChildren
}) => (
  <search class="filters">
    {props.children}
    {props.onClear === undefined ? null : (
      <Button kind="quiet" onClick={props.onClear}>
        Clear filters
      </Button>
    )}
  </search>
)
