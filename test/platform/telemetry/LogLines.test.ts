import { mkdtemp, open, readFile, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { SqlError } from "@effect/sql"
import { Cause, ConfigProvider, Effect, Exit, FastCheck, Layer, Logger, LogLevel, Tracer } from "effect"
import { vi } from "vitest"
import { ServiceUnavailable } from "../../../src/platform/errors/Errors.ts"
import { jsonLine, lineLogger, prettyLine } from "../../../src/platform/telemetry/LogForms.ts"
import { loggingLayer, makeLogWriter } from "../../../src/platform/telemetry/Logging.ts"
import { type LogLine, LogLines } from "../../../src/platform/telemetry/LogLines.ts"
import { eventuallyIs } from "../../harness/Eventually.ts"
import { describe, expect, it } from "../../harness/Tests.ts"

const line: LogLine = {
  level: "INFO",
  message: "GET /a 200",
  time: Date.UTC(2026, 0, 2, 3, 4, 5, 678),
  span: { traceId: "a".repeat(32), spanId: "b".repeat(16), sampled: true },
  attributes: { "request.id": "req_1", "http.route": "/a", duration_ms: 1.5, "error.type": undefined }
}

const linesOf = (effect: Effect.Effect<unknown>) =>
  Effect.gen(function* () {
    const lines: Array<LogLine> = []
    yield* effect.pipe(
      Effect.provide(
        Layer.merge(
          Logger.replace(
            Logger.defaultLogger,
            lineLogger((line) => lines.push(line))
          ),
          Logger.minimumLogLevel(LogLevel.All)
        )
      )
    )
    return lines
  })

const temporaryFile = Effect.acquireRelease(
  Effect.promise(async () => {
    const directory = await mkdtemp(join(tmpdir(), "connected-payments-log-"))
    return { directory, file: join(directory, "log"), handle: await open(join(directory, "log"), "w") }
  }),
  ({ directory, handle }) =>
    Effect.promise(async () => {
      await handle.close()
      await rm(directory, { recursive: true, force: true })
    })
)

describe("a log line", () => {
  it("is one JSON object with time, level, message, the ids of its trace and its attributes", () => {
    expect(JSON.parse(jsonLine(line))).toEqual({
      time: "2026-01-02T03:04:05.678Z",
      level: "INFO",
      message: "GET /a 200",
      trace_id: "a".repeat(32),
      span_id: "b".repeat(16),
      "request.id": "req_1",
      "http.route": "/a",
      duration_ms: 1.5
    })
  })

  it("without a span or attributes is whole too", () => {
    expect(JSON.parse(jsonLine({ ...line, span: null, attributes: { absent: undefined } }))).toEqual({
      time: "2026-01-02T03:04:05.678Z",
      level: "INFO",
      message: "GET /a 200"
    })
  })

  it("is one line, whatever its message and attributes hold", () => {
    FastCheck.assert(
      FastCheck.property(FastCheck.string(), FastCheck.string(), (message, value) => {
        const written = jsonLine({ ...line, message, attributes: { value } })
        expect(written).not.toMatch(/[\r\n]/)
        expect(JSON.parse(written)).toMatchObject({ message, value })
      })
    )
  })

  it("is plain text for a person", () => {
    expect(prettyLine(false)(line)).toBe("03:04:05.678 INFO  GET /a 200 request.id=req_1 duration_ms=1.5")
    expect(prettyLine(true)(line)).toContain("\u001b[32mINFO \u001b[0m")
  })

  it.effect("is made of each message, with its request, its cause and what was handed over with it", function* () {
    const circular: Record<string, unknown> = { name: "circle" }
    circular["self"] = circular
    const [plain, failed, odd] = yield* linesOf(
      Effect.logInfo("hello").pipe(
        Effect.zipRight(Effect.logError("it failed", Cause.fail(new Error("the reason")))),
        Effect.zipRight(Effect.logWarning("odd", circular)),
        Effect.annotateLogs({ requestId: "req_1", endpointId: "e1" }),
        Effect.withParentSpan(Tracer.externalSpan({ traceId: "c".repeat(32), spanId: "d".repeat(16), sampled: true }))
      )
    )
    expect(plain).toMatchObject({
      level: "INFO",
      message: "hello",
      span: { traceId: "c".repeat(32) },
      attributes: { "request.id": "req_1", endpointId: "e1" }
    })
    expect(failed).toMatchObject({ level: "ERROR", attributes: { cause: expect.stringContaining("the reason") } })
    expect(odd).toMatchObject({ level: "WARN", attributes: { detail: { name: "circle" } } })
  })

  it.effect("of an error has the whole chain of its causes", function* () {
    const refused = Object.assign(new Error("connect ECONNREFUSED"), { code: "ECONNREFUSED" })
    const cause = new AggregateError([refused], "no host")
    const error = new ServiceUnavailable({ cause: new SqlError.SqlError({ cause, message: "not executed" }) })
    const [logged] = yield* linesOf(Effect.logWarning("failed", error))
    expect(logged?.attributes["detail"]).toMatchObject({
      cause: {
        message: "not executed",
        cause: { message: "no host", errors: [{ message: "connect ECONNREFUSED", code: "ECONNREFUSED" }] }
      }
    })
  })
})

describe("the log's settings", () => {
  const linesWith = (settings: ReadonlyArray<readonly [string, string]>) =>
    LogLines.pipe(
      Effect.provide(loggingLayer),
      Effect.withConfigProvider(ConfigProvider.fromMap(new Map(settings))),
      Effect.exit
    )

  it.live("decide which lines are made at all", function* () {
    const usual = yield* Effect.flatten(linesWith([]))
    expect([usual?.requests, usual?.writes("INFO"), usual?.writes("DEBUG")]).toEqual([true, true, false])
    const quiet = yield* Effect.flatten(
      linesWith([
        ["LOG_LEVEL", "ERROR"],
        ["LOG_REQUESTS", "false"]
      ])
    )
    expect([quiet?.requests, quiet?.writes("WARN"), quiet?.writes("ERROR")]).toEqual([false, false, true])
    expect((yield* Effect.flatten(linesWith([["LOG_LEVEL", "off"]])))?.writes("FATAL")).toBe(false)
  })

  for (const [name, value] of [
    ["LOG_LEVEL", "loud"],
    ["LOG_REQUESTS", "sometimes"]
  ] as const) {
    it.live(`refuse ${name}=${value} by its name`, function* () {
      const exit = yield* linesWith([[name, value]])
      expect(Exit.isFailure(exit) && Cause.pretty(exit.cause)).toContain(name)
    })
  }
})

describe("the log's writer", () => {
  it.scopedLive("writes all lines in their order, what it holds at its end included", function* () {
    const { file, handle } = yield* temporaryFile
    yield* Effect.gen(function* () {
      const writer = yield* makeLogWriter(handle.fd, () => "dropped")
      for (let n = 0; n < 1000; n++) writer.write(`${n}`)
      yield* eventuallyIs(
        "the first lines",
        Effect.promise(() => readFile(file, "utf8")),
        (text) => text.endsWith("999\n")
      )
      for (let n = 1000; n < 2000; n++) writer.write(`${n}`)
    }).pipe(Effect.scoped)
    const written = yield* Effect.promise(() => readFile(file, "utf8"))
    expect(written.trimEnd().split("\n")).toEqual(Array.from({ length: 2000 }, (_, n) => `${n}`))
  })

  it.scopedLive("gathers what comes within 50 milliseconds into one write", function* () {
    const { handle } = yield* temporaryFile
    const writer = yield* makeLogWriter(handle.fd, () => "dropped")
    vi.useFakeTimers({ toFake: ["setTimeout"] })
    // Before the writer's end, which waits by real time
    yield* Effect.addFinalizer(() => Effect.sync(() => vi.useRealTimers()))
    writer.write("a line")
    vi.advanceTimersByTime(45)
    writer.write("another")
    expect(vi.getTimerCount()).toBe(1)
    vi.advanceTimersByTime(5)
    expect(vi.getTimerCount()).toBe(0)
  })

  it.scopedLive("holds no more than 8 MiB for a slow reader: it drops lines and says how many", function* () {
    const { file, handle } = yield* temporaryFile
    yield* Effect.gen(function* () {
      const writer = yield* makeLogWriter(handle.fd, (dropped) => `dropped ${dropped}`)
      const long = "x".repeat(1024 * 1024)
      for (let n = 0; n < 12; n++) writer.write(long)
    }).pipe(Effect.scoped)
    const lines = (yield* Effect.promise(() => readFile(file, "utf8"))).trimEnd().split("\n")
    expect(lines.filter((line) => line.startsWith("x")).length).toBe(8)
    expect(lines.at(-1)).toBe("dropped 4")
  })

  it.scopedLive("goes on where its file is gone", function* () {
    const { handle } = yield* temporaryFile
    const writer = yield* makeLogWriter(handle.fd + 500, () => "dropped")
    writer.write("a line")
    yield* Effect.sleep("100 millis")
    writer.write("another")
  })
})
