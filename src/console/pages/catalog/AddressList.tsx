import type { ComponentChildren } from "preact"
import { Badge } from "../../components/Badge.tsx"
import { Copy } from "../../components/Copy.tsx"
import { Empty, Pages } from "../../components/Loaded.tsx"
import { Table } from "../../components/Table.tsx"
import { invalidate, usePages } from "../../state/Query.ts"
import { useWorkspace } from "../../state/Session.ts"
import { ActiveButton } from "./ActiveButton.tsx"
import { ActiveFilter, useActiveFilter } from "./ActiveFilter.tsx"

/** The query of one page of the list. */
interface PageQuery {
  readonly limit: number
  readonly active?: boolean
  readonly starting_after?: string
}

interface Column<A> {
  readonly head: string
  readonly cell: (item: A) => ComponentChildren
}

export interface AddressListProps<A> {
  /** The list's part of the query key, below the catalog. */
  readonly kind: "checkout-pages" | "payment-links"
  readonly caption: string
  /** The word for one item in a sentence. */
  readonly noun: string
  readonly load: (
    query: PageQuery,
    signal: AbortSignal
  ) => Promise<{
    readonly data: ReadonlyArray<A>
    readonly has_more: boolean
  }>
  /** Shown while the list has no items at all. */
  readonly empty: ComponentChildren
  /** Two columns before the status, one after it. */
  readonly columns: readonly [first: Column<A>, second: Column<A>, last: Column<A>]
  readonly isOpen: (item: A) => boolean
  readonly urlOf: (item: A) => string | undefined
  /** The item's name, for screen readers. */
  readonly nameOf: (item: A) => string
  readonly open: (item: A, active: boolean) => Promise<unknown>
  /** Further buttons. */
  readonly actions?: (item: A) => ComponentChildren
}

/** Lists public payment URLs, with buttons to copy, open and close each. */
export const AddressList = <A extends { readonly id: string }>(props: AddressListProps<A>) => {
  const { can, environment } = useWorkspace()
  const { query, shown } = useActiveFilter()
  const mayWrite = can("payments:write")
  const key = `${environment}/catalog/${props.kind}`
  const list = usePages<A>(
    `${key}?${shown}`,
    (after, signal) =>
      props.load({ limit: 25, ...query, ...(after === undefined ? {} : { starting_after: after }) }, signal),
    ({ id }) => id
  )
  const [first, second, last] = props.columns
  const address = (item: A) => {
    const url = props.urlOf(item)
    return url === undefined ? "–" : <Copy key="url" text={url} label="Copy link" />
  }
  const actions = (item: A) => (
    <span key="actions" class="row-actions">
      <ActiveButton
        isActive={props.isOpen(item)}
        words={["Close", "Open"]}
        of={props.nameOf(item)}
        set={(active) => props.open(item, active)}
        onDone={() => invalidate(key)}
      />
      {props.actions?.(item)}
    </span>
  )
  return (
    <>
      <ActiveFilter active="Open" inactive="Closed" />
      <Pages
        list={list}
        empty={
          shown === "" ? (
            props.empty
          ) : (
            <Empty title={`No ${props.noun} is ${shown === "active" ? "open" : "closed"}`}>
              Clear the filter to see all {props.noun}s.
            </Empty>
          )
        }
      >
        {(items) => (
          <Table
            caption={props.caption}
            head={[
              first.head,
              second.head,
              "Status",
              last.head,
              { label: "Address", hidden: true },
              ...(mayWrite ? [{ label: "Actions", hidden: true }] : [])
            ]}
            rows={items.map((item) => ({
              key: item.id,
              cells: [
                first.cell(item),
                second.cell(item),
                props.isOpen(item) ? (
                  <Badge key="status" tone="ok">
                    Open
                  </Badge>
                ) : (
                  <Badge key="status">Closed</Badge>
                ),
                last.cell(item),
                address(item),
                ...(mayWrite ? [actions(item)] : [])
              ]
            }))}
          />
        )}
      </Pages>
    </>
  )
}
