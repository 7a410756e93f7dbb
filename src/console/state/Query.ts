import { useCallback, useEffect, useRef, useState } from "preact/hooks"
import { type ApiError, isAbort, toApiError } from "../api/ApiError.ts"
import { currentPath, environmentIn } from "../api/Base.ts"

/** Query cache by workspace and key, so that going back shows data at once. A change reloads all that is shown. */

interface Entry {
  value: unknown
  readonly listeners: Set<() => void>
}

const entries = new Map<string, Entry>()

const inWorkspace = (key: string | null): string | null =>
  key === null ? null : `${environmentIn(currentPath())} ${key}`

const maxKept = 100

const entryOf = (key: string): Entry => {
  const known = entries.get(key)
  if (known !== undefined) return known
  const made: Entry = { value: undefined, listeners: new Set() }
  entries.set(key, made)
  for (const [old, { listeners }] of entries) {
    if (entries.size <= maxKept) break
    if (listeners.size === 0 && old !== key) entries.delete(old)
  }
  return made
}

/** After a change: reloads the queries in use and drops the others. */
const reloadAll = (): void => {
  // A load under way may have been answered before the change
  shared.clear()
  for (const [key, { listeners }] of [...entries]) {
    if (listeners.size === 0) entries.delete(key)
    for (const listener of [...listeners]) listener()
  }
}

export const clearQueries = (): void => {
  for (const [key, { listeners }] of [...entries]) {
    if (listeners.size === 0) entries.delete(key)
    else entryOf(key).value = undefined
  }
}

/** The cached value of a key. The cast is safe because each key has one owner and one type. */
const cached = <A>(key: string | null): A | undefined =>
  key === null ? undefined : (entries.get(key)?.value as A | undefined)

interface Loaded<A> {
  readonly key: string | null
  readonly data: A | undefined
  readonly error: ApiError | undefined
  readonly loading: boolean
}

const notLoaded = <A>(key: string | null): Loaded<A> => ({
  key,
  data: cached<A>(key),
  error: undefined,
  loading: key !== null
})

/** The loads under way: parts of a page that show the same data ask for it once. */
const shared = new Map<string, { readonly answer: Promise<unknown>; users: number }>()

const loadShared = <A>(key: string, load: (signal: AbortSignal) => Promise<A>, signal: AbortSignal): Promise<A> => {
  const controller = new AbortController()
  const known = shared.get(key)
  const one = known ?? { answer: load(controller.signal), users: 0 }
  one.users += 1
  if (known === undefined) {
    shared.set(key, one)
    const forget = () => {
      if (shared.get(key) === one) shared.delete(key)
    }
    one.answer.then(forget, forget)
  }
  signal.addEventListener("abort", () => {
    one.users -= 1
    if (one.users > 0) return
    if (shared.get(key) === one) shared.delete(key)
    controller.abort()
  })
  // Each key has one owner and one type, as in `cached`
  return one.answer as Promise<A>
}

/** Polling replaces a load that takes longer, such as one interrupted by the computer's sleep. */
const longestLoadMillis = 30_000

/** Runs one load of `key` at a time: a newer one aborts the previous one. */
const useLoads = <A>(key: string | null) => {
  const [state, setState] = useState(() => notLoaded<A>(key))
  const running = useRef<{ readonly controller: AbortController; readonly since: number } | undefined>(undefined)
  const run = useCallback(
    (load: (signal: AbortSignal) => Promise<A>) => {
      if (key === null) return
      running.current?.controller.abort()
      const controller = new AbortController()
      running.current = { controller, since: performance.now() }
      const ended = () => {
        if (running.current?.controller === controller) running.current = undefined
      }
      setState((before) =>
        before.key === key ? { ...before, data: cached<A>(key) ?? before.data, loading: true } : notLoaded(key)
      )
      load(controller.signal).then(
        (data) => {
          ended()
          if (controller.signal.aborted) return
          entryOf(key).value = data
          setState({ key, data, error: undefined, loading: false })
        },
        (failure: unknown) => {
          ended()
          if (controller.signal.aborted || isAbort(failure)) return
          setState((before) => ({ ...before, error: toApiError(failure), loading: false }))
        }
      )
    },
    [key]
  )
  const stop = useCallback(() => {
    running.current?.controller.abort()
    running.current = undefined
  }, [])
  const isUnderWay = useCallback(
    () => running.current !== undefined && performance.now() - running.current.since < longestLoadMillis,
    []
  )
  // A page with another key must not show the previous key's data, not even before its effects have run
  const shown = state.key === key ? state : notLoaded<A>(key)
  return { shown, run, stop, isUnderWay }
}

