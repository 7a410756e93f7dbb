import { createServer } from "node:http"
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-http"
import { BasicTracerProvider, SimpleSpanProcessor } from "@opentelemetry/sdk-trace-base"
import { Effect, Layer } from "effect"
import { LogLines } from "../../../src/platform/telemetry/LogLines.ts"
import { openTelemetryLayer } from "../../../src/platform/telemetry/OpenTelemetry.ts"
import { listening } from "../../harness/Listening.ts"
import { expect, it } from "../../harness/Tests.ts"

/** A collector that answers everything with this body; its address. */
const answering = (body: string) => {
  const server = createServer((request, response) => {
    request.on("end", () => response.writeHead(200, { "content-type": "application/json" }).end(body)).resume()
  })
  return Effect.map(listening(server), (port) => `http://127.0.0.1:${port}/v1/traces`)
}

it.scopedLive("a collector that refuses a part is named in the log, without what it says", function* () {
  const lines: Array<string> = []
  const log = {
    writes: () => true,
    requests: false,
    write: ({ message }: { message: string }) => lines.push(message)
  }
  const signals = { traces: null, metrics: null, logs: null }
  yield* Layer.build(Layer.provide(openTelemetryLayer(signals), Layer.succeed(LogLines, log)))
  for (const [body, expected] of [
    ["{}", []],
    [
      '{"partialSuccess":{"rejectedSpans":"1","errorMessage":"x-secret: 1"}}',
      ["The collector has refused a part of the telemetry: see its log"]
    ]
  ] as const) {
    const provider = new BasicTracerProvider({
      spanProcessors: [new SimpleSpanProcessor(new OTLPTraceExporter({ url: yield* answering(body) }))]
    })
    provider.getTracer("test").startSpan("any").end()
    yield* Effect.promise(() => provider.forceFlush().then(() => provider.shutdown()))
    expect(lines).toEqual(expected)
  }
})
