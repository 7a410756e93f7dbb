import { readFileSync } from "node:fs"
import { hostname } from "node:os"
import { SqlError } from "@effect/sql"
import { afterEach, describe, expect, vi } from "@effect/vitest"
import { Data, Duration, Effect, Tracer } from "effect"
import { type EndedAttempt, makeAttemptReports } from "../../../src/engine/attempts/AttemptReports.ts"
import { InternalError, ResourceNotFound } from "../../../src/platform/errors/Errors.ts"
import { LogLines } from "../../../src/platform/telemetry/LogLines.ts"
import { Metrics, metricTable } from "../../../src/platform/telemetry/Metrics.ts"
import { telemetryLayer } from "../../../src/platform/telemetry/Telemetry.ts"
import { anyDelivery } from "../../destinations/deliveries/AnyDelivery.ts"
import { makeCollector } from "../../harness/Collector.ts"
import { it } from "../../harness/Tests.ts"

/** The SDK reads the process's own variables. */
const withVariables = (variables: Readonly<Record<string, string>>) => {
  for (const [name, value] of Object.entries(variables)) vi.stubEnv(name, value)
}

afterEach(() => {
  vi.unstubAllEnvs()
})

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

const anAttempt = (more: {
  readonly traceparent: string | null
  readonly errorCode?: "timeout"
  readonly environment?: "production"
}): EndedAttempt => ({
  delivery: {
    ...anyDelivery(),
    environment: more.environment ?? "sandbox",
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

describe("the guide to telemetry", () => {
  it("lists every metric with its unit and attributes", () => {
    const guide = readFileSync(new URL("../../../src/docs/guides/telemetry.md", import.meta.url), "utf8")
    for (const [name, { attributes, kind, unit }] of Object.entries(metricTable)) {
      const listed = attributes.map((attribute) => `\`${attribute}\``).join(", ")
      expect(guide).toContain(`| \`${name}\` | ${kind}, \`${unit}\` | ${listed} |`)
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
    it.live(`exports ${expected.join(", ") || "nothing"} where ${when}`, function* () {
      withVariables({ ...variables, OTEL_EXPORTER_OTLP_TIMEOUT: "200" })
      const on = yield* turnedOn
      expect(Object.entries(on).flatMap(([signal, isOn]) => (isOn ? [signal] : []))).toEqual(expected)
    })
  }

  for (const [variables, contentTypes] of [
    [{}, ["application/x-protobuf"]],
    [{ OTEL_EXPORTER_OTLP_PROTOCOL: " " }, ["application/x-protobuf"]],
    [{ OTEL_EXPORTER_OTLP_PROTOCOL: "http/json" }, ["application/json"]],
    [
      { OTEL_EXPORTER_OTLP_PROTOCOL: "http/json", OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: "http/protobuf" },
      ["application/json", "application/x-protobuf"]
    ],
    // Another variable's own goes first, so the common one may be what it likes
    [
      {
        OTEL_EXPORTER_OTLP_PROTOCOL: "grpc",
        OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: "http/json",
        OTEL_EXPORTER_OTLP_LOGS_PROTOCOL: "http/json",
        OTEL_METRICS_EXPORTER: "none"
      },
      ["application/json"]
    ]
  ] satisfies ReadonlyArray<readonly [Readonly<Record<string, string>>, ReadonlyArray<string>]>) {
    it.scopedLive(`speaks ${contentTypes.join(" and ")} with ${JSON.stringify(variables)}`, function* () {
      const collector = yield* makeCollector
      withVariables({ OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, ...variables })
      yield* Effect.gen(function* () {
        const report = yield* makeAttemptReports
        report(anAttempt({ traceparent: null, errorCode: "timeout", environment: "production" }))
      }).pipe(Effect.provide(telemetryLayer))
      expect([...new Set(collector.contentTypes())].toSorted()).toEqual(contentTypes)
      expect(collector.spans()).toMatchObject([
        {
          name: "deliver",
          status: { code: 2 },
          attributes: { "error.type": "timeout", "server.address": "hooks.shop.example", "server.port": 8443 }
        }
      ])
      expect(collector.logs()).toMatchObject([{ level: "WARN", traceId: collector.spans()[0]?.traceId }])
      if (!("OTEL_METRICS_EXPORTER" in variables)) {
        const [point] = collector
          .metric("connected_payments.delivery.attempt.duration")
          .filter(({ attributes }) => attributes["environment"] === "production")
        expect(point).toMatchObject({
          scope: "connected-payments",
          unit: "s",
          attributes: { "error.type": "timeout" }
        })
      }
      expect(collector.text()).not.toContain("a-secret")
    })
  }

  for (const name of ["OTEL_EXPORTER_OTLP_PROTOCOL", "OTEL_EXPORTER_OTLP_METRICS_PROTOCOL"]) {
    it.live(`stops the start where ${name} is none that it speaks, and not where nothing is exported`, function* () {
      withVariables({ [name]: "grpc" })
      expect(yield* turnedOn).toEqual({ traces: false, metrics: false, logs: false })
      withVariables({ OTEL_EXPORTER_OTLP_ENDPOINT: endpoint })
      const error = yield* Effect.flip(turnedOn)
      expect(error._tag).toBe("SettingsError")
      expect(error.message).toMatch(new RegExp(`^${name}: must be http/protobuf or http/json`))
    })
  }

  it.scopedLive("exports no span of a trace that its caller left out, and continues one it took", function* () {
    const collector = yield* makeCollector
    withVariables({ OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `${collector.url}/v1/traces` })
    const spanId = "00f067aa0ba902b7"
    const under = (traceId: string, sampled: boolean) =>
      Effect.void.pipe(
        Effect.withSpan("child"),
        Effect.withSpan("request", { parent: Tracer.externalSpan({ traceId, spanId, sampled }) })
      )
    yield* Effect.all([under("a".repeat(32), false), under("b".repeat(32), true)]).pipe(Effect.provide(telemetryLayer))
    expect(collector.spans().map(({ name, traceId }) => [name, traceId[0]])).toEqual([
      ["child", "b"],
      ["request", "b"]
    ])
    expect(collector.spans()[1]?.parentSpanId).toBe(spanId)
  })

  it.scopedLive("says by a code why a span failed, and nothing of what it was about", function* () {
    class Rejected extends Data.TaggedError("Rejected")<{ readonly card: string }> {}
    const collector = yield* makeCollector
    withVariables({ OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `${collector.url}/v1/traces` })
    const violation = Object.assign(new Error("a-secret"), { severity: "ERROR", code: "23505" })
    const ends: Readonly<Record<string, Effect.Effect<unknown, unknown>>> = {
      well: Effect.void,
      interrupted: Effect.interrupt,
      refused: new ResourceNotFound({ message: "There is no a-secret." }),
      broken: new InternalError({ cause: new Error("a-secret") }),
      rejected: new Rejected({ card: "a-secret" }),
      defect: Effect.die(new TypeError("a-secret")),
      text: Effect.fail("a-secret"),
      sql: new SqlError.SqlError({ cause: violation, message: "a-secret" }),
      socket: new SqlError.SqlError({ cause: new Error("a-secret"), message: "a-secret" })
    }
    yield* Effect.forEach(Object.entries(ends), ([name, end]) => Effect.exit(Effect.withSpan(end, name))).pipe(
      Effect.provide(telemetryLayer)
    )
    const unset = { status: { code: 0 }, events: [] }
    const failed = (attributes: Readonly<Record<string, string>>) => ({ status: { code: 2 }, events: [], attributes })
    expect(Object.fromEntries(collector.spans().map((span) => [span.name, span]))).toMatchObject({
      well: unset,
      interrupted: unset,
      refused: { ...unset, attributes: { "api.error.code": "resource_not_found" } },
      broken: failed({ "error.type": "internal_error" }),
      rejected: failed({ "error.type": "Rejected" }),
      defect: failed({ "error.type": "TypeError" }),
      text: failed({ "error.type": "_OTHER" }),
      sql: failed({ "error.type": "23505", "db.response.status_code": "23505" }),
      socket: failed({ "error.type": "SqlError" })
    })
    expect(collector.text()).not.toContain("a-secret")
  })

  it.scopedLive("exports status codes as numbers, and leaves out what has no value now", function* () {
    const collector = yield* makeCollector
    withVariables({ OTEL_EXPORTER_OTLP_METRICS_ENDPOINT: `${collector.url}/v1/metrics` })
    yield* Effect.gen(function* () {
      const metrics = yield* Metrics
      metrics?.record("http.server.request.duration", 0.01, ["GET", "http", "/there", "404", ""])
      metrics?.set("connected_payments.delivery.queue.oldest_due_age", Number.NaN, ["sandbox"])
      metrics?.set("connected_payments.delivery.queue.oldest_due_age", 7, ["production"])
    }).pipe(Effect.provide(telemetryLayer))
    // A service that suites share counts its requests, too
    const durations = collector.metric("http.server.request.duration").map(({ attributes }) => attributes)
    expect(durations.filter((attributes) => attributes["http.route"] === "/there")).toEqual([
      {
        "http.request.method": "GET",
        "url.scheme": "http",
        "http.route": "/there",
        "http.response.status_code": 404,
        installation: "local",
        role: "all"
      }
    ])
    expect(collector.metric("connected_payments.delivery.queue.oldest_due_age")).toMatchObject([
      { value: 7, attributes: { environment: "production" } }
    ])
  })

  it.scopedLive("keeps every failed attempt and all of sampled notifications, whatever the sampler", function* () {
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
    const attempts = collector
      .metric("connected_payments.delivery.attempt.duration")
      .filter(({ attributes }) => attributes["environment"] === "sandbox")
    expect(attempts.reduce((total, { value }) => total + value, 0)).toBe(6)
    // The log follows: what went well is exported with its span, what failed in any case
    expect(collector.logs().map(({ level }) => level)).toEqual(["INFO", "WARN", "WARN", "WARN"])
  })

  it.scopedLive("names installation, role and process, or takes their names from the environment", function* () {
    const collector = yield* makeCollector
    withVariables({ OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, OTEL_SERVICE_NAME: "another-name" })
    const resourceWith = (settings: Readonly<Record<string, string>>) => {
      withVariables(settings)
      return Effect.gen(function* () {
        const metrics = yield* Metrics
        metrics?.count("connected_payments.unhandled_rejection.count", [])
      }).pipe(
        Effect.withSpan("something"),
        Effect.provide(telemetryLayer),
        Effect.map(() => ({
          resource: collector.spans().at(-1)?.resource,
          labels: collector.metric("connected_payments.unhandled_rejection.count").at(-1)?.attributes
        }))
      )
    }
    const own = yield* resourceWith({ PUBLIC_URL: "https://payments.example/base", ROLES: "worker", PORT: "8082" })
    expect(own.labels).toEqual({ installation: "payments.example", role: "worker" })
    expect(own.resource).toMatchObject({
      "service.name": "another-name",
      "service.instance.id": `${hostname()}:8082`
    })
    const named = "deployment.environment.name=blue%20green,service.namespace=eu"
    const given = yield* resourceWith({ OTEL_RESOURCE_ATTRIBUTES: named })
    expect(given.labels).toEqual({ installation: "eu", role: "worker" })
    expect(given.resource).toMatchObject({ "deployment.environment.name": "blue green" })
  })

  it.live("that has no collector ends and takes nothing with it", function* () {
    withVariables({ OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1:1" })
    const result = yield* Effect.succeed(1).pipe(Effect.withSpan("something"), Effect.provide(telemetryLayer))
    expect(result).toBe(1)
  })
})
