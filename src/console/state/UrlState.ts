import { useCallback, useRef } from "preact/hooks"
import { useLocation, useSearch } from "wouter-preact"

/** A change replaces the history entry: going back leaves the page instead of undoing filters. */
export const useUrlState = <K extends string>(
  ...names: ReadonlyArray<K>
): [Readonly<Record<K, string>>, (change: Partial<Record<K, string>>) => void] => {
  const search = useSearch()
  const [path, navigate] = useLocation()
  const query = new URLSearchParams(search)
  const state = Object.fromEntries(names.map((name) => [name, query.get(name) ?? ""])) as Record<K, string>
  const latest = useRef({ search, path, navigate })
  latest.current = { search, path, navigate }
  const change = useCallback((changed: Partial<Record<K, string>>) => {
    const next = new URLSearchParams(latest.current.search)
    for (const [name, value] of Object.entries<string | undefined>(changed)) {
      if (value === undefined || value === "") next.delete(name)
      else next.set(name, value)
    }
    const text = next.toString()
    latest.current.navigate(`${latest.current.path}${text === "" ? "" : `?${text}`}`, { replace: true })
  }, [])
  return [state, change]
}

/** The same for filters: `field` binds one to its field, `onClear` empties them all and is undefined while none is set. */
export const useUrlFilters = <K extends string>(...names: ReadonlyArray<K>) => {
  const [filters, change] = useUrlState(...names)
  const clear = () => change(Object.fromEntries(names.map((name) => [name, ""])) as Record<K, string>)
  const field = (name: K) => ({
    name,
    value: filters[name],
    onChange: (value: string) => change({ [name]: value } as Partial<Record<K, string>>)
  })
  return { filters, field, onClear: names.every((name) => filters[name] === "") ? undefined : clear }
}
