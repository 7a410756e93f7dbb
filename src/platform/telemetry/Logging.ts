import { Config, Effect, Layer, Logger, LogLevel } from "effect"
import { logLevel, logRequests, type SettingsError } from "../settings/Settings.ts"
import { jsonLine, lineLogger, prettyLine } from "./LogForms.ts"
import { type LineLevel, type LogLine, LogLines } from "./LogLines.ts"
import { makeLogWriter } from "./LogWriter.ts"

/**
 * The log of the process. In production, JSON lines on standard output; in local mode, plain lines on standard error,
 * since standard output is for the results of commands.
 */

/** `MODE`, read separately: an invalid one is reported when all settings are read. */
const isProduction = Config.string("MODE").pipe(
  Config.map((mode) => mode === "production"),
  Effect.orElseSucceed(() => false)
)

const effectLevels: Readonly<Record<LineLevel, LogLevel.LogLevel>> = {
  TRACE: LogLevel.Trace,
  DEBUG: LogLevel.Debug,
  INFO: LogLevel.Info,
  WARN: LogLevel.Warning,
  ERROR: LogLevel.Error,
  FATAL: LogLevel.Fatal
}

const droppedLine = (dropped: number): LogLine => ({
  level: "WARN",
  message: "Log lines were dropped: their reader is too slow",
  time: Date.now(),
  span: null,
  attributes: { dropped }
})

/** The logger of all messages and the writer of lines, configured by `LOG_LEVEL`, `LOG_REQUESTS` and `MODE`. */
export const loggingLayer: Layer.Layer<never, SettingsError> = Layer.unwrapScoped(
  Effect.gen(function* () {
    const least = yield* logLevel
    const requests = yield* logRequests
    const production = yield* isProduction
    const form = production ? jsonLine : prettyLine(process.stderr.isTTY === true)
    const writer = yield* makeLogWriter(production ? 1 : 2, (dropped) => form(droppedLine(dropped)))
    const written = new Set(
      Object.entries(effectLevels).flatMap(([level, { ordinal }]) => (ordinal >= least.ordinal ? [level] : []))
    )
    const write = (line: LogLine) => writer.write(form(line))
    return Layer.mergeAll(
      Logger.replace(Logger.defaultLogger, lineLogger(write)),
      // The logger with which a main program replaces the default one
      Logger.remove(Logger.prettyLoggerDefault),
      Logger.minimumLogLevel(least),
      Layer.succeed(LogLines, { writes: (level) => written.has(level), requests, write })
    )
  })
)
