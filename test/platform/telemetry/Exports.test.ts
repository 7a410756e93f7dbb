import { writeFileSync } from "node:fs"
import { createServer } from "node:http"
import { join } from "node:path"
import { afterEach, vi } from "@effect/vitest"
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-http"
import { BasicTracerProvider, SimpleSpanProcessor } from "@opentelemetry/sdk-trace-base"
import { Effect, Layer } from "effect"
import { type LogLine, LogLines } from "../../../src/platform/telemetry/LogLines.ts"
import { openTelemetryLayer } from "../../../src/platform/telemetry/OpenTelemetry.ts"
import { telemetryLayer } from "../../../src/platform/telemetry/Telemetry.ts"
import { freePort } from "../../harness/FreePort.ts"
import { listening } from "../../harness/Listening.ts"
import { expect, it } from "../../harness/Tests.ts"
import { temporaryDirectory } from "../storage/fixtures/temporaryDirectory.ts"

/** A collector that answers everything with this body; its address. */
const answering = (body: string) => {
  const server = createServer((request, response) => {
    request.on("end", () => response.writeHead(200, { "content-type": "application/json" }).end(body)).resume()
  })
  return Effect.map(listening(server), (port) => `http://127.0.0.1:${port}/v1/traces`)
}

/** What the log says of an export to a collector: messages with their attributes. */
const loggedOf = Effect.fnUntraced(function* (url: string) {
  const lines: Array<unknown> = []
  const write = ({ attributes, message }: LogLine) => lines.push([message, attributes])
  const signals = { traces: null, metrics: null, logs: null }
  const log = Layer.succeed(LogLines, { writes: () => true, requests: false, write })
  yield* Layer.build(Layer.provide(openTelemetryLayer(signals), log))
  const provider = new BasicTracerProvider({
    spanProcessors: [new SimpleSpanProcessor(new OTLPTraceExporter({ url, timeoutMillis: 500 }))]
  })
  provider.getTracer("test").startSpan("any").end()
  yield* Effect.promise(() =>
    provider
      .forceFlush()
      .catch(() => {})
      .then(() => provider.shutdown())
  )
  return lines
})

afterEach(() => {
  vi.unstubAllEnvs()
})

it.scopedLive(
  "a collector that refuses a part is named in the log with its words, but not the exporter's headers",
  function* () {
    vi.stubEnv("OTEL_EXPORTER_OTLP_HEADERS", "x-secret=a%20secret")
    expect(yield* loggedOf(yield* answering("{}"))).toEqual([])
    const refusal = { partialSuccess: { rejectedSpans: "1", errorMessage: "too old; got: a secret, a%20secret" } }
    expect(yield* loggedOf(yield* answering(JSON.stringify(refusal)))).toEqual([
      [
        "The collector has refused a part of the telemetry",
        { reason: JSON.stringify({ ...refusal.partialSuccess, errorMessage: "too old; got: …, …" }) }
      ]
    ])
  }
)

it.scopedLive("an export that fails is logged with its code and the collector's host", function* () {
  const url = `http://127.0.0.1:${yield* freePort}/v1/traces`
  vi.stubEnv("OTEL_EXPORTER_OTLP_ENDPOINT", url)
  expect(yield* loggedOf(url)).toEqual([
    [
      "Telemetry could not be exported: see the collector, and the OTEL_EXPORTER_OTLP_* variables",
      { code: "ECONNREFUSED", collector: new URL(url).host }
    ]
  ])
})

it.scopedLive("a collector's key is read from a file; a file that can't be read stops the start", function* () {
  const keys: Array<unknown> = []
  const server = createServer((request, response) => {
    keys.push(request.headers["x-key"])
    request.on("end", () => response.end()).resume()
  })
  vi.stubEnv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", `http://127.0.0.1:${yield* listening(server)}/v1/traces`)
  // So that what the start sets ends with the test
  vi.stubEnv("OTEL_EXPORTER_OTLP_TRACES_HEADERS", undefined)
  const file = join(yield* temporaryDirectory, "headers")
  vi.stubEnv("OTEL_EXPORTER_OTLP_TRACES_HEADERS_FILE", file)
  const traced = Effect.provide(Effect.withSpan(Effect.void, "any"), telemetryLayer)
  expect((yield* Effect.flip(traced)).message).toBe(
    "OTEL_EXPORTER_OTLP_TRACES_HEADERS_FILE: the file can't be read (ENOENT)"
  )
  writeFileSync(file, "x-key=a%20key\n")
  yield* traced
  expect(keys).toEqual(["a key"])
})
