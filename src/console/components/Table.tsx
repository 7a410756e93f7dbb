import type { ComponentChildren } from "preact"
import { Link } from "wouter-preact"

export interface Identified {
  readonly id: string
}

export interface Column<A> {
  readonly head: string
  /** Aligns numbers and buttons at the right. */
  readonly align?: "end"
  /** Shows the heading to screen readers only. */
  readonly hidden?: boolean
  /** The value of an item; null leaves it out of the cards of small screens. */
  readonly cell: (item: A) => ComponentChildren
}

/** The column of each row's buttons. */
export const actions = { head: "Actions", hidden: true, align: "end" } as const

export interface TableProps<A> {
  /** Describes the table, for screen readers. */
  readonly caption: string
  /** `false` stands for a column that this reader does not see. */
  readonly columns: ReadonlyArray<Column<A> | false>
  readonly items: ReadonlyArray<A>
  /** The page of an item: its first cell becomes a link, and a click anywhere in the row follows it. */
  readonly href?: (item: A) => string
}

/** A table; on small screens a list of cards, where each value is labelled with its column. */
export const Table = <A extends Identified>({ caption, columns, href, items }: TableProps<A>) => {
  const shown = columns.filter((column) => column !== false)
  return (
    <div class="table-frame">
      {/* biome-ignore lint/a11y/noRedundantRoles: the cards of small screens lose the table's roles with its display */}
      <table class="table" role="table">
        <caption class="for-readers">{caption}</caption>
        {/* biome-ignore lint/a11y/noRedundantRoles: as above */}
        <thead role="rowgroup">
          {/* biome-ignore lint/a11y/noRedundantRoles: as above */}
          <tr role="row">
            {shown.map(({ align, head, hidden }) => (
              // biome-ignore lint/a11y/noRedundantRoles: as above
              <th key={head} scope="col" role="columnheader" class={align && "cell-end"}>
                {hidden === true ? <span class="for-readers">{head}</span> : head}
              </th>
            ))}
          </tr>
        </thead>
        {/* biome-ignore lint/a11y/noRedundantRoles: as above */}
        <tbody role="rowgroup">
          {items.map((item) => (
            // biome-ignore lint/a11y/noRedundantRoles: as above
            <tr key={item.id} role="row" class={href && "row-link"}>
              {shown.map(({ align, cell, head }, at) => {
                const value = cell(item)
                return (
                  // biome-ignore lint/a11y/noRedundantRoles: as above
                  <td key={head} role="cell" class={value === null ? "cell-empty" : align && "cell-end"}>
                    <span class="cell-label" aria-hidden="true">
                      {head}
                    </span>
                    <span class="cell-value">
                      {at === 0 && href !== undefined ? (
                        <Link href={href(item)} className="row-target">
                          {value}
                        </Link>
                      ) : (
                        value
                      )}
                    </span>
                  </td>
                )
              })}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}
