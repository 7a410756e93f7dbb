import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "@effect/platform"
import { Schema } from "effect"
import {
  errorSchema,
  IdempotencyKeyReused,
  IdempotencyRequestInProgress,
  ProviderAccountNotConnected,
  ServiceUnavailable,
  TestEnvironmentRequired
} from "../../errors/Errors.ts"
import { EventType } from "../../events/Catalog.ts"
import { Authentication } from "../../identity/Authentication.ts"
import { RequiredPermission } from "../../identity/keys/Permissions.ts"
import { described, IdempotencyHeaders, NoQuery, OrganizationPath, strict } from "../../kit/Request.ts"
import { TriggeredEvent } from "./TriggeredEvent.ts"

export const TriggerEvent = strict(
  Schema.Struct({ type: described(EventType, "The event to make happen") }).annotations({
    identifier: "TriggerEvent"
  })
)
export type TriggerEvent = typeof TriggerEvent.Type

/** Makes events happen in the sandbox (contract 15.4). */
export class EventTriggersApi extends HttpApiGroup.make("eventTriggers")
  .add(
    HttpApiEndpoint.post("create", "/event-triggers")
      .setPath(OrganizationPath)
      .setUrlParams(NoQuery)
      .setHeaders(IdempotencyHeaders)
      .setPayload(TriggerEvent)
      .addSuccess(TriggeredEvent)
      .addError(errorSchema(TestEnvironmentRequired))
      .addError(errorSchema(ProviderAccountNotConnected))
      .addError(errorSchema(IdempotencyKeyReused))
      .addError(errorSchema(IdempotencyRequestInProgress))
      .annotate(RequiredPermission, "webhook-endpoints:write")
      .annotate(OpenApi.Summary, "Make an event happen in the sandbox")
      .annotate(
        OpenApi.Description,
        "If the service runs against the local provider, that provider does what causes the event, for instance a payment; the event then comes on the stream and at the endpoints, like any other. Otherwise a synthetic event, with fictitious data and `test: true`, comes on the stream alone: endpoints are tested with `POST /endpoints/{id}/test`. Only in the sandbox."
      )
  )
  .addError(errorSchema(ServiceUnavailable))
  .middleware(Authentication)
  .prefix("/v2/organizations/:organizationId/integrations")
  .annotate(OpenApi.Description, "Events on request, for developing") {}
