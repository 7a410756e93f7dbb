import { createHash } from "node:crypto"
import { SqlClient, type SqlError } from "@effect/sql"
import { Clock, Context, Data, Effect, Exit, Layer, Option, Schema } from "effect"
import { type HandOff, LocalHandOff } from "../../engine/queue/Enqueue.ts"
import { WakeUp } from "../../engine/queue/WakeUp.ts"
import { envelopeVersion, sourceForm, stripeName, testProviderName } from "../../events/Envelope.ts"
import { type CatalogEntry, EventCatalog } from "../../events/EventCatalog.ts"
import type { FilterSubjects } from "../../events/Filters.ts"
import type { ServiceUnavailable } from "../../platform/errors/Errors.ts"
import { KeyedHash } from "../../platform/kit/crypto/KeyedHash.ts"
import { newId } from "../../platform/kit/Ids.ts"
import type { Tenant } from "../../platform/kit/Tenant.ts"
import { isInTransaction, orUnavailable, transaction } from "../../platform/storage/Database.ts"
import { currentTraceparent } from "../../platform/telemetry/Spans.ts"
import { makeOutboundEventsRepo } from "./OutboundEventsRepo.ts"
import { matchEvent } from "./Publication.ts"

/** The options that distinguish an embedding team's events from others. */
export interface OutboundEventsOptions {
  /**
   * `source.provider` of the envelopes: lowercase letters, digits and `_`, up to 40 characters, such as `orders`. Not
   * `stripe` or `svc_test`, which mark events that come from the provider and synthetic tests.
   */
  readonly source: string
}

/** An embedding team's own event. */
export interface OutboundEvent extends Tenant {
  /** A type from the catalog in use. */
  readonly type: string
  /** A JSON object, without personal data, secrets or metadata (contract 6.2). */
  readonly data: Readonly<Record<string, unknown>>
  /**
   * The team's own id for what happened, 1 to 255 printable characters; `source.event_id` of the envelope. Publishing
   * is idempotent by id and type for as long as deliveries are kept (`settings.delivery.retention`, 30 days by
   * default); after that, it creates a new event. Default: a new id.
   */
  readonly id?: string
  /** When it happened. Default: now. */
  readonly createdAt?: Date
  /** The facts that the filters `prices`, `products` and `metadata` read; never delivered. Default: not applicable. */
  readonly subjects?: Partial<FilterSubjects>
}

/**
 * The type of `data` for each event type of a catalog: that of its schema, or any JSON object if it has none. The
 * catalog's types must be literals: declare it `as const`. Receivers pass it to the kit: `verifyWebhook<ShopEvents>`.
 */
export type OutboundEventData<Catalog extends ReadonlyArray<CatalogEntry>> = {
  readonly [Entry in Catalog[number] as Entry["type"]]: DataOf<Entry>
}

type DataOf<Entry> = Entry extends { readonly data: Schema.Schema<infer Value, infer _Encoded> }
  ? Value
  : OutboundEvent["data"]

export type OutboundEventOf<Catalog extends ReadonlyArray<CatalogEntry>> = EventOfEntry<Catalog[number]>

type EventOfEntry<Entry extends CatalogEntry> = Entry extends CatalogEntry
  ? Omit<OutboundEvent, "type" | "data"> & {
      readonly type: Entry["type"]
      readonly data: DataOf<Entry>
    }
  : never

export interface Published {
  /** The envelope's id, `svc_evt_…`. */
  readonly eventId: string
  /** How many deliveries were queued; 0 for a repeat. */
  readonly deliveries: number
  /** How many paused endpoints would have received it. */
  readonly skipped: number
  /** Whether this id and type had been published before, within the retention of deliveries. */
  readonly duplicate: boolean
}

/** The event can't be published as it is, and nothing was stored. For the publishing team. */
export class EventNotPublishable extends Data.TaggedError("EventNotPublishable")<{
  /**
   * `unknown_type`: the catalog has no such type. `invalid_data`: the catalog's schema for the type refuses the data,
   * or the data is not JSON. `too_large`: the envelope has more than 262,144 bytes. `invalid_id`: not 1 to 255 printable
   * characters. `unknown_organization`: the service does not know the organization.
   */
  readonly reason: "unknown_type" | "invalid_data" | "too_large" | "invalid_id" | "unknown_organization"
  readonly message: string
  readonly cause?: unknown
}> {}

