import { OpenApi } from "@effect/platform"
import { Predicate, Schema } from "effect"
import { EventType } from "../../events/Catalog.ts"
import { DeliveryState } from "../../events/DeliveryState.ts"
import { EventTypeName, maxSubscriptions } from "../../events/EventCatalog.ts"
import { Filters, filtersJsonSchema } from "../../events/Filters.ts"
import { WorkspaceEnvironment } from "../../identity/Schemas.ts"
import { familiar, rule } from "../../platform/bounds/Rules.ts"
import { PrintableText, text } from "../../platform/bounds/Text.ts"
import {
  DestinationRejected,
  DestinationUnresolvable,
  EndpointLimitReached,
  EndpointPaused,
  EventTypeNotSubscribed,
  errorSchema,
  errorSchemas,
  IntegrationFilterInvalid,
  IntegrationFilterUnknown,
  ProviderAccountNotConnected,
  RateLimitExceeded,
  ResourceNotFound,
  TestEnvironmentRequired,
  TestRateLimitExceeded
} from "../../platform/errors/Errors.ts"
import { DeliveryId, EndpointId } from "../../platform/kit/Ids.ts"
import {
  CreatedAt,
  described,
  IdempotencyHeaders,
  listOf,
  mostCounted,
  optional,
  pageFields,
  strict,
  uniqueArray
} from "../../platform/kit/Request.ts"
import {
  EndpointPath,
  integrationDelete,
  integrationGet,
  integrationGroup,
  integrationPatch,
  integrationPost,
  keyErrors
} from "./Integrations.ts"

/** A destination's name: 1 to 100 characters, trimmed. */
const EndpointName = PrintableText(100).annotations({ description: "A name that you choose, 1 to 100 characters" })

/**
 * A destination's URL before its rules are checked, which have their own error codes (contract 5.2). If the service
 * allows local destinations, those may be `http`.
 */
const DestinationText = text({ min: 1, max: 2048 }).annotations({
  ...rule("must be a public https URL of 1 to 2048 characters, such as https://shop.example/events"),
  jsonSchema: { minLength: 1, maxLength: 2048, pattern: "^[hH][tT][tT][pP][sS]://[^\\s\\\\/?#@]+(?:/[^\\s\\\\?#]*)?$" }
})

const Subscriptions = uniqueArray(EventType, { min: 1, max: maxSubscriptions }).annotations({
  description: "Event types from the catalog, each once",
  jsonSchema: { uniqueItems: true }
})

/** Kept as parsed until checked key by key: a record would silently drop a key `__proto__`. */
const UnjudgedFilters = Schema.declare(Predicate.isReadonlyRecord).annotations({
  identifier: "FiltersInput",
  jsonSchema: filtersJsonSchema,
  arbitrary: () => (fc) => fc.dictionary(fc.string(), fc.anything())
})

/** A webhook destination as the API shows it. Only the answers to create and rotate have the signing secret. */
export const Endpoint = Schema.Struct({
  id: described(EndpointId, "The endpoint's UUID, as deliveries name it"),
  name: described(Schema.String, "A name that you choose, 1 to 100 characters"),
  url: described(Schema.String, "The public HTTPS URL that events are posted to; it never changes"),
  environment: WorkspaceEnvironment,
  events: described(Schema.Array(EventTypeName), "The event types that it receives"),
  filters: described(Filters, "Which events of those types it receives"),
  warnings: described(
    Schema.Array(Schema.String),
    "A sentence for each subscribed type that the filters never let through; empty if there is none"
  ),
  active: described(Schema.Boolean, "False while the endpoint is paused: events of that time are skipped"),
  createdAt: CreatedAt,
  updatedAt: described(Schema.Date, "When it was changed last: ISO 8601 in UTC, with milliseconds"),
  previousSecretExpiresAt: described(
    Schema.NullOr(Schema.Date),
    "Until when the previous secret still signs; null if there is none"
  )
}).annotations({ identifier: "Endpoint" })
export type Endpoint = typeof Endpoint.Type

