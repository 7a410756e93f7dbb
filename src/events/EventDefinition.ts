import { Schema } from "effect"

/** The envelope of every type (contract 6.1). No server code: the published schemas use it. */

/** `source.provider` of events that come from Stripe. */
export const stripeName = "stripe"

/** `source.provider` of synthetic test events. */
export const testProviderName = "svc_test"

export const envelopeVersion = 1

export const EventId = Schema.String.pipe(
  Schema.pattern(/^svc_(evt_[0-9a-f]{64}|test_evt_[A-Za-z0-9_-]+)$/)
).annotations({ identifier: "EventId", description: "The same in every delivery, `svc_evt_…`: deduplicate by it" })

const isoTimestamp = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/

const OrganizationUuid = Schema.UUID.annotations({
  identifier: "OrganizationUuid",
  description: "The organization whose connected account the event came from"
})

export const sourceForm = /^[a-z][a-z0-9_]{0,39}$/

const Source = Schema.Struct({
  provider: Schema.String.pipe(Schema.pattern(sourceForm)).annotations({
    description: `Who reported it: ${stripeName}, unless the installation uses another provider; ${testProviderName} on synthetic events`
  }),
  event_id: Schema.String.pipe(Schema.minLength(1)).annotations({ description: "The provider's event id" })
}).annotations({ identifier: "EventSource", description: "Who reported the event, and under which id there" })

export const envelopeStruct = <const T extends string, Data extends Schema.Schema.AnyNoContext>(type: T, data: Data) =>
  Schema.Struct({
    id: EventId,
    type: Schema.Literal(type).annotations({ description: "The event type, which says what data holds" }),
    version: Schema.Literal(envelopeVersion).annotations({ description: "The version of the envelope" }),
    created_at: Schema.String.pipe(Schema.pattern(isoTimestamp)).annotations({
      description: "When the event happened at the provider: ISO 8601, UTC, with milliseconds"
    }),
    livemode: Schema.Boolean.annotations({ description: "False in the sandbox" }),
    organization_id: OrganizationUuid,
    source: Source,
    data,
    test: Schema.optionalWith(Schema.Literal(true), { exact: true }).annotations({
      description: "Present, and true, only on synthetic events: they prove nothing about any payment"
    })
  }).annotations({ identifier: `Event.${type}`, description: `The envelope of ${type}` })

export interface EnvelopeWith<T extends string, Data> {
  readonly id: string
  readonly type: T
  readonly version: typeof envelopeVersion
  readonly created_at: string
  readonly livemode: boolean
  readonly organization_id: string
  readonly source: { readonly provider: string; readonly event_id: string }
  readonly data: Data
  readonly test?: true
}

/** The definition of an event type, and everything that derives from it. */

export interface Fictitious {
  /** The id of an object that exists nowhere, such as `pi_test_…`. */
  readonly id: (prefix: string) => string
  /** A time in Unix seconds, this many days after the event. */
  readonly inDays: (days: number) => number
}

export type Wrap = <T extends string, Data>(type: T, data: Data) => EnvelopeWith<T, Data>

/**
 * Defines an event type.
 *
 * @param description a sentence for the integrator, shown wherever types are listed
 * @param data the schema of `data`; its identifier becomes the name of the consumer kit's type
 * @param sample fictitious data, for synthetic tests and documents
 * @param items whether the provider's object has products and prices, for the filters that read them
 * @param metadata whether it has metadata, for the filter that reads it
 */
export const eventType = <const T extends string, Data extends Schema.Schema.AnyNoContext>(
  type: T,
  {
    data,
    description,
    items = false,
    metadata = true,
    sample
  }: {
    readonly description: string
    readonly data: Data
    readonly sample: (fictitious: Fictitious) => Schema.Schema.Type<Data>
    readonly items?: boolean
    readonly metadata?: boolean
  }
) => ({
  type,
  description,
  data,
  envelope: envelopeStruct(type, data),
  subjects: { items, metadata },
  fictitious: (wrap: Wrap, fictitious: Fictitious): EnvelopeWith<T, Schema.Schema.Type<Data>> =>
    wrap(type, sample(fictitious))
})