/** Sends an embedding team's own events through the queue: signed, retried, filtered and recorded like all others. */
export class OutboundEvents extends Context.Tag("connected-payments/publishing/OutboundEvents")<
  OutboundEvents,
  {
    /**
     * Stores an event with the deliveries to every endpoint that subscribes to its type and whose filters it passes,
     * and hands them to this process's worker, or wakes the workers. Inside a transaction of the same `SqlClient` it
     * becomes part of it: the event and the transaction's other changes are stored together or not at all. In that case
     * use `transact`, or `announce` after your commit.
     */
    readonly publish: (event: OutboundEvent) => Effect.Effect<Published, EventNotPublishable | ServiceUnavailable>
    /**
     * Runs an effect, `publish` included, in one transaction, and wakes the workers after the commit. Every database
     * failure is a `SqlError`, at COMMIT too. The effect is repeated after a serialization failure or a deadlock, so it
     * must not do anything outside the database.
     */
    readonly transact: <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E | SqlError.SqlError, R>
    /** Wakes the workers, after a commit of your own. Without it they find the deliveries the next time they poll. */
    readonly announce: Effect.Effect<void>
  }
>() {
  static readonly layer = (options: OutboundEventsOptions) => Layer.effect(OutboundEvents, makeOutboundEvents(options))

  /**
   * `publish` for the events of a catalog of literal types (`as const`): the compiler checks each event's `data`
   * against the schema for its `type`. Pass the catalog that the layer uses; `publish` checks every event in any case.
   */
  static readonly publisher =
    <const Catalog extends ReadonlyArray<CatalogEntry>>(_catalog: Catalog) =>
    (
      event: OutboundEventOf<Catalog>
    ): Effect.Effect<Published, EventNotPublishable | ServiceUnavailable, OutboundEvents> =>
      Effect.flatMap(OutboundEvents, ({ publish }) => publish(event))
}

/** The maximum size of an envelope, in bytes: a worker keeps those of a few thousand attempts in memory. */
const maxEnvelopeBytes = 256 * 1024

const wellFormedId = /^[^\p{Cc}\p{Cs}]{1,255}$/u

const makeParts = Effect.fnUntraced(function* ({ source }: OutboundEventsOptions) {
  if (!sourceForm.test(source) || source === stripeName || source === testProviderName) {
    return yield* Effect.dieMessage(`Not a source of outbound events: ${JSON.stringify(source)}`)
  }
  const sql = yield* SqlClient.SqlClient
  const catalog = new Map((yield* EventCatalog).map((entry) => [entry.type, entry]))
  const { announce } = yield* WakeUp
  const keyedHash = yield* KeyedHash
  // Without a worker in this process, deliveries wait for a claim by another
  const handOff = Option.getOrNull(yield* Effect.serviceOption(LocalHandOff))
  const repo = yield* makeOutboundEventsRepo
  return { source, sql, catalog, announce, keyedHash, handOff, repo }
})

type Parts = Effect.Effect.Success<ReturnType<typeof makeParts>>

const makeJudge = ({ catalog }: Parts) =>
  Effect.fnUntraced(function* (event: OutboundEvent) {
    const entry = catalog.get(event.type)
    if (entry === undefined) {
      return yield* new EventNotPublishable({
        reason: "unknown_type",
        message: `The catalog has no event type ${JSON.stringify(event.type)}.`
      })
    }
    const id = event.id ?? (yield* newId)
    if (!wellFormedId.test(id)) {
      return yield* new EventNotPublishable({
        reason: "invalid_id",
        message: "An event's id must have 1 to 255 printable characters."
      })
    }
    const dataSchema: Schema.Schema.AnyNoContext = entry.data ?? JsonObject
    yield* Schema.validate(dataSchema)(event.data).pipe(
      Effect.mapError(
        (cause) =>
          new EventNotPublishable({
            reason: "invalid_data",
            message: `The data is not valid for the event type ${event.type}.`,
            cause
          })
      )
    )
    return id
  })

const makeStore = ({ keyedHash, repo, source }: Parts, judge: ReturnType<typeof makeJudge>) =>
  Effect.fnUntraced(function* (event: OutboundEvent, handing: HandOff | null) {
    const sourceEventId = yield* judge(event)
    const now = new Date(yield* Clock.currentTimeMillis)
    const eventId = outboundEventId(event, source, sourceEventId)
    const payload = yield* encode(event, { eventId, source, sourceEventId, createdAt: event.createdAt ?? now })
    const traceparent = yield* currentTraceparent
    const endpoints = yield* repo.findEndpoints(event)
    if (endpoints === undefined) {
      return yield* new EventNotPublishable({
        reason: "unknown_organization",
        message: "The organization is not known here: create it with Organizations first."
      })
    }
    const matched = matchEvent({ id: eventId, type: event.type, payload, data: event.data }, endpoints, {
      subjects: subjectsOf(event),
      keyedHash
    })
    const stored = yield* repo.insert(event, { event: matched, receivedAt: now, sourceEventId, traceparent }, handing)
    return { eventId, ...stored }
  })

