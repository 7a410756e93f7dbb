import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "@effect/platform"
import { Schema } from "effect"
import {
  DestinationRejected,
  DestinationUnresolvable,
  EndpointLimitReached,
  errorSchema,
  IdempotencyKeyReused,
  IdempotencyRequestInProgress,
  IntegrationFilterInvalid,
  IntegrationFilterUnknown,
  ResourceNotFound,
  ServiceUnavailable
} from "../Errors.ts"
import { EventType } from "../events/Catalog.ts"
import { Filters } from "../events/Filters.ts"
import { Authentication } from "../identity/Authentication.ts"
import { RequiredPermission } from "../identity/Permissions.ts"
import { EndpointId, OrganizationId } from "../kit/Ids.ts"
import { IdempotencyHeaders, NoQuery, OrganizationPath, optional, PrintableText, strict } from "../kit/Request.ts"

/** A destination's name: 1 to 100 characters, trimmed. */
const EndpointName = PrintableText(100)

/** The subscribed types: 1 to 19, each once. */
const Subscriptions = Schema.Array(EventType)
  .pipe(
    Schema.minItems(1),
    Schema.maxItems(19),
    Schema.filter((types) => new Set(types).size === types.length || "each type once")
  )
  .annotations({ description: "Event types from the catalog, each once" })

/** Filters before they are judged key by key: their errors have codes of their own (contract, Filters). */
const UnjudgedFilters = Schema.Record({ key: Schema.String, value: Schema.Unknown }).annotations({
  description:
    "`currencies`, `amountMin`, `amountMax`, `products`, `prices`, `metadata`; `{}` delivers all subscribed events"
})

/** A webhook destination as the API shows it. The signing secret is in the answers to create and rotate alone. */
export const Endpoint = Schema.Struct({
  id: EndpointId,
  name: Schema.String,
  url: Schema.String,
  environment: Schema.Literal("sandbox", "production"),
  events: Schema.Array(EventType),
  filters: Filters,
  active: Schema.Boolean,
  createdAt: Schema.Date,
  updatedAt: Schema.Date,
  previousSecretExpiresAt: Schema.NullOr(Schema.Date).annotations({
    description: "Until when the secret before the last rotation still signs; null without one"
  })
}).annotations({ identifier: "Endpoint" })
export type Endpoint = typeof Endpoint.Type

/** The answer to create: the endpoint with its signing secret, shown this once. */
export const CreatedEndpoint = Schema.Struct({
  ...Endpoint.fields,
  signingSecret: Schema.String.annotations({ description: "`whsec_…`, shown this once" })
}).annotations({ identifier: "CreatedEndpoint" })
export type CreatedEndpoint = typeof CreatedEndpoint.Type

/** The answer to list. */
export const EndpointList = Schema.Struct({
  data: Schema.Array(
    Schema.Struct({
      ...Endpoint.fields,
      recentFailures: Schema.Int.annotations({
        description: "Deliveries that failed definitively in the last 24 hours, without synthetic tests"
      })
    }).annotations({ identifier: "ListedEndpoint" })
  ),
  eventTypes: Schema.Array(Schema.Struct({ type: EventType, description: Schema.String }))
}).annotations({ identifier: "EndpointList" })
export type EndpointList = typeof EndpointList.Type

/** Body of create. */
export const CreateEndpoint = strict(
  Schema.Struct({
    name: EndpointName,
    url: Schema.String.pipe(Schema.minLength(1), Schema.maxLength(2048)).annotations({
      description: "Public HTTPS URL on port 443, without credentials or query string; can't be changed later"
    }),
    events: Subscriptions,
    filters: optional(UnjudgedFilters)
  }).annotations({ identifier: "CreateEndpoint" })
)
export type CreateEndpoint = typeof CreateEndpoint.Type

/** Body of PATCH: what is absent stays. The URL never changes. */
export const UpdateEndpoint = strict(
  Schema.Struct({
    active: optional(Schema.Boolean),
    name: optional(EndpointName),
    events: optional(Subscriptions),
    filters: optional(UnjudgedFilters)
  }).annotations({ identifier: "UpdateEndpoint" })
)
export type UpdateEndpoint = typeof UpdateEndpoint.Type

const EndpointPath = Schema.Struct({ organizationId: OrganizationId, id: EndpointId })

/** Webhook destinations (contract, Webhook management). */
export class EndpointsApi extends HttpApiGroup.make("endpoints")
  .add(
    HttpApiEndpoint.get("list", "/endpoints")
      .setPath(OrganizationPath)
      .setUrlParams(NoQuery)
      .addSuccess(EndpointList)
      .annotate(RequiredPermission, "webhook-endpoints:read")
      .annotate(OpenApi.Summary, "List endpoints and the event catalog")
  )
  .add(
    HttpApiEndpoint.post("create", "/endpoints")
      .setPath(OrganizationPath)
      .setUrlParams(NoQuery)
      .setHeaders(IdempotencyHeaders)
      .setPayload(CreateEndpoint)
      .addSuccess(CreatedEndpoint)
      .addError(errorSchema(EndpointLimitReached))
      .addError(errorSchema(DestinationRejected))
      .addError(errorSchema(DestinationUnresolvable))
      .addError(errorSchema(IntegrationFilterUnknown))
      .addError(errorSchema(IntegrationFilterInvalid))
      .addError(errorSchema(IdempotencyKeyReused))
      .addError(errorSchema(IdempotencyRequestInProgress))
      .annotate(RequiredPermission, "webhook-endpoints:write")
      .annotate(OpenApi.Summary, "Create an endpoint")
  )
  .add(
    HttpApiEndpoint.get("get", "/endpoints/:id")
      .setPath(EndpointPath)
      .setUrlParams(NoQuery)
      .addSuccess(Endpoint)
      .addError(errorSchema(ResourceNotFound))
      .annotate(RequiredPermission, "webhook-endpoints:read")
      .annotate(OpenApi.Summary, "Read an endpoint")
  )
  .add(
    HttpApiEndpoint.patch("update", "/endpoints/:id")
      .setPath(EndpointPath)
      .setUrlParams(NoQuery)
      .setPayload(UpdateEndpoint)
      .addSuccess(Endpoint)
      .addError(errorSchema(ResourceNotFound))
      .addError(errorSchema(IntegrationFilterUnknown))
      .addError(errorSchema(IntegrationFilterInvalid))
      .annotate(RequiredPermission, "webhook-endpoints:write")
      .annotate(OpenApi.Summary, "Activate, pause, rename or resubscribe an endpoint")
  )
  .addError(errorSchema(ServiceUnavailable))
  .middleware(Authentication)
  .prefix("/v2/organizations/:organizationId/integrations")
  .annotate(OpenApi.Description, "Destinations of signed webhook events") {}
