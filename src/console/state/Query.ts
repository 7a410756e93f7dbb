import { useCallback, useEffect, useRef, useState } from "preact/hooks"
import { type ApiError, toApiError } from "../api/ApiError.ts"

/** What pages have read, by key, so that going back shows it at once and a change can have it read again. */

interface Entry {
  value: unknown
  readonly listeners: Set<() => void>
}

const entries = new Map<string, Entry>()

/** How many answers are kept without a page that shows them. */
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

/** Has the queries whose key starts so read again, after a change. What no page shows is forgotten. */
export const invalidate = (keyPrefix: string): void => {
  for (const [key, entry] of [...entries]) {
    if (!key.startsWith(keyPrefix)) continue
    if (entry.listeners.size === 0) entries.delete(key)
    for (const listener of [...entry.listeners]) listener()
  }
}

/** Forgets everything that was read, as at the end of a session. */
export const clearQueries = (): void => {
  for (const [key, { listeners }] of [...entries]) {
    if (listeners.size === 0) entries.delete(key)
    else entryOf(key).value = undefined
  }
}

const isAbort = (failure: unknown): boolean => failure instanceof DOMException && failure.name === "AbortError"

interface Loaded<A> {
  readonly key: string | null
  readonly data: A | undefined
  readonly error: ApiError | undefined
  readonly loading: boolean
}

/**
 * Reads again every `millis` while the tab is shown, and at once when it is shown again. Never while something is still
 * being read: what takes longer than `millis` would be given up each time and never arrive.
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
    const stop = () => {
      clearInterval(timer)
      timer = undefined
    }
    const start = () => {
      stop()
      timer = setInterval(() => latest.current(), millis)
    }
    const onVisibility = () => {
      if (document.hidden) stop()
      else {
        latest.current()
        start()
      }
    }
    if (!document.hidden) start()
    document.addEventListener("visibilitychange", onVisibility)
    return () => {
      stop()
      document.removeEventListener("visibilitychange", onVisibility)
    }
  }, [millis])
}

/** Reads the cached value of a key. The key's owner alone says what type it has: one key, one kind of answer. */
const cached = <A>(key: string | null): A | undefined =>
  key === null ? undefined : (entries.get(key)?.value as A | undefined)

/** A load that takes longer, such as one that a computer slept through, is no longer waited for by polling. */
const longestLoadMillis = 30_000

/** One load at a time of what `key` names: a newer one ends the one before it. */
const useLoads = <A>(key: string | null, keepPrevious: boolean) => {
  const [state, setState] = useState<Loaded<A>>(() => ({
    key,
    data: cached<A>(key),
    error: undefined,
    loading: key !== null
  }))
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
      setState((before) => ({
        key,
        data: before.key === key || keepPrevious ? (cached<A>(key) ?? before.data) : cached<A>(key),
        error: before.key === key ? before.error : undefined,
        loading: true
      }))
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
    [key, keepPrevious]
  )
  const stop = useCallback(() => {
    running.current?.controller.abort()
    running.current = undefined
  }, [])
  const isUnderWay = useCallback(
    () => running.current !== undefined && performance.now() - running.current.since < longestLoadMillis,
    []
  )
  // A page with another key shows nothing of the one before, not even until its effects have run
  const shown: Loaded<A> =
    state.key === key || (keepPrevious && key !== null)
      ? state
      : { key, data: cached<A>(key), error: undefined, loading: key !== null }
  return { shown, run, stop, isUnderWay }
}

const useInvalidation = (key: string | null, reload: () => void): void => {
  useEffect(() => {
    if (key === null) return
    const { listeners } = entryOf(key)
    listeners.add(reload)
    return () => {
      listeners.delete(reload)
    }
  }, [key, reload])
}

export interface QueryOptions {
  /** Reads again so often while the tab is shown. */
  readonly pollMillis?: number
  /** Keeps showing the previous key's data until the new one's has arrived. */
  readonly keepPrevious?: boolean
}

/**
 * Reads what a key names, which begins with the environment and the family: `sandbox/endpoints/…`. Shows what was read
 * before at once, and reads it again. With the key null it reads nothing.
 */
export const useQuery = <A>(
  key: string | null,
  load: (signal: AbortSignal) => Promise<A>,
  { keepPrevious = false, pollMillis }: QueryOptions = {}
): {
  readonly data: A | undefined
  readonly error: ApiError | undefined
  readonly loading: boolean
  readonly reload: () => void
} => {
  const { isUnderWay, run, shown, stop } = useLoads<A>(key, keepPrevious)
  const latest = useRef(load)
  latest.current = load
  const reload = useCallback(() => run((signal) => latest.current(signal)), [run])
  useEffect(() => {
    reload()
    return stop
  }, [reload, stop])
  useInvalidation(key, reload)
  usePolling(key === null ? undefined : pollMillis, reload, isUnderWay)
  return { data: shown.data, error: shown.error, loading: shown.loading, reload }
}

