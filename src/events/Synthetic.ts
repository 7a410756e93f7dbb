/**
 * Synthetic test events (contract 10): an envelope of every type of the catalog, with fictitious data. Pure. They look
 * like real ones, are marked as synthetic in several places, and refer to nothing that exists.
 */
import { type Envelope, type EventType, fictitious } from "./Catalog.ts"
import { makeTestEnvelope } from "./Envelope.ts"
import { secondsPerDay } from "./Samples.ts"

/** The parts of a synthetic event. The same input gives the same event. */
export interface SyntheticInput {
  readonly organizationId: string
  /** Identifies this test: a UUID. The event's id and all fictitious ids derive from it. */
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
