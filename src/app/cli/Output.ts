/** Makes control characters visible: stored texts come from others, and must not control the terminal. */
export const printable = (text: string): string => text.replaceAll(/\p{Cc}/gu, "\u{FFFD}")

export const columns = (rows: ReadonlyArray<ReadonlyArray<string>>): string => {
  const cells = rows.map((row) => row.map(printable))
  const widths = (cells[0] ?? []).map((_, column) => Math.max(...cells.map((row) => row[column]?.length ?? 0)))
  return cells
    .map((row) =>
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join("  ")
        .trimEnd()
    )
    .join("\n")
}

export const table = (
  head: ReadonlyArray<string>,
  rows: ReadonlyArray<ReadonlyArray<string>>,
  whenEmpty: string
): string => (rows.length === 0 ? whenEmpty : columns([head, ...rows]))

/** One object, a line per field. */
export const fields = (lines: ReadonlyArray<readonly [label: string, value: string]>): string => columns(lines)

export const time = (at: Date | null): string => (at === null ? "-" : at.toISOString())
