import { useEffect, useState } from "preact/hooks"
import { useLocation } from "wouter-preact"
import { pageOf } from "../pages/search/terms.ts"
import { useWorkspace } from "../state/Session.ts"

/** The search field of all pages: opens an id's page at once, and the results of anything else. */
export const SearchField = ({ onNavigate }: { readonly onNavigate?: () => void }) => {
  const { can, path } = useWorkspace()
  const [location, navigate] = useLocation()
  const [text, setText] = useState("")
  useEffect(() => {
    if (!location.endsWith("/search")) setText("")
  }, [location])
  if (!can("payments:read") && !can("webhook-endpoints:read")) return null
  const open = (event: Event) => {
    event.preventDefault()
    const search = text.trim()
    if (search === "") return
    const page = pageOf(search)
    if (page === undefined) navigate(path("/search"), { state: { search } })
    else navigate(path(page))
    onNavigate?.()
  }
  return (
    <search>
      <form onSubmit={open}>
        <input
          type="search"
          aria-label="Search payments and events"
          placeholder="Order, e-mail, amount…"
          autocomplete="off"
          maxLength={255}
          value={text}
          onInput={({ currentTarget }) => setText(currentTarget.value)}
        />
      </form>
    </search>
  )
}
