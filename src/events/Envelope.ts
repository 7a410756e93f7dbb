/** The envelope in which every event reaches the consumer (contract 6.1). */
import { hash } from "node:crypto"
import type { Environment } from "../platform/kit/Environment.ts"
import type { Envelope, EventData, EventType } from "./Catalog.ts"
import { type EnvelopeWith, envelopeVersion, testProviderName } from "./EventDefinition.ts"

export { Envelope } from "./Catalog.ts"
export { EventId, envelopeVersion, sourceForm, stripeName, testProviderName } from "./EventDefinition.ts"

/** The last second that `created_at` can name with a four-digit year: 9999-12-31T23:59:59Z. */
export const maxUnixSeconds = 253_402_300_799

export type EnvelopeOf<T extends EventType> = EnvelopeWith<T, EventData<T>>

/** The parts that identify an event: one provider event causes at most one event of each type per environment. */
export interface EventIdentity {
  /** Its name, which is the event's `source.provider`. */
  readonly provider: string
  readonly environment: Environment
  readonly providerEventId: string
  readonly type: EventType
}

/**
 * The event's id: `svc_evt_` and the SHA-256 in hex of environment, provider, provider event id and type, joined by
 * newlines. None of the four can contain a newline (the provider event id is checked on arrival), so no two identities
 * give the same text.
 */
export const eventId = ({ environment, provider, providerEventId, type }: EventIdentity): string => {
  const identity = [environment, provider, providerEventId, type].join("\n")
  return `svc_evt_${hash("sha256", identity, "hex")}`
}

export interface EnvelopeInput<T extends EventType> extends EventIdentity {
  readonly organizationId: string
  /** The provider event's own creation time, in whole Unix seconds, 0 to `maxUnixSeconds`. */
  readonly created: number
  readonly type: T
  readonly data: EventData<T>
}

/** The envelope of an event that a provider event caused. The same input always gives the same envelope. */
export const makeEnvelope = <T extends EventType>(input: EnvelopeInput<T>): EnvelopeOf<T> => ({
  id: eventId(input),
  type: input.type,
  version: envelopeVersion,
  created_at: new Date(input.created * 1000).toISOString(),
  livemode: input.environment === "production",
  organization_id: input.organizationId,
  source: { provider: input.provider, event_id: input.providerEventId },
  data: input.data
})

export interface TestEnvelopeInput<T extends string, Data> {
  readonly organizationId: string
  /** Identifies this test: letters, digits, `_` and `-`, e.g. a UUID. */
  readonly testId: string
  readonly createdAt: Date
  readonly type: T
  readonly data: Data
}

export const makeTestEnvelope = <T extends string, Data>(input: TestEnvelopeInput<T, Data>): EnvelopeWith<T, Data> => {
  const id = `svc_test_evt_${input.testId}`
  return {
    id,
    type: input.type,
    version: envelopeVersion,
    created_at: input.createdAt.toISOString(),
    livemode: false,
    organization_id: input.organizationId,
    source: { provider: testProviderName, event_id: id },
    data: input.data,
    test: true
  }
}

/** Created once and stored: the bytes of a delivery never change between attempts. */
export const encodeEnvelope = (envelope: Envelope): string =>
  JSON.stringify({
    id: envelope.id,
    type: envelope.type,
    version: envelope.version,
    created_at: envelope.created_at,
    livemode: envelope.livemode,
    organization_id: envelope.organization_id,
    source: { provider: envelope.source.provider, event_id: envelope.source.event_id },
    data: envelope.data,
    ...(envelope.test === true ? { test: true } : {})
  })