const makeOutboundEvents = Effect.fnUntraced(function* ({ source }: OutboundEventsOptions) {
  const parts = yield* makeParts({ source })
  const judge = makeJudge(parts)
  const store = makeStore(parts, judge)
  const publishedOf = ({ deliveries, eventId, isNew, skipped }: Effect.Effect.Success<ReturnType<typeof store>>) => ({
    eventId,
    deliveries,
    skipped,
    duplicate: !isNew
  })
  /** Publishes within the caller's transaction. Nothing may be sent, and no worker is woken, before that commits. */
  const publishWithin = (event: OutboundEvent) => Effect.map(transaction(parts.sql)(store(event, null)), publishedOf)
  /** Publishes in a transaction of its own, which may be retried. The worker gets its deliveries after the commit. */
  const publishAlone = (event: OutboundEvent) =>
    // Otherwise an interruption during the commit would leave committed deliveries under a lease that nobody uses
    Effect.uninterruptibleMask((restore) => {
      let handing: HandOff | null = null
      const stored = transaction(parts.sql)(
        restore(
          Effect.suspend(() => {
            handing?.cancel()
            handing = parts.handOff?.begin() ?? null
            return store(event, handing)
          })
        )
      )
      return stored.pipe(
        Effect.onExit((exit) =>
          Effect.sync(() => {
            if (Exit.isSuccess(exit)) handing?.settle({ rows: exit.value.handed, storedAt: exit.value.storedAt })
            else handing?.cancel()
          })
        ),
        Effect.tap(({ deliveries, handed }) => (deliveries > handed.length ? parts.announce : Effect.void)),
        Effect.map(publishedOf)
      )
    })

  return {
    publish: Effect.fn("OutboundEvents.publish")(
      (event: OutboundEvent) =>
        Effect.withFiberRuntime<Published, EventNotPublishable | SqlError.SqlError>((fiber) =>
          isInTransaction(fiber) ? publishWithin(event) : publishAlone(event)
        ),
      orUnavailable
    ),
    transact: <A, E, R>(effect: Effect.Effect<A, E, R>) =>
      Effect.zipLeft(transaction(parts.sql)(effect), parts.announce),
    announce: parts.announce
  }
})

const JsonObject = Schema.Record({ key: Schema.String, value: Schema.Unknown })

const subjectsOf = ({ subjects = {} }: OutboundEvent): FilterSubjects => ({
  priceIds: subjects.priceIds ?? null,
  productIds: subjects.productIds ?? null,
  metadata: subjects.metadata ?? null
})

/** Includes the organization, since two may use the same id of their own. */
const outboundEventId = (
  { environment, organizationId, type }: OutboundEvent,
  source: string,
  sourceEventId: string
): string =>
  `svc_evt_${createHash("sha256").update([environment, organizationId, source, sourceEventId, type].join("\n")).digest("hex")}`

/** The exact JSON text that is signed and sent, with the contract's order of keys. */
const encode = (
  event: OutboundEvent,
  of: { readonly eventId: string; readonly source: string; readonly sourceEventId: string; readonly createdAt: Date }
): Effect.Effect<string, EventNotPublishable> =>
  Effect.try({
    try: () =>
      JSON.stringify({
        id: of.eventId,
        type: event.type,
        version: envelopeVersion,
        created_at: of.createdAt.toISOString(),
        livemode: event.environment === "production",
        organization_id: event.organizationId,
        source: { provider: of.source, event_id: of.sourceEventId },
        data: event.data
      }),
    catch: (cause) =>
      new EventNotPublishable({ reason: "invalid_data", message: "The event can't be written as JSON.", cause })
  }).pipe(
    Effect.filterOrFail(
      (envelope) => Buffer.byteLength(envelope) <= maxEnvelopeBytes,
      () =>
        new EventNotPublishable({
          reason: "too_large",
          message: `The event's envelope may have ${maxEnvelopeBytes} bytes of JSON at most. Send an id, and let the receiver ask for the rest.`
        })
    )
  )
