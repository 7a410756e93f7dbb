import type { ComponentChildren } from "preact"
import type { PagedList, Query } from "../state/Query.ts"
import { Button } from "./Button.tsx"
import { ErrorNote } from "./Notice.tsx"
import { type Identified, Table, type TableProps } from "./Table.tsx"

/** Shows a placeholder while data loads, and an error if it fails. */

export const Skeleton = ({ lines = 4 }: { readonly lines?: number | undefined }) => (
  <div class="skeleton" role="status">
    <span class="for-readers">Loading…</span>
    {Array.from({ length: lines }, (_, line) => (
      <span key={line} class="skeleton-line" aria-hidden="true" />
    ))}
  </div>
)

/** Shows a query's data once loaded, and an error with a retry button, above any older data. */
export const Loaded = <A,>(props: {
  readonly query: Pick<Query<A>, "data" | "error" | "reload">
  readonly lines?: number
  readonly children: (data: A) => ComponentChildren
}) => {
  const { data, error, reload } = props.query
  return (
    <>
      {error === undefined ? null : <ErrorNote error={error} retry={reload} />}
      {data !== undefined ? props.children(data) : error === undefined ? <Skeleton lines={props.lines} /> : null}
    </>
  )
}

/** Shows a list's items once loaded, `empty` if there are none, and a button for the next page. */
export const Pages = <A,>(props: {
  readonly list: PagedList<A>
  readonly empty: ComponentChildren
  readonly children: (items: ReadonlyArray<A>) => ComponentChildren
}) => {
  const { error, hasMore, items, loading, more, reload } = props.list
  return (
    <>
      {error === undefined ? null : <ErrorNote error={error} retry={reload} />}
      {items.length > 0 ? (
        props.children(items)
      ) : error !== undefined ? null : loading ? (
        <Skeleton lines={6} />
      ) : (
        props.empty
      )}
      {hasMore ? (
        <div class="more">
          <Button onClick={more} busy={loading}>
            Load more
          </Button>
        </div>
      ) : null}
    </>
  )
}

export const PagedTable = <A extends Identified>({
  empty,
  list,
  ...table
}: { readonly list: PagedList<A>; readonly empty: ComponentChildren } & Omit<TableProps<A>, "items">) => (
  <Pages list={list} empty={empty}>
    {(items) => <Table {...table} items={items} />}
  </Pages>
)

export const Empty = (props: {
  readonly title: string
  readonly action?: ComponentChildren
  readonly children?: ComponentChildren
}) => (
  <div class="empty">
    <p class="empty-title">{props.title}</p>
    {props.children === undefined ? null : <div class="empty-text">{props.children}</div>}
    {props.action === undefined || props.action === null ? null : <div class="empty-action">{props.action}</div>}
  </div>
)
