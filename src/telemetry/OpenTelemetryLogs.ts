import { ROOT_CONTEXT, TraceFlags, trace } from "@opentelemetry/api"
import type { Resource } from "@opentelemetry/resources"
import { BatchLogRecordProcessor, LoggerProvider } from "@opentelemetry/sdk-logs"
import { Effect, Layer, Logger } from "effect"
import { type Export, exporterMillis, type Protocol } from "../settings/ExportSettings.ts"
import { version } from "../settings/Version.ts"
import { lineLogger } from "./LogForms.ts"
import { type LineLevel, type LogLine, LogLines } from "./LogLines.ts"

/** The log over OTLP: the same lines as written, each with its span. */

/** The severities of OpenTelemetry's log model. */
const severities = { TRACE: 1, DEBUG: 5, INFO: 9, WARN: 13, ERROR: 17, FATAL: 21 } as const satisfies Record<
  LineLevel,
  number
>

/** Attributes as the protocol allows them; other values become JSON. */
const attributesOf = ({ attributes }: LogLine): Record<string, string | number | boolean> =>
  Object.fromEntries(
    Object.entries(attributes).flatMap(([name, value]) => {
      if (value === undefined) return []
      const plain = typeof value === "string" || typeof value === "number" || typeof value === "boolean"
      return [[name, plain ? value : JSON.stringify(value)]]
    })
  )

const logExporter = (protocol: Protocol) =>
  Effect.promise(() =>
    protocol === "http/json"
      ? import("@opentelemetry/exporter-logs-otlp-http")
      : import("@opentelemetry/exporter-logs-otlp-proto")
  ).pipe(Effect.map(({ OTLPLogExporter }) => new OTLPLogExporter()))

/**
 * Whether a line is exported. Successes of unsampled traces are omitted, as their spans are: a line for each attempt
 * would cost more than the rest of its delivery. Warnings and errors are always exported.
 */
const isExported = ({ level, span }: LogLine): boolean =>
  severities[level] >= severities.WARN || span === null || (span !== "not sampled" && span.sampled)

/** Exports messages and lines, in addition to writing them. */
export const exportLogs = (resource: Resource, protocol: Protocol): Effect.Effect<Export> =>
  Effect.gen(function* () {
    const written = yield* LogLines
    const scheduledDelayMillis = yield* exporterMillis("OTEL_BLRP_SCHEDULE_DELAY", 1000)
    const exporter = yield* logExporter(protocol)
    const provider = new LoggerProvider({
      resource,
      processors: [new BatchLogRecordProcessor({ exporter, scheduledDelayMillis })]
    })
    const logger = provider.getLogger("connected-payments", version)
    const emit = (line: LogLine) => {
      if (!isExported(line)) return
      logger.emit({
        timestamp: line.time,
        severityNumber: severities[line.level],
        severityText: line.level,
        body: line.message,
        attributes: attributesOf(line),
        ...(line.span === null || line.span === "not sampled"
          ? {}
          : {
              context: trace.setSpanContext(ROOT_CONTEXT, {
                traceId: line.span.traceId,
                spanId: line.span.spanId,
                traceFlags: line.span.sampled ? TraceFlags.SAMPLED : TraceFlags.NONE
              })
            })
      })
    }
    const lines = Layer.succeed(LogLines, {
      writes: written?.writes ?? (() => true),
      requests: written?.requests ?? true,
      write: (line) => {
        written?.write(line)
        emit(line)
      }
    })
    return {
      layer: Layer.merge(Logger.add(lineLogger(emit)), lines),
      close: () => provider.forceFlush().then(() => provider.shutdown())
    }
  })
