import { readFileSync } from "node:fs"
import { afterEach, describe, expect, it, vi } from "@effect/vitest"
import { Duration, Effect, Tracer } from "effect"
import { makeAttemptReports } from "../../src/deliveries/AttemptReports.ts"
import type { EndedAttempt } from "../../src/deliveries/AttemptSpans.ts"
import { DeliveryId, EndpointId, OrganizationId } from "../../src/kit/Ids.ts"
import { LogLines } from "../../src/kit/LogLines.ts"
import { Metrics, metricTable } from "../../src/kit/Metrics.ts"
import { telemetryLayer } from "../../src/kit/Telemetry.ts"
import { makeCollector } from "../harness/Collector.ts"

/** The SDK reads the process's own variables. */
const withVariables = (variables: Readonly<Record<string, string>>) => {
  for (const [name, value] of Object.entries(variables)) vi.stubEnv(name, value)
}

afterEach(() => {
  vi.unstubAllEnvs()
})

/** What the layer turned on. */
const turnedOn = Effect.gen(function* () {
  const plain = yield* Effect.tracer
  return yield* Effect.gen(function* () {
    return {
      traces: (yield* Effect.tracer) !== plain,
      metrics: (yield* Metrics) !== null,
      logs: (yield* LogLines) !== null
    }
  }).pipe(Effect.provide(telemetryLayer))
})

const anAttempt = (more: { readonly traceparent: string | null; readonly errorCode?: "timeout" }): EndedAttempt => ({
  delivery: {
    id: DeliveryId.make("0190a6f0-0000-7000-8000-000000000001"),
    lease: "0190a6f0-0000-7000-8000-000000000002",
    attempt: 1,
    trigger: "automatic",
    endpointId: EndpointId.make("0190a6f0-0000-7000-8000-000000000003"),
    eventId: "svc_evt_1",
    organizationId: OrganizationId.make("0190a6f0-0000-7000-8000-000000000004"),
    environment: "sandbox",
    secretIds: [],
    createdAt: 0,
    claimedAt: 0,
    payload: "a payload",
    traceparent: more.traceparent
  },
  url: "https://hooks.shop.example:8443/a-secret-path?a-secret-query",
  startedAt: Date.now(),
  outcome: {
    httpStatus: more.errorCode === undefined ? 204 : null,
    errorCode: more.errorCode ?? null,
    durationMs: 12,
    retryAfter: null
  },
  next: more.errorCode === undefined ? { state: "delivered" } : { state: "queued", delay: Duration.seconds(1) }
})

const traceOf = (character: string, sampled: boolean) =>
  `00-${character.repeat(32)}-${character.repeat(16)}-0${sampled ? 1 : 0}`

describe("the README", () => {
  it("lists every metric with its unit and attributes", () => {
    const readme = readFileSync(new URL("../../README.md", import.meta.url), "utf8")
    for (const [name, { attributes, kind, unit }] of Object.entries(metricTable)) {
      const listed = attributes.map((attribute) => `\`${attribute}\``).join(", ")
      expect(readme).toContain(`| \`${name}\` | ${kind}, \`${unit}\` | ${listed} |`)
    }
  })
})

