import { OpenApi } from "@effect/platform"
import { Schema } from "effect"
import { EventType } from "../../events/Catalog.ts"
import { errorSchemas, ProviderAccountNotConnected, TestEnvironmentRequired } from "../../platform/errors/Errors.ts"
import { described, IdempotencyHeaders, strict } from "../../platform/kit/Request.ts"
import { integrationGroup, integrationPost, keyErrors } from "../endpoints/Integrations.ts"
import { TriggeredEvent } from "./TriggeredEvent.ts"

export const TriggerEvent = strict(
  Schema.Struct({ type: described(EventType, "The event to make happen") }).annotations({
    identifier: "TriggerEvent"
  })
)
export type TriggerEvent = typeof TriggerEvent.Type

/** Makes events happen in the sandbox (contract 15.4). */
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