/** The answer to create: the endpoint with its signing secret, shown only this once. */
export const CreatedEndpoint = Schema.Struct({
  ...Endpoint.fields,
  signingSecret: described(Schema.String, "`whsec_…`, shown only this once"),
  standardWebhooksSecret: described(
    Schema.String,
    "The same secret in the form that Standard Webhooks libraries take: `whsec_` and the base64 of `signingSecret`, shown only this once"
  )
}).annotations({ identifier: "CreatedEndpoint" })
export type CreatedEndpoint = typeof CreatedEndpoint.Type

/** The answer to rotate-secret: the endpoint with its new signing secret, shown only this once. */
export const RotatedEndpoint = Schema.Struct({
  ...CreatedEndpoint.fields,
  previousSecretExpiresAt: described(
    Schema.NullOr(Schema.Date),
    "Until when the previous secret also signs new events: 24 hours from now; null if it was lost with the key that encrypted it"
  )
}).annotations({ identifier: "RotatedEndpoint" })
export type RotatedEndpoint = typeof RotatedEndpoint.Type

export const EndpointList = Schema.Struct({
  data: described(
    Schema.Array(
      Schema.Struct({
        ...Endpoint.fields,
        recentFailures: described(
          Schema.Int,
          `Deliveries that failed definitively in the last 24 hours, not counting synthetic tests. Counted up to ${mostCounted}, which means that many or more`
        )
      }).annotations({ identifier: "ListedEndpoint" })
    ),
    "All endpoints, in the order of their creation"
  ),
  eventTypes: described(
    Schema.Array(
      Schema.Struct({
        type: described(EventTypeName, "The event type, as `events` of an endpoint takes it"),
        description: described(Schema.String, "When such an event is sent, in a sentence")
      }).annotations({ identifier: "EndpointListEventTypesItem" })
    ),
    "The event types that an endpoint may receive"
  )
}).annotations({ identifier: "EndpointList" })
export type EndpointList = typeof EndpointList.Type

export const CreateEndpoint = strict(
  Schema.Struct({
    name: EndpointName,
    url: described(
      DestinationText,
      "Public HTTPS URL on port 443, without credentials or query string; must resolve; can't be changed later"
    ),
    events: Subscriptions,
    filters: optional(UnjudgedFilters)
  }).annotations({ identifier: "CreateEndpoint" })
)
export type CreateEndpoint = typeof CreateEndpoint.Type

/** Body of PATCH: absent fields are unchanged. The URL never changes. */
export const UpdateEndpoint = strict(
  Schema.Struct({
    active: optional(
      Schema.Boolean,
      "False pauses the endpoint, so that events of that time are skipped; true activates it"
    ),
    name: optional(EndpointName),
    events: optional(Subscriptions),
    filters: optional(UnjudgedFilters)
  }).annotations({
    identifier: "UpdateEndpoint",
    ...familiar({ url: "an endpoint's URL never changes; create another endpoint, and delete this one" })
  })
)
export type UpdateEndpoint = typeof UpdateEndpoint.Type

export const SendTest = strict(
  Schema.Struct({
    type: described(EventType, "A type that the endpoint subscribes to")
  }).annotations({ identifier: "SendTest" })
)

export const QueuedTest = Schema.Struct({
  id: DeliveryId,
  eventId: described(Schema.String, "`svc_test_evt_…`"),
  state: described(DeliveryState, "Always `queued`: the test is sent as soon as a worker has room"),
  test: described(Schema.Literal(true), "Always true: it proves nothing about money"),
  warnings: described(
    Schema.Array(Schema.String),
    "A sentence if the endpoint's filters let no real event of this type through; else empty"
  )
}).annotations({ identifier: "QueuedTest" })

export const SkippedEvent = Schema.Struct({
  eventId: described(Schema.String, "The id of the event, as in its envelope: `svc_evt_…`"),
  type: EventTypeName,
  createdAt: described(Schema.Date, "When it was skipped"),
  event: described(Schema.Unknown, "The event envelope, as it would have been sent")
}).annotations({ identifier: "SkippedEvent" })
export type SkippedEvent = typeof SkippedEvent.Type

export const SkippedEventList = listOf("SkippedEventList", SkippedEvent)
export type SkippedEventList = typeof SkippedEventList.Type

