import { stripVTControlCharacters } from "node:util"
import { Options } from "@effect/cli"
import { Console, Effect } from "effect"

/** What commands print: only the result on standard output, everything else on standard error. */

/** `--json`, which every command takes. */
export const jsonOption = Options.boolean("json").pipe(Options.withDescription("Print JSON for machines."))

/** The result of a command, for machines and for people. */
export interface Shown {
  readonly json: unknown
  readonly text: string
}

/** Prints a result in the requested form. */
export const show = (asJson: boolean, { json, text }: Shown): Effect.Effect<void> =>
  Console.log(asJson ? JSON.stringify(json, undefined, 2) : text)

/** Makes control characters visible: stored texts come from others, and must not control the terminal. */
export const printable = (text: string): string => text.replaceAll(/\p{Cc}/gu, "\u{FFFD}")

/** Rows in columns that are as wide as necessary. */
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

/** Rows in columns with a header; without rows, a sentence that says so. */
export const table = (
  head: ReadonlyArray<string>,
  rows: ReadonlyArray<ReadonlyArray<string>>,
  whenEmpty: string
): string => (rows.length === 0 ? whenEmpty : columns([head, ...rows]))

/** One object, a line per field. */
export const fields = (lines: ReadonlyArray<readonly [label: string, value: string]>): string => columns(lines)

/** A time as people read it; `-` if there is none. */
export const time = (at: Date | null): string => (at === null ? "-" : at.toISOString())

/** The console without colours if it is a pipe or a file, or if `NO_COLOR` is set. */
export const withPlainConsole = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.consoleWith((console) => {
    const plain = (isTerminal: boolean, args: ReadonlyArray<unknown>) =>
      isTerminal && (process.env["NO_COLOR"] ?? "") === ""
        ? args
        : args.map((arg) => (typeof arg === "string" ? stripVTControlCharacters(arg) : arg))
    return Effect.withConsole(effect, {
      ...console,
      log: (...args) => console.log(...plain(process.stdout.isTTY, args)),
      error: (...args) => console.error(...plain(process.stderr.isTTY, args))
    })
  })
