import { Context, Effect, Layer, Metric, MetricBoundaries, MetricLabel, Schedule, type Scope } from "effect"

/**
 * Every metric of the service, with the names of OpenTelemetry's conventions where they define one. Each attribute has
 * few values, never ids; series of a metric beyond `maxSeries` are counted together.
 *
 * Effect's own registry keeps the values, and the exporter reads them there. If metrics are not exported there is no
 * `Metrics`, so nothing is counted.
 */

interface Declared {
  readonly kind: "histogram" | "counter" | "gauge"
  /** A UCUM unit, as the conventions use it: `s`, `{attempt}`. */
  readonly unit: string
  /** The order in which their values are passed; an empty value is omitted. */
  readonly attributes: ReadonlyArray<string>
  readonly about: string
}

export const metricTable = {
  "http.server.request.duration": {
    kind: "histogram",
    unit: "s",
    attributes: ["http.request.method", "url.scheme", "http.route", "http.response.status_code", "error.type"],
    about: "Requests: rate, errors and duration by route"
  },
  "connected_payments.notification.count": {
    kind: "counter",
    unit: "{notification}",
    attributes: ["notification.outcome"],
    about: "Notifications of the provider by their outcome; also `refused`, `not_stored` and `live_in_sandbox`"
  },
  "connected_payments.notification.malformed.count": {
    kind: "counter",
    unit: "{notification}",
    attributes: ["environment", "notification.type", "malformed.part"],
    about:
      "Malformed notifications, by the provider's type and the malformed part: the `event` itself, its `object`, the `account`, or the fields of `filters`"
  },
  "connected_payments.notification.reconciled.count": {
    kind: "counter",
    unit: "{event}",
    attributes: ["environment"],
    about: "Events of the provider that were stored from its list, since no notification had left a receipt"
  },
  "connected_payments.delivery.attempt.duration": {
    kind: "histogram",
    unit: "s",
    attributes: ["environment", "delivery.trigger", "delivery.state", "error.type"],
    about: "Delivery attempts: rate, failures and duration, with the delivery's state after them"
  },
  "connected_payments.delivery.retry.count": {
    kind: "counter",
    unit: "{retry}",
    attributes: ["environment", "error.type"],
    about: "Scheduled retries, by the reason of the failure before"
  },
  "connected_payments.delivery.attempt.active": {
    kind: "gauge",
    unit: "{attempt}",
    attributes: [],
    about: "Deliveries that the process has claimed and whose attempts have not ended"
  },
  "connected_payments.delivery.queue.depth": {
    kind: "gauge",
    unit: "{delivery}",
    attributes: ["environment", "delivery.queue"],
    about: "Deliveries that are `due`, and those `scheduled` for later or in flight, in the whole installation"
  },
  "connected_payments.delivery.queue.oldest_due_age": {
    kind: "gauge",
    unit: "s",
    attributes: ["environment"],
    about: "How long the oldest due delivery has waited; 0 if none is due"
  },
  "connected_payments.provider.call.duration": {
    kind: "histogram",
    unit: "s",
    attributes: ["environment", "provider.operation", "http.response.status_code", "error.type"],
    about: "Calls to the provider, each repeat counted separately"
  },
  "connected_payments.provider.access.refused.count": {
    kind: "counter",
    unit: "{refusal}",
    attributes: ["environment", "provider.platform"],
    about:
      "Refusals of the provider for which no account was disconnected, since the platform's key is of `another` platform, or that is `unknown`"
  },
  "db.client.connection.count": {
    kind: "gauge",
    unit: "{connection}",
    attributes: ["db.client.connection.state"],
    about: "Connections of the process's pool, `used` and `idle`"
  },
  "db.client.connection.pending_requests": {
    kind: "gauge",
    unit: "{request}",
    attributes: [],
    about: "Requests that wait for a connection of the pool"
  },
  "db.client.connection.long_wait.count": {
    kind: "counter",
    unit: "{wait}",
    attributes: [],
    about: "Waits of a second or more for a connection of the pool, those that ended without one included"
  },
  "connected_payments.clock.offset": {
    kind: "gauge",
    unit: "s",
    attributes: ["clock.other"],
    about: "How far the process's clock is ahead of the `database`'s or the `provider`'s"
  },
  "connected_payments.unhandled_rejection.count": {
    kind: "counter",
    unit: "{rejection}",
    attributes: [],
    about: "Rejected promises that nobody handled: each is a bug, with its cause in the log"
  },
  "nodejs.eventloop.delay.mean": {
    kind: "gauge",
    unit: "s",
    attributes: [],
    about: "The event loop's delay since the last export, on average"
  },
  "nodejs.eventloop.delay.p99": {
    kind: "gauge",
    unit: "s",
    attributes: [],
    about: "The same, in the slowest hundredth"
  },
  "nodejs.eventloop.delay.max": {
    kind: "gauge",
    unit: "s",
    attributes: [],
    about: "The same, at its longest"
  }
} as const satisfies Readonly<Record<string, Declared>>

type Table = typeof metricTable
type NameOf<Kind extends Declared["kind"]> = {
  [Name in keyof Table]: Table[Name]["kind"] extends Kind ? Name : never
}[keyof Table]

type ValuesOf<Names extends ReadonlyArray<string>> = { readonly [Index in keyof Names]: string }