interface PageOf<A> {
  readonly data: ReadonlyArray<A>
  readonly has_more: boolean
}

/** At most so many pages are read again by a reload: a list that was opened far is read again from its start. */
const maxReloadedPages = 5

/**
 * Reads a list page by page. `more` adds the next page; a reload and polling read the pages again that are shown.
 */
export const usePages = <A>(
  key: string | null,
  load: (after: string | undefined, signal: AbortSignal) => Promise<PageOf<A>>,
  idOf: (item: A) => string,
  { pollMillis }: Pick<QueryOptions, "pollMillis"> = {}
): {
  readonly items: ReadonlyArray<A>
  readonly hasMore: boolean
  readonly loading: boolean
  readonly error: ApiError | undefined
  readonly more: () => void
  readonly reload: () => void
} => {
  const { isUnderWay, run, shown, stop } = useLoads<ReadonlyArray<PageOf<A>>>(key, false)
  const latest = useRef({ load, idOf, pages: shown.data ?? [] })
  latest.current = { load, idOf, pages: shown.data ?? [] }
  const readPages = useCallback(async (count: number, begun: ReadonlyArray<PageOf<A>>, signal: AbortSignal) => {
    const pages = [...begun]
    while (pages.length < count && (pages.length === 0 || pages.at(-1)?.has_more === true)) {
      const last = pages.at(-1)?.data.at(-1)
      pages.push(await latest.current.load(last === undefined ? undefined : latest.current.idOf(last), signal))
    }
    return pages
  }, [])
  const reload = useCallback(() => {
    const count = Math.min(maxReloadedPages, Math.max(1, latest.current.pages.length))
    run((signal) => readPages(count, [], signal))
  }, [run, readPages])
  const more = useCallback(() => {
    const { pages } = latest.current
    run((signal) => readPages(pages.length + 1, pages, signal))
  }, [run, readPages])
  useEffect(() => {
    reload()
    return stop
  }, [reload, stop])
  useInvalidation(key, reload)
  usePolling(key === null ? undefined : pollMillis, reload, isUnderWay)
  const pages = shown.data ?? []
  return {
    items: pages.flatMap(({ data }) => data),
    hasMore: pages.at(-1)?.has_more === true,
    loading: shown.loading,
    error: shown.error,
    more,
    reload
  }
}

/** Refusals that come before the service looks the key up: they say nothing of an earlier try. */
const precedesKey = ({ code, status }: ApiError): boolean =>
  [401, 403, 408, 413, 429].includes(status) || code === "validation_failed"

/**
 * Whether a failure says that nothing more will come of its key, so that the next try is another change. Without an answer,
 * or with a server's failure, it is the same one; and so it is while the first try is still running.
 *
 * @param isOpen whether an earlier try under the key may have done the change
 */
const endsChange = (error: ApiError, isOpen: boolean): boolean =>
  error.status >= 400 &&
  error.status < 500 &&
  error.code !== "idempotency_request_in_progress" &&
  !(isOpen && precedesKey(error))

/** The keys of changes that may have been done, by what they change. */
const openChanges = new Map<string, string>()

/**
 * A change that a form or a button makes. One idempotency key serves until the change is done or its input is refused,
 * so that neither a second click nor a try after a lost answer does it twice.
 *
 * @param of what is changed, for a change that must not be done twice: the key then outlives the form, so that who closes a
 * dialog and opens it again, or comes back to the page, goes on with the same change as long as it may have been done
 */
export const useSubmit = <A>(
  action: (idempotencyKey: string) => Promise<A>,
  onDone?: (answer: A) => void,
  of?: string
): {
  readonly submit: () => void
  readonly busy: boolean
  readonly error: ApiError | undefined
  readonly reset: () => void
} => {
  const [state, setState] = useState<{ readonly busy: boolean; readonly error: ApiError | undefined }>({
    busy: false,
    error: undefined
  })
  const latest = useRef({ action, onDone })
  latest.current = { action, onDone }
  const key = useRef(of === undefined ? undefined : openChanges.get(of))
  // Whether a try under the key had an outcome that is not known
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
    // From now on: the form may be gone when the answer comes
    if (of !== undefined) openChanges.set(of, key.current)
    setState({ busy: true, error: undefined })
    latest.current
      .action(key.current)
      .then(
        (answer) => {
          key.current = undefined
          open.current = false
          if (of !== undefined) openChanges.delete(of)
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
    // A dialog that is opened again asks for the same change, as long as it may have been done
    if (!busy.current && !open.current) key.current = undefined
    setState({ busy: busy.current, error: undefined })
  }, [])
  return { submit, ...state, reset }
}
