import type { ComponentChildren } from "preact"
import { Link } from "wouter-preact"

export interface Row {
  readonly key: string
  /** The page of the row: its first cell becomes a link, and a click anywhere in the row follows it. */
  readonly href?: string | undefined
  readonly cells: ReadonlyArray<ComponentChildren>
}

/** A column's heading; `end` aligns numbers at the right. */
export type Heading = string | { readonly label: string; readonly align?: "end"; readonly hidden?: boolean }

const labelOf = (heading: Heading | undefined): string =>
  typeof heading === "string" ? heading : (heading?.label ?? "")

const classOf = (heading: Heading | undefined): string | undefined =>
  typeof heading === "object" && heading.align === "end" ? "cell-end" : undefined

/** A table; on small screens a list of cards, where each value is labelled with its column. */
export const Table = (props: {
  /** Describes the table, for screen readers. */
  readonly caption: string
  readonly head: ReadonlyArray<Heading>
  readonly rows: ReadonlyArray<Row>
}) => (
  <div class="table-frame">
    {/* biome-ignore lint/a11y/noRedundantRoles: the cards of small screens lose the table's roles with its display */}
    <table class="table" role="table">
      <caption class="for-readers">{props.caption}</caption>
      {/* biome-ignore lint/a11y/noRedundantRoles: as above */}
      <thead role="rowgroup">
        {/* biome-ignore lint/a11y/noRedundantRoles: as above */}
        <tr role="row">
          {props.head.map((heading) => (
            // biome-ignore lint/a11y/noRedundantRoles: as above
            <th key={labelOf(heading)} scope="col" role="columnheader" class={classOf(heading)}>
              {typeof heading === "object" && heading.hidden === true ? (
                <span class="for-readers">{heading.label}</span>
              ) : (
                labelOf(heading)
              )}
            </th>
          ))}
        </tr>
      </thead>
      {/* biome-ignore lint/a11y/noRedundantRoles: as above */}
      <tbody role="rowgroup">
        {props.rows.map(({ cells, href, key }) => (
          // biome-ignore lint/a11y/noRedundantRoles: as above
          <tr key={key} role="row" class={href === undefined ? undefined : "row-link"}>
            {cells.map((cell, at) => (
              // biome-ignore lint/a11y/noRedundantRoles: as above
              <td key={at} role="cell" class={cell === null ? "cell-empty" : classOf(props.head[at])}>
                <span class="cell-label" aria-hidden="true">
                  {labelOf(props.head[at])}
                </span>
                <span class="cell-value">
                  {at === 0 && href !== undefined ? (
                    <Link href={href} className="row-target">
                      {cell}
                    </Link>
                  ) : (
                    cell
                  )}
                </span>
              </td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  </div>
)