describe("telemetry", () => {
  const endpoint = "http://127.0.0.1:1"
  const cases: ReadonlyArray<readonly [string, Readonly<Record<string, string>>, ReadonlyArray<string>]> = [
    ["no exporter is named", {}, []],
    ["an exporter's name is empty", { OTEL_EXPORTER_OTLP_ENDPOINT: "" }, []],
    ["one exporter is named for all", { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint }, ["traces", "metrics", "logs"]],
    ["one is named for metrics alone", { OTEL_EXPORTER_OTLP_METRICS_ENDPOINT: `${endpoint}/v1/metrics` }, ["metrics"]],
    [
      "some are none",
      { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint, OTEL_LOGS_EXPORTER: "none", OTEL_TRACES_EXPORTER: "None" },
      ["metrics"]
    ],
    ["the SDK is disabled", { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint, OTEL_SDK_DISABLED: "TRUE" }, []]
  ]
  for (const [when, variables, expected] of cases) {
    it.live(`exports ${expected.join(", ") || "nothing"} where ${when}`, () =>
      Effect.gen(function* () {
        withVariables({ ...variables, OTEL_EXPORTER_OTLP_TIMEOUT: "200" })
        const on = yield* turnedOn
        expect(Object.entries(on).flatMap(([signal, isOn]) => (isOn ? [signal] : []))).toEqual(expected)
      })
    )
  }

  it.scopedLive("keeps every failed attempt and the whole story of sampled notifications, whatever the sampler", () =>
    Effect.gen(function* () {
      const collector = yield* makeCollector
      withVariables({
        OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
        OTEL_TRACES_SAMPLER: "always_off",
        OTEL_METRIC_EXPORT_INTERVAL: "not a number"
      })
      yield* Effect.gen(function* () {
        const report = yield* makeAttemptReports
        report(anAttempt({ traceparent: null }))
        report(anAttempt({ traceparent: traceOf("a", false) }))
        report(anAttempt({ traceparent: traceOf("b", true) }))
        report(anAttempt({ traceparent: traceOf("c", false), errorCode: "timeout" }))
        report(anAttempt({ traceparent: null, errorCode: "timeout" }))
        report(anAttempt({ traceparent: "no traceparent at all", errorCode: "timeout" }))
        yield* Effect.void.pipe(Effect.withSpan("something else"))
      }).pipe(Effect.provide(telemetryLayer))
      expect(
        collector.spans().map(({ attributes, links, name }) => [name, attributes["error.type"], links[0]?.traceId[0]])
      ).toEqual([
        ["deliver", undefined, "b"],
        ["deliver", "timeout", "c"],
        ["deliver", "timeout", undefined],
        ["deliver", "timeout", undefined]
      ])
      expect(collector.text()).not.toContain("a payload")
      // The last export comes with the end, the interval that is none being the standard's minute
      const attempts = collector.metric("connected_payments.delivery.attempt.duration")
      expect(attempts.reduce((total, { value }) => total + value, 0)).toBe(6)
      expect(collector.logs().length).toBe(6)
    })
  )

  it.scopedLive("takes its name from the environment where that has one, and tells processes apart", () =>
    Effect.gen(function* () {
      const collector = yield* makeCollector
      withVariables({
        OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `${collector.url}/v1/traces`,
        OTEL_SERVICE_NAME: "another-name",
        OTEL_RESOURCE_ATTRIBUTES: "deployment.environment.name=blue%20green"
      })
      yield* Effect.void.pipe(Effect.withSpan("something"), Effect.provide(telemetryLayer))
      expect(collector.spans()[0]?.resource).toMatchObject({
        "service.name": "another-name",
        "deployment.environment.name": "blue green",
        "service.instance.id": expect.stringMatching(/^[0-9a-f-]{36}$/)
      })
    })
  )

  it.live("that has no collector ends soon and takes nothing with it", () =>
    Effect.gen(function* () {
      withVariables({ OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1:1" })
      const startedAt = Date.now()
      const result = yield* Effect.succeed(1).pipe(Effect.withSpan("something"), Effect.provide(telemetryLayer))
      expect(result).toBe(1)
      expect(Date.now() - startedAt).toBeLessThan(15_000)
    })
  )

  it.effect("that is off reports attempts to nobody", () =>
    Effect.gen(function* () {
      const spans: Array<string> = []
      const tracer = Tracer.make({
        span: (name) => {
          spans.push(name)
          throw new Error("not asked for")
        },
        context: (execution) => execution()
      })
      const report = yield* makeAttemptReports
      report(anAttempt({ traceparent: traceOf("a", true), errorCode: "timeout" }))
      expect([spans, tracer === (yield* Effect.tracer)]).toEqual([[], false])
    })
  )
})
