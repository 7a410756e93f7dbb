import { useEffect, useRef } from "preact/hooks"
import { Link } from "wouter-preact"

/** Views of one page, as links: the address holds the view. Scrolls to the current tab if they don't all fit. */
export const Tabs = (props: {
  readonly label: string
  readonly items: ReadonlyArray<{ readonly id: string; readonly label: string; readonly href: string }>
  readonly current: string
}) => {
  const nav = useRef<HTMLElement>(null)
  useEffect(() => {
    const shown = nav.current
    const link = shown?.querySelector<HTMLElement>('[aria-current="page"]')
    // Not `scrollIntoView`, which would also scroll the page
    if (shown && link)
      shown.scrollLeft = link.offsetLeft - shown.offsetLeft - (shown.clientWidth - link.offsetWidth) / 2
  }, [props.current])
  return (
    <nav class="tabs" aria-label={props.label} ref={nav}>
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
}