/**
 * Reloads every `millis` while the tab is visible, and at once when it becomes visible again. Skips a turn while a load
 * is running: otherwise a load longer than `millis` would be aborted each time and never finish.
 */
const usePolling = (millis: number | undefined, reload: () => void, isUnderWay: () => boolean): void => {
  const tick = () => {
    if (!isUnderWay()) reload()
  }
  const latest = useRef(tick)
  latest.current = tick
  useEffect(() => {
    if (millis === undefined) return
    let timer: ReturnType<typeof setInterval> | undefined
    const start = () => {
      clearInterval(timer)
      timer = setInterval(() => latest.current(), millis)
    }
    const onVisibility = () => {
      clearInterval(timer)
      if (document.hidden) return
      latest.current()
      start()
    }
    if (!document.hidden) start()
    document.addEventListener("visibilitychange", onVisibility)
    return () => {
      clearInterval(timer)
      document.removeEventListener("visibilitychange", onVisibility)
    }
  }, [millis])
}

const useReloads = <A>(
  key: string | null,
  { isUnderWay, stop }: Pick<ReturnType<typeof useLoads<A>>, "isUnderWay" | "stop">,
  reload: () => void,
  pollMillis: number | undefined
): void => {
  useEffect(() => {
    reload()
    return stop
  }, [reload, stop])
  useEffect(() => {
    if (key === null) return
    const { listeners } = entryOf(key)
    listeners.add(reload)
    return () => {
      listeners.delete(reload)
    }
  }, [key, reload])
  usePolling(key === null ? undefined : pollMillis, reload, isUnderWay)
}

interface QueryOptions {
  readonly pollMillis?: number
}

export interface Query<A> {
  readonly data: A | undefined
  readonly error: ApiError | undefined
  readonly loading: boolean
  readonly reload: () => void
}

/** Shows cached data at once, and loads it again. A null name loads nothing. */
export const useQuery = <A>(
  name: string | null,
  load: (signal: AbortSignal) => Promise<A>,
  { pollMillis }: QueryOptions = {}
): Query<A> => {
  const key = inWorkspace(name)
  const loads = useLoads<A>(key)
  const { run, shown } = loads
  const latest = useRef(load)
  latest.current = load
  const reload = useCallback(
    () => run((signal) => loadShared(key ?? "", (ofAll) => latest.current(ofAll), signal)),
    [key, run]
  )
  useReloads(key, loads, reload, pollMillis)
  return { data: shown.data, error: shown.error, loading: shown.loading, reload }
}

export interface PageOf<A> {
  readonly data: ReadonlyArray<A>
  readonly has_more: boolean
}

export interface PageQuery {
  readonly limit: number
  readonly starting_after?: string
}

export interface PagedList<A> extends Omit<Query<unknown>, "data"> {
  readonly items: ReadonlyArray<A>
  readonly hasMore: boolean
  readonly more: () => void
}

/** A reload reads at most this many pages; a longer list is cut back to them. */
const maxReloadedPages = 5

