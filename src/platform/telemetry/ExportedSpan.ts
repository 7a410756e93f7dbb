import { SqlError } from "@effect/sql"
import {
  type Attributes,
  type AttributeValue,
  type HrTime,
  type Span as OtelSpan,
  type Tracer as OtelTracer,
  ROOT_CONTEXT,
  type SpanContext,
  SpanKind,
  SpanStatusCode,
  TraceFlags,
  trace
} from "@opentelemetry/api"
import { Cause, type Context, type Exit, Inspectable, Option, Predicate, type Tracer } from "effect"
import { isApiError } from "../errors/Errors.ts"
import { sqlState } from "./ServerErrors.ts"

/**
 * A span of the program, exported by OpenTelemetry's SDK. Effect's own bridge treats every parent as sampled, marks
 * successes as `Ok`, and writes a failure's message and stack, which may contain anything, into the span. Here a failed
 * span only has an error code, and the log has the rest.
 */

const kinds: Readonly<Record<Tracer.SpanKind, SpanKind>> = {
  internal: SpanKind.INTERNAL,
  server: SpanKind.SERVER,
  client: SpanKind.CLIENT,
  producer: SpanKind.PRODUCER,
  consumer: SpanKind.CONSUMER
}

const hrTime = (nanoseconds: bigint): HrTime => [
  Number(nanoseconds / 1_000_000_000n),
  Number(nanoseconds % 1_000_000_000n)
]

const isPlain = (value: unknown): value is string | number | boolean =>
  typeof value === "string" || typeof value === "number" || typeof value === "boolean"

const attributeValue = (value: unknown): AttributeValue => (isPlain(value) ? value : Inspectable.toStringUnknown(value))

const attributesOf = (values: Readonly<Record<string, unknown>>): Attributes =>
  Object.fromEntries(Object.entries(values).map(([name, value]) => [name, attributeValue(value)]))

const spanContextOf = (span: Tracer.AnySpan): SpanContext =>
  span instanceof ExportedSpan
    ? span.exported.spanContext()
    : {
        traceId: span.traceId,
        spanId: span.spanId,
        traceFlags: span.sampled ? TraceFlags.SAMPLED : TraceFlags.NONE,
        isRemote: span._tag === "ExternalSpan"
      }

const linkOf = ({ attributes, span }: Tracer.SpanLink) => ({
  context: spanContextOf(span),
  attributes: attributesOf(attributes)
})

const commands =
  /\b(?:SELECT|INSERT|UPDATE|DELETE|MERGE|CREATE|ALTER|DROP|TRUNCATE|ANALYZE|NOTIFY|LISTEN|SET|SHOW|LOCK)\b/

/** The first command keyword of a statement, skipping `WITH`. Ours are in capitals; other statements begin with it. */
const operationOf = (statement: string): string | undefined =>
  commands.exec(statement)?.[0] ?? /^\s*([a-z]+)/i.exec(statement)?.[1]?.toUpperCase()

/** The type of a failure: one of few values, without details. */
const typeOf = (error: unknown): string => {
  if (error instanceof SqlError.SqlError) return sqlState(error) ?? error._tag
  if (isApiError(error)) return error.code
  if (Predicate.hasProperty(error, "_tag") && typeof error._tag === "string") return error._tag
  return error instanceof Error ? error.name : "_OTHER"
}

export class ExportedSpan implements Tracer.Span {
  readonly _tag = "Span"
  readonly name: string
  readonly parent: Option.Option<Tracer.AnySpan>
  readonly context: Context.Context<never>
  readonly kind: Tracer.SpanKind
  readonly links: Array<Tracer.SpanLink>
  readonly attributes = new Map<string, unknown>()
  readonly traceId: string
  readonly spanId: string
  readonly sampled: boolean
  readonly exported: OtelSpan
  status: Tracer.SpanStatus

  constructor(
    tracer: OtelTracer,
    ...[name, parent, context, links, startTime, kind]: Parameters<Tracer.Tracer["span"]>
  ) {
    this.name = name
    this.parent = parent
    this.context = context
    this.kind = kind
    this.links = [...links]
    this.status = { _tag: "Started", startTime }
    this.exported = tracer.startSpan(
      name,
      { kind: kinds[kind], startTime: hrTime(startTime), links: this.links.map(linkOf) },
      Option.isNone(parent) ? ROOT_CONTEXT : trace.setSpanContext(ROOT_CONTEXT, spanContextOf(parent.value))
    )
    const { spanId, traceFlags, traceId } = this.exported.spanContext()
    this.traceId = traceId
    this.spanId = spanId
    this.sampled = (traceFlags & TraceFlags.SAMPLED) !== 0
  }

  attribute(key: string, value: unknown): void {
    // The SQL client sets this to the kind of execution, not the command
    if (value === undefined || value === null || key === "db.operation.name") return
    this.attributes.set(key, value)
    this.exported.setAttribute(key, attributeValue(value))
    if (key === "db.query.text") this.#nameStatement(String(value))
  }

  event(name: string, startTime: bigint, attributes: Readonly<Record<string, unknown>> = {}): void {
    this.exported.addEvent(name, attributesOf(attributes), hrTime(startTime))
  }

  addLinks(links: ReadonlyArray<Tracer.SpanLink>): void {
    for (const link of links) this.links.push(link)
    this.exported.addLinks(links.map(linkOf))
  }

  end(endTime: bigint, exit: Exit.Exit<unknown, unknown>): void {
    this.status = { _tag: "Ended", startTime: this.status.startTime, endTime, exit }
    // By OpenTelemetry's conventions, a success or an interruption has no status
    if (exit._tag === "Failure" && !Cause.isInterruptedOnly(exit.cause)) this.#fail(Cause.squash(exit.cause))
    this.exported.end(hrTime(endTime))
  }

  #nameStatement(statement: string): void {
    const operation = operationOf(statement)
    if (operation === undefined) return
    this.exported.setAttribute("db.operation.name", operation)
    this.exported.updateName(`${operation} ${String(this.attributes.get("db.namespace") ?? "")}`.trim())
  }

  #fail(error: unknown): void {
    if (isApiError(error) && error.status < 500) {
      // A refusal (4xx) is not an error of the span
      this.attribute("api.error.code", error.code)
      return
    }
    if (error instanceof SqlError.SqlError) this.attribute("db.response.status_code", sqlState(error))
    if (!this.attributes.has("error.type")) this.attribute("error.type", typeOf(error))
    this.exported.setStatus({ code: SpanStatusCode.ERROR })
  }
}
