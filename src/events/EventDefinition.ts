/** The definition of an event type, and everything that derives from it. */
import type { Schema } from "effect"
import { type EnvelopeWith, envelopeStruct } from "./EnvelopeStruct.ts"

/** Generators of fictitious data. */
export interface Fictitious {
  /** The id of an object that exists nowhere, such as `pi_test_…`. */
  readonly id: (prefix: string) => string
  /** A time in Unix seconds, this many days after the event. */
  readonly inDays: (days: number) => number
}

/** Puts data into an envelope. */
export type Wrap = <T extends string, Data>(type: T, data: Data) => EnvelopeWith<T, Data>

/**
 * Defines an event type.
 *
 * @param description a sentence for the integrator, shown wherever types are listed
 * @param data the schema of `data`; its identifier becomes the name of the consumer kit's type
 * @param sample fictitious data, for synthetic tests and documents
 */
export const eventType = <const T extends string, Data extends Schema.Schema.AnyNoContext>(
  type: T,
  {
    data,
    description,
    sample
  }: {
    readonly description: string
    readonly data: Data
    readonly sample: (fictitious: Fictitious) => Schema.Schema.Type<Data>
  }
) => ({
  type,
  description,
  data,
  envelope: envelopeStruct(type, data),
  /** A fictitious event. */
  fictitious: (wrap: Wrap, fictitious: Fictitious): EnvelopeWith<T, Schema.Schema.Type<Data>> =>
    wrap(type, sample(fictitious))
})
