import { Context } from "effect"

/**
 * Log lines without Effect's logger, for code that logs each request or attempt: annotations and a logger's own steps
 * would cost more than the rest of a request. Before writing a line, check that its level is enabled.
 */

export type LineLevel = "TRACE" | "DEBUG" | "INFO" | "WARN" | "ERROR" | "FATAL"

/** A line of the log. Must not contain a payload, query, payer's URL or secret. */
export interface LogLine {
  readonly level: LineLevel
  readonly message: string
  /** In Unix milliseconds. */
  readonly time: number
  /** The line's span; null if nothing is traced. */
  readonly span: { readonly traceId: string; readonly spanId: string; readonly sampled: boolean } | "not sampled" | null
  /** With the same names as on spans; undefined ones are omitted. */
  readonly attributes: Readonly<Record<string, unknown>>
}

export interface LogLinesWriter {
  /** Whether lines of this level are written; if not, don't create one. */
  readonly writes: (level: LineLevel) => boolean
  /** Whether there is a line for each request (setting `LOG_REQUESTS`). */
  readonly requests: boolean
  /** Returns at once and does not throw. */
  readonly write: (line: LogLine) => void
}

/** The log of the process; null if it has none, as in an embedding team's process. */
export class LogLines extends Context.Reference<LogLines>()("connected-payments/telemetry/LogLines", {
  defaultValue: (): LogLinesWriter | null => null
}) {}
