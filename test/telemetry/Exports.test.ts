import { createServer } from "node:http"
import { expect, it } from "@effect/vitest"
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-http"
import { BasicTracerProvider, SimpleSpanProcessor } from "@opentelemetry/sdk-trace-base"
import { Effect, Layer } from "effect"
import { LogLines } from "../../src/telemetry/LogLines.ts"
import { openTelemetryLayer } from "../../src/telemetry/OpenTelemetry.ts"

/** A collector that answers everything with this body; its address. */
const answering = (body: string) =>
  Effect.acquireRelease(
    Effect.async<{ readonly url: string; readonly close: () => void }>((resume) => {
      const server = createServer((request, response) => {
        request.on("end", () => response.writeHead(200, { "content-type": "application/json" }).end(body)).resume()
      })
      server.listen(0, "127.0.0.1", () => {
        const address = server.address()
        const port = typeof address === "object" && address !== null ? address.port : 0
        resume(Effect.succeed({ url: `http://127.0.0.1:${port}/v1/traces`, close: () => void server.close() }))
      })
    }),
    ({ close }) => Effect.sync(close)
  )

it.scopedLive("a collector that refuses a part is named in the log, without what it says", () =>
  Effect.gen(function* () {
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
      const { url } = yield* answering(body)
      const provider = new BasicTracerProvider({
        spanProcessors: [new SimpleSpanProcessor(new OTLPTraceExporter({ url }))]
      })
      provider.getTracer("test").startSpan("any").end()
      yield* Effect.promise(() => provider.forceFlush().then(() => provider.shutdown()))
      expect(lines).toEqual(expected)
    }
  })
)
