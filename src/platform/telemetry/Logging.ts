import { write, writeSync } from "node:fs"
import { Config, Effect, Layer, Logger, LogLevel, Schedule, type Scope } from "effect"
import { logLevel, logRequests, type SettingsError } from "../settings/Settings.ts"
import { jsonLine, lineLogger, prettyLine } from "./LogForms.ts"
import { type LineLevel, type LogLine, LogLines } from "./LogLines.ts"

/**
 * Writes lines to a file descriptor, batched over a few milliseconds. Node's own stream would write each line
 * separately and block the event loop until a pipe's reader has room.
 */
interface LogWriter {
  /** Writes a line, passed without its line break; returns at once. */
  readonly write: (line: string) => void
}

/**
 * How long lines are batched, in milliseconds. A write wakes the process three times, and a thread beside it, so that at 200
 * events a second a shorter time would cost each event half a write.
 */
const gatherFor = 50

/** How long a write waits for a slow reader before the next try, in milliseconds. */
const retryAfter = 10

/** Maximum number of characters waiting for a slow reader; further lines are dropped and counted. */
const maxPending = 8 * 1024 * 1024

const closeWithin = "1 second"

class BufferedWriter implements LogWriter {
  readonly #descriptor: number
  readonly #say: (dropped: number) => string
  #pending = ""
  #dropped = 0
  #busy = false
  #broken = false

  constructor(descriptor: number, say: (dropped: number) => string) {
    this.#descriptor = descriptor
    this.#say = say
  }

  get isIdle(): boolean {
    return !this.#busy
  }

  write(line: string): void {
    if (this.#broken) return
    if (this.#pending.length > maxPending) {
      this.#dropped += 1
      return
    }
    this.#pending += `${line}\n`
    if (!this.#busy) {
      this.#busy = true
      setTimeout(() => this.#flush(), gatherFor).unref()
    }
  }

  /** Writes pending lines synchronously, at the end of the process. */
  writeNow(): void {
    const rest = this.#pending
    this.#pending = ""
    try {
      if (rest !== "") writeSync(this.#descriptor, rest)
    } catch {
      // The reader is gone or does not read, and there is nowhere else to report it
    }
  }

  #flush(): void {
    if (this.#dropped > 0) {
      this.#pending += `${this.#say(this.#dropped)}\n`
      this.#dropped = 0
    }
    const chunk = Buffer.from(this.#pending)
    this.#pending = ""
    this.#send(chunk)
  }

  #send(chunk: Buffer): void {
    write(this.#descriptor, chunk, (error, written) => {
      if (error !== null && error.code !== "EAGAIN") {
        // Nobody reads the log any longer: this must not stop the service
        this.#broken = true
        this.#pending = ""
        this.#busy = false
        return
      }
      const rest = chunk.subarray(error === null ? written : 0)
      if (error !== null) setTimeout(() => this.#send(rest), retryAfter).unref()
      else if (rest.length > 0) this.#send(rest)
      else if (this.#pending !== "") this.#flush()
      else this.#busy = false
    })
  }
}

/**
 * A writer to a file descriptor. Lines still pending when the scope closes or the process ends are written; `say`
 * creates the line that reports how many were dropped.
 */
export const makeLogWriter = (
  descriptor: number,
  say: (dropped: number) => string
): Effect.Effect<LogWriter, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const writer = new BufferedWriter(descriptor, say)
      const atExit = () => writer.writeNow()
      process.once("exit", atExit)
      return { writer, atExit }
    }),
    ({ atExit, writer }) =>
      Effect.sync(() => writer.isIdle).pipe(
        Effect.repeat({ until: (idle: boolean) => idle, schedule: Schedule.spaced("5 millis") }),
        Effect.interruptible,
        Effect.timeoutOption(closeWithin),
        Effect.zipRight(
          Effect.sync(() => {
            process.off("exit", atExit)
            writer.writeNow()
          })
        )
      )
  ).pipe(Effect.map(({ writer }) => writer))

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