/** Reads a list page by page. `more` appends the next page; a reload and polling read the shown pages again. */
export const usePages = <A extends { readonly id: string }>(
  name: string | null,
  load: (page: PageQuery, signal: AbortSignal) => Promise<PageOf<A>>,
  { limit = 25, pollMillis }: QueryOptions & { readonly limit?: number } = {}
): PagedList<A> => {
  const key = inWorkspace(name)
  const loads = useLoads<ReadonlyArray<PageOf<A>>>(key)
  const { run, shown } = loads
  const pages = shown.data ?? []
  const latest = useRef({ load, limit, pages })
  latest.current = { load, limit, pages }
  const readPages = useCallback(async (count: number, begun: ReadonlyArray<PageOf<A>>, signal: AbortSignal) => {
    const read = [...begun]
    while (read.length < count && (read.length === 0 || read.at(-1)?.has_more === true)) {
      const last = read.at(-1)?.data.at(-1)
      const page = { limit: latest.current.limit, ...(last === undefined ? {} : { starting_after: last.id }) }
      read.push(await latest.current.load(page, signal))
    }
    return read
  }, [])
  const reload = useCallback(() => {
    const count = Math.min(maxReloadedPages, Math.max(1, latest.current.pages.length))
    run((signal) => readPages(count, [], signal))
  }, [run, readPages])
  const more = useCallback(() => {
    const { pages: begun } = latest.current
    run((signal) => readPages(begun.length + 1, begun, signal))
  }, [run, readPages])
  useReloads(key, loads, reload, pollMillis)
  return {
    items: pages.flatMap(({ data }) => data),
    hasMore: pages.at(-1)?.has_more === true,
    loading: shown.loading,
    error: shown.error,
    more,
    reload
  }
}

/** Refusals made before the service looks up the key; they reveal nothing about an earlier try. */
const precedesKey = ({ code, status }: ApiError): boolean =>
  [401, 403, 408, 413, 429].includes(status) || code === "validation_failed"

/**
 * Whether a failure is final for its idempotency key, so that the next try needs a new key. No response, a server error
 * and a first try that is still running are not final.
 *
 * @param isOpen whether an earlier try with this key may have made the change
 */
const endsChange = (error: ApiError, isOpen: boolean): boolean =>
  error.status >= 400 &&
  error.status < 500 &&
  error.code !== "idempotency_request_in_progress" &&
  !(isOpen && precedesKey(error))

const openChanges = new Map<string, string>()

export interface Submission {
  readonly submit: () => void
  readonly busy: boolean
  readonly error: ApiError | undefined
  readonly reset: () => void
}

/**
 * A change made by a form or a button. It keeps one idempotency key until the change is made or refused, so that
 * neither a second click nor a retry after a lost response makes it twice.
 *
 * @param of names the change if it must never be made twice: the key then outlives the form, so that reopening the
 * dialog or returning to the page continues the same change while its outcome is unknown
 */
export const useSubmit = <A>(
  action: (idempotencyKey: string) => Promise<A>,
  onDone?: (answer: A) => void,
  of?: string
): Submission => {
  const [state, setState] = useState<Pick<Submission, "busy" | "error">>({ busy: false, error: undefined })
  const latest = useRef({ action, onDone })
  latest.current = { action, onDone }
  const key = useRef(of === undefined ? undefined : openChanges.get(of))
  // Whether a try with this key has an unknown outcome
  const open = useRef(key.current !== undefined)
  const busy = useRef(false)
  const mounted = useRef(true)
  useEffect(() => {
    mounted.current = true
    return () => {
      mounted.current = false
    }
  }, [])
  const submit = useCallback(() => {
    if (busy.current) return
    busy.current = true
    key.current ??= crypto.randomUUID()
    // Set before the response, when the form may be gone
    if (of !== undefined) openChanges.set(of, key.current)
    setState({ busy: true, error: undefined })
    latest.current
      .action(key.current)
      .then(
        (answer) => {
          key.current = undefined
          open.current = false
          if (of !== undefined) openChanges.delete(of)
          // Later, since `onDone` may leave the page
          setTimeout(reloadAll)
          if (!mounted.current) return
          setState({ busy: false, error: undefined })
          latest.current.onDone?.(answer)
        },
        (failure: unknown) => {
          const error = toApiError(failure)
          open.current = !endsChange(error, open.current)
          if (!open.current) key.current = undefined
          if (!open.current && of !== undefined) openChanges.delete(of)
          if (mounted.current) setState({ busy: false, error })
        }
      )
      .finally(() => {
        busy.current = false
      })
  }, [of])
  const reset = useCallback(() => {
    // A reopened dialog retries the same change while its outcome is unknown
    if (!busy.current && !open.current) key.current = undefined
    setState({ busy: busy.current, error: undefined })
  }, [])
  return { submit, ...state, reset }
}
