/** An example event of every type, for documents. Pure, without server code: the contract's documents use it. */
import { type Envelope, type EventType, fictitious } from "./Catalog.ts"
import { envelopeVersion, stripeName } from "./EventDefinition.ts"

export const secondsPerDay = 86_400

const exampleCreated = 1_760_000_000

/** An example event of a type, as in the sandbox: always the same, with fictitious ids. */
export const exampleEvent = (type: EventType): Envelope =>
  fictitious[type](
    (type, data) => ({
      id: `svc_evt_${"0123456789abcdef".repeat(4)}`,
      type,
      version: envelopeVersion,
      created_at: new Date(exampleCreated * 1000).toISOString(),
      livemode: false,
      organization_id: "0199c0de-0000-7000-8000-000000000001",
      source: { provider: stripeName, event_id: "evt_1ExampleEvent" },
      data
    }),
    { id: (prefix) => `${prefix}_1Example`, inDays: (days) => exampleCreated + days * secondsPerDay }
  )
