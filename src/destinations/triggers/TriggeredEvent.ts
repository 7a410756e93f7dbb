import { Schema } from "effect"
import { EventType } from "../../events/Catalog.ts"

export const TriggeredEvent = Schema.Struct({
  type: EventType,
  origin: Schema.Literal("provider", "synthetic").annotations({
    identifier: "TriggeredEventOrigin",
    description:
      "`provider`: the local provider caused the event, which follows like any other. `synthetic`: the event has fictitious data and `test: true`"
  }),
  eventId: Schema.NullOr(Schema.String).annotations({
    description: "`svc_test_evt_…` of a synthetic event; null if the event is still to come from the provider"
  })
}).annotations({ identifier: "TriggeredEvent" })
export type TriggeredEvent = typeof TriggeredEvent.Type
