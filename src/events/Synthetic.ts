/**
 * Synthetic test events (contract 10): an envelope of every type of the catalog, with fictitious
 * data. Pure. They look like the real ones, say in several places that they are none, and name nothing that exists.
 */
import { type EventType, fictitious } from "./Catalog.ts"
import { makeTestEnvelope } from "./Envelope.ts"
import type { Envelope } from "./EnvelopeSchema.ts"
import { secondsPerDay } from "./Samples.ts"

/** What a synthetic event is made of. The same input gives the same event. */
export interface SyntheticInput {
  /** UUID of the organization. */
  readonly organizationId: string
  /** Tells this test from all others: a UUID. The event's id and all fictitious ids are made of it. */
  readonly testId: string
  readonly createdAt: Date
  readonly type: EventType
}

/** The envelope of a synthetic event: `test` is true, the mode is not live, and the source is `svc_test`. */
export const syntheticEvent = ({ createdAt, organizationId, testId, type }: SyntheticInput): Envelope => {
  const unique = testId.replaceAll("-", "")
  const now = Math.floor(createdAt.getTime() / 1000)
  return fictitious[type]((type, data) => makeTestEnvelope({ organizationId, testId, createdAt, type, data }), {
    id: (prefix) => `${prefix}_test_${unique}`,
    inDays: (days) => now + days * secondsPerDay
  })
}