/** The values of a metric's attributes, in the order of `metricTable`. */
export type AttributesOf<Name extends keyof Table> = ValuesOf<Table[Name]["attributes"]>

/** Maximum number of separate series per metric; all others share one with the conventions' overflow attribute. */
const maxSeries = 1000
const overflow = { "otel.metric.overflow": "true" }

/** Histogram boundaries for durations, in seconds, as in the conventions. */
const durations = MetricBoundaries.fromIterable([
  0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10
])

/** The tag that passes a metric's unit to the exporter, which removes it. */
export const unitTag = "unit"

/** Writes metrics. All methods except `observe` are plain calls, for the hottest paths; they don't throw. */
export interface MetricsWriter {
  readonly record: <Name extends NameOf<"histogram">>(name: Name, value: number, attributes: AttributesOf<Name>) => void
  /** Adds to a counter, by default 1. Adding 0 exports it before anything was counted. */
  readonly count: <Name extends NameOf<"counter">>(name: Name, attributes: AttributesOf<Name>, by?: number) => void
  /** Sets a gauge; `NaN` means unknown at present, and is omitted from exports. */
  readonly set: <Name extends NameOf<"gauge">>(name: Name, value: number, attributes: AttributesOf<Name>) => void
  /** Runs an observation right before each export, until the scope closes. */
  readonly observe: (look: Effect.Effect<void>) => Effect.Effect<void, never, Scope.Scope>
}

/** The metrics of the process; null if nothing exports them. */
export class Metrics extends Context.Reference<Metrics>()("connected-payments/telemetry/Metrics", {
  defaultValue: (): MetricsWriter | null => null
}) {}

/** Updates one metric with one combination of attributes. */
type Update = (value: number) => void

/** No further tags; always the same array, otherwise the metric would be looked up each time. */
const noTags: [] = []

const makeUpdate = (name: keyof Table, tags: Readonly<Record<string, string>>): Update => {
  const { about, kind, unit } = metricTable[name]
  const labels = Object.entries({ ...tags, [unitTag]: unit }).map(([key, value]) => MetricLabel.make(key, value))
  if (kind === "histogram") {
    const metric = Metric.taggedWithLabels(Metric.histogram(name, durations, about), labels)
    return (value) => metric.unsafeUpdate(value, noTags)
  }
  if (kind === "counter") {
    const metric = Metric.taggedWithLabels(Metric.counter(name, { description: about, incremental: true }), labels)
    return (value) => metric.unsafeUpdate(value, noTags)
  }
  const metric = Metric.taggedWithLabels(Metric.gauge(name, { description: about }), labels)
  return (value) => metric.unsafeUpdate(value, noTags)
}

const tagsOf = (names: ReadonlyArray<string>, values: ReadonlyArray<string>): Readonly<Record<string, string>> =>
  Object.fromEntries(names.flatMap((name, index) => (values[index] ? [[name, values[index]]] : [])))

/** Finds the series of a metric by its attributes' values; each is created once. */
const makeSeries = (name: keyof Table) => {
  const known = new Map<string, Update>()
  let rest: Update | undefined
  return (values: ReadonlyArray<string>): Update => {
    const key = values.join("\n")
    const found = known.get(key)
    if (found !== undefined) return found
    if (known.size >= maxSeries) {
      rest ??= makeUpdate(name, overflow)
      return rest
    }
    const update = makeUpdate(name, tagsOf(metricTable[name].attributes, values))
    known.set(key, update)
    return update
  }
}

/** A metrics writer, and the observations to run before its values are exported. */
export const makeMetrics = (): { readonly writer: MetricsWriter; readonly look: Effect.Effect<void> } => {
  const looks = new Set<Effect.Effect<void>>()
  const series = new Map<string, ReturnType<typeof makeSeries>>()
  const update = (name: keyof Table, value: number, attributes: ReadonlyArray<string>): void => {
    let find = series.get(name)
    if (find === undefined) {
      find = makeSeries(name)
      series.set(name, find)
    }
    find(attributes)(value)
  }
  return {
    writer: {
      record: update,
      set: update,
      count: (name, attributes, by = 1) => update(name, by, attributes),
      observe: (look) =>
        Effect.acquireRelease(
          Effect.sync(() => looks.add(look)),
          () => Effect.sync(() => looks.delete(look))
        )
    },
    look: Effect.suspend(() => Effect.all(looks, { concurrency: "unbounded", discard: true }))
  }
}

/** How often gauges are read if nobody says when they are exported. */
const observed = Schedule.spaced("10 seconds")

/**
 * Counts in Effect's own registry, for an embedding team's exporter: provide it to the service's layer. Without it nothing
 * is counted. Gauges are at most 10 seconds old.
 */
export const metricsLayer: Layer.Layer<never> = Layer.scoped(
  Metrics,
  Effect.gen(function* () {
    const { look, writer } = makeMetrics()
    yield* Effect.forkScoped(Effect.schedule(look, observed))
    return writer
  })
)

/** Runs an observation before each export, if metrics are exported. */
export const observeMetrics = (look: (metrics: MetricsWriter) => Effect.Effect<void>) =>
  Effect.flatMap(Metrics, (metrics) => (metrics === null ? Effect.void : metrics.observe(look(metrics))))
