import { Cause, Context, FiberRef, FiberRefs, HashMap, Inspectable, Logger, Option, Tracer } from "effect"
import type { LineLevel, LogLine } from "./LogLines.ts"
import { RequestFacts } from "./Spans.ts"

/**
 * Formats of the log: JSON for programs, plain lines for a developer, and a logger that writes Effect's messages as
 * lines.
 */

let written = { time: Number.NaN, text: "" }

/** A time as text; reuses the previous line's text if the time is the same. */
const timeText = (time: number): string => {
  if (time !== written.time) written = { time, text: new Date(time).toISOString() }
  return written.text
}

/**
 * A line as one JSON object: time, level, message, the ids of its trace, then its attributes by name. Concatenated by
 * hand, except for parts that may need escapes.
 */
export const jsonLine = ({ attributes, level, message, span, time }: LogLine): string => {
  const ids =
    typeof span !== "object" || span === null ? "" : `,"trace_id":"${span.traceId}","span_id":"${span.spanId}"`
  const rest = JSON.stringify(attributes)
  const head = `{"time":"${timeText(time)}","level":"${level}","message":${JSON.stringify(message)}${ids}`
  return rest.length > 2 ? `${head},${rest.slice(1)}` : `${head}}`
}

/** Attributes that developer lines omit. */
const quietAttributes: ReadonlySet<string> = new Set(["http.request.method", "http.route", "http.response.status_code"])

const asText = (value: unknown): string => (typeof value === "string" ? value : JSON.stringify(value))

const colors: Readonly<Record<LineLevel, number>> = { TRACE: 90, DEBUG: 90, INFO: 32, WARN: 33, ERROR: 31, FATAL: 31 }

/** A line for a person: the time of day, level and message, followed by the attributes. */
export const prettyLine =
  (inColor: boolean) =>
  ({ attributes, level, message, time }: LogLine): string => {
    const padded = level.padEnd(5)
    let line = `${timeText(time).slice(11, 23)} ${inColor ? `\u001b[${colors[level]}m${padded}\u001b[0m` : padded} ${message}`
    for (const name in attributes) {
      const value = attributes[name]
      if (value !== undefined && name !== "cause" && !quietAttributes.has(name)) line += ` ${name}=${asText(value)}`
    }
    const { cause } = attributes
    return cause === undefined ? line : `${line}\n${asText(cause)}`
  }

const levels: Readonly<Record<string, LineLevel>> = {
  All: "TRACE",
  Trace: "TRACE",
  Debug: "DEBUG",
  Info: "INFO",
  Warning: "WARN",
  Error: "ERROR",
  Fatal: "FATAL"
}

/** How many causes of an error are logged. */
const maxCauses = 5

/** An error with the parts that JSON would omit: its message and its causes. */
const whole = (value: unknown, causes = maxCauses): unknown =>
  value instanceof Error && causes > 0
    ? {
        ...value,
        message: value.message,
        cause: whole(value.cause, causes - 1),
        ...(value instanceof AggregateError
          ? { errors: value.errors.slice(0, causes).map((one) => whole(one, 1)) }
          : {})
      }
    : value

/** A value as JSON data: errors may be circular. */
const plain = (value: unknown): unknown => {
  const text = Inspectable.stringifyCircular(Array.isArray(value) ? value.map((one) => whole(one)) : whole(value))
  return text === undefined ? undefined : JSON.parse(text)
}

/** A logger that writes each message as a line, with the ids of its request and trace. */
export const lineLogger = (write: (line: LogLine) => void): Logger.Logger<unknown, void> =>
  Logger.make((options) => {
    const context = FiberRefs.getOrDefault(options.context, FiberRef.currentContext)
    const facts = Option.getOrUndefined(Context.getOption(context, RequestFacts))
    const span = Option.getOrElse(Context.getOption(context, Tracer.ParentSpan), () => facts?.span ?? null)
    const [first, ...rest] = Array.isArray(options.message) ? options.message : [options.message]
    const structured = Logger.structuredLogger.log(options)
    const { requestId, ...annotations } = structured.annotations
    write({
      level: levels[options.logLevel._tag] ?? "INFO",
      message: typeof first === "string" ? first : Inspectable.toStringUnknown(first),
      time: options.date.getTime(),
      span,
      attributes: {
        "request.id": requestId,
        "notification.id": facts?.attributes["notification.id"],
        ...(HashMap.isEmpty(options.annotations) ? {} : Object(plain(annotations))),
        detail: rest.length === 0 ? undefined : plain(rest.length === 1 ? rest[0] : rest),
        cause: Cause.isEmpty(options.cause) ? undefined : structured.cause
      }
    })
  })