export const SkippedCursor = text({
  min: 72,
  max: 72,
  pattern: /^svc_evt_[0-9a-f]{64}$/,
  rule: "must be an event's id: svc_evt_ and 64 hexadecimal digits"
}).annotations({
  description: "The last event id of the previous page"
})

export const ListSkipped = strict(Schema.Struct({ limit: pageFields.limit, starting_after: optional(SkippedCursor) }))
export type ListSkipped = typeof ListSkipped.Type

export class EndpointsApi extends integrationGroup("endpoints", "Endpoints that receive signed webhook events")
  .add(
    integrationGet("list", "/endpoints", "List endpoints and the event catalog")
      .addSuccess(EndpointList)
      .addError(errorSchema(RateLimitExceeded))
  )
  .add(
    integrationPost("create", "/endpoints", "Create an endpoint")
      .setHeaders(IdempotencyHeaders)
      .setPayload(CreateEndpoint)
      .addSuccess(CreatedEndpoint)
      .addError(
        errorSchemas(
          EndpointLimitReached,
          DestinationRejected,
          DestinationUnresolvable,
          IntegrationFilterUnknown,
          IntegrationFilterInvalid
        )
      )
      .addError(keyErrors)
  )
  .add(
    integrationGet("get", "/endpoints/:id", "Read an endpoint")
      .setPath(EndpointPath)
      .addSuccess(Endpoint)
      .addError(errorSchema(ResourceNotFound))
  )
  .add(
    integrationPatch("update", "/endpoints/:id", "Activate, pause, rename or resubscribe an endpoint")
      .setPath(EndpointPath)
      .setPayload(UpdateEndpoint)
      .addSuccess(Endpoint)
      .addError(errorSchemas(ResourceNotFound, IntegrationFilterUnknown, IntegrationFilterInvalid))
      .addError(keyErrors)
  )
  .add(
    integrationDelete("delete", "/endpoints/:id", "Delete an endpoint")
      .setPath(EndpointPath)
      .addError(errorSchema(ResourceNotFound))
      .addError(keyErrors)
      .annotate(
        OpenApi.Description,
        "Deletes the endpoint for good: its secrets are erased, waiting deliveries end as `failed` with `endpoint_deleted`, and it no longer counts towards the limit. An attempt that was about to be made may still begin within 5 seconds of the answer. Its deliveries and skipped events stay readable under its id."
      )
  )
  .add(
    integrationPost("rotateSecret", "/endpoints/:id/rotate-secret", "Issue a new signing secret")
      .setPath(EndpointPath)
      .addSuccess(RotatedEndpoint)
      .addError(errorSchema(ResourceNotFound))
      .addError(keyErrors)
      .annotate(
        OpenApi.Description,
        "For 24 hours new events carry two `v1` signatures, one with the new secret and one with the previous. Deliveries that are queued already keep the previous secret, for up to 72 hours; then it is erased. After several rotations within 24 hours, the newest two secrets sign new events. With an `Idempotency-Key`, a repeat after an uncertain answer does not rotate again."
      )
  )
  .add(
    integrationPost("test", "/endpoints/:id/test", "Send a synthetic event to an endpoint")
      .setPath(EndpointPath)
      .setHeaders(IdempotencyHeaders)
      .setPayload(SendTest)
      .addSuccess(QueuedTest)
      .addError(
        errorSchemas(
          ResourceNotFound,
          TestEnvironmentRequired,
          ProviderAccountNotConnected,
          EndpointPaused,
          EventTypeNotSubscribed,
          TestRateLimitExceeded
        )
      )
      .addError(keyErrors)
      .annotate(
        OpenApi.Description,
        "Only in the sandbox. The event has fictitious data and `test: true`; it is signed and sent like any other, whatever the endpoint's filters. At most 5 new ones per minute and endpoint; a repeat with the same `Idempotency-Key` and type is not a new one."
      )
  )
  .add(
    integrationGet(
      "skipped",
      "/endpoints/:id/skipped",
      "List events that an endpoint missed while it was paused, newest first"
    )
      .setPath(EndpointPath)
      .setUrlParams(ListSkipped)
      .addSuccess(SkippedEventList)
      .addError(errorSchema(ResourceNotFound))
  ) {}
