import { OpenApi } from "@effect/platform"
import { Schema } from "effect"
import { EventType } from "../../events/Catalog.ts"
import { errorSchemas, ProviderAccountNotConnected, TestEnvironmentRequired } from "../../platform/errors/Errors.ts"
import { described, IdempotencyHeaders, strict } from "../../platform/kit/Request.ts"
import { integrationGroup, integrationPost, keyErrors } from "../endpoints/Integrations.ts"

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

export const TriggerEvent = strict(
  Schema.Struct({ type: described(EventType, "The event to make happen") }).annotations({
    identifier: "TriggerEvent"
  })
)

export class EventTriggersApi extends integrationGroup("eventTriggers", "Events on request, for development").add(
  integrationPost("create", "/event-triggers", "Make an event happen in the sandbox")
    .setHeaders(IdempotencyHeaders)
    .setPayload(TriggerEvent)
    .addSuccess(TriggeredEvent)
    .addError(errorSchemas(TestEnvironmentRequired, ProviderAccountNotConnected))
    .addError(keyErrors)
    .annotate(
      OpenApi.Description,
      "If the service runs against the local provider, that provider causes the event, for instance by a payment; the event is then sent to streams and endpoints, like any other. Otherwise a synthetic event, with fictitious data and `test: true`, is sent to streams only; test endpoints with `POST /endpoints/{id}/test`. Only in the sandbox."
    )
) {}
