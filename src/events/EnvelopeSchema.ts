/**
 * The schema of every event (contract 6.1). Separate from the creation of envelopes, so that the API's contract and the
 * published schemas need no server code.
 */
import { Schema } from "effect"
import { envelopes } from "./Catalog.ts"

export { EventId, envelopeVersion, providerName, testProviderName } from "./EnvelopeStruct.ts"

/** An event as the consumer receives it; `type` determines `data`. */
export const Envelope = Schema.Union(...envelopes).annotations({
  identifier: "Event",
  description: "A signed event, told apart by its type"
})

/** See the schema of the same name. */
export type Envelope = typeof Envelope.Type
