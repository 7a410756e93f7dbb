import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "@effect/platform"
import { Schema } from "effect"
import { text, Uuid, withoutControls } from "../../platform/bounds/Text.ts"
import { errorSchemas, RateLimitExceeded, ServiceUnavailable } from "../../platform/errors/Errors.ts"
import {
  createdFields,
  described,
  listOf,
  OrganizationPath,
  optional,
  pageFields,
  strict
} from "../../platform/kit/Request.ts"
import { Authentication } from "../Authentication.ts"
import { RequiredPermission } from "../keys/Permissions.ts"
import { AuthorShown, WorkspaceEnvironment } from "../Schemas.ts"

/** A recorded change: who, what, which object, when, in which request. */
export const AuditRecord = Schema.Struct({
  id: described(Schema.UUID, "The record's id, by which the next page starts"),
  environment: described(
    Schema.NullOr(WorkspaceEnvironment),
    "Null if the change concerns the organization as a whole"
  ),
  author: described(AuthorShown, "The key, person or operator that made the change"),
  action: Schema.String.annotations({
    description: "The action, such as `endpoint.created`",
    examples: ["endpoint.created"]
  }),
  target: described(
    Schema.Struct({
      type: described(Schema.String, "The kind of what was changed, such as `endpoint` or `api_key`"),
      id: described(Schema.String, "The id of the object that was changed")
    }).annotations({ identifier: "AuditRecordTarget" }),
    "The object that was changed"
  ),
  requestId: described(Schema.String, "The id of the request that made the change, from its `request-id` header"),
  at: described(Schema.Date, "When it was done, in ISO 8601")
}).annotations({ identifier: "AuditRecord" })
export type AuditRecord = typeof AuditRecord.Type

export const AuditPage = listOf("AuditPage", AuditRecord)

/** A name that the service defines: `endpoint`, `endpoint.created`. */
const OwnName = text({
  min: 1,
  max: 64,
  pattern: /^[a-z_]+(?:\.[a-z_]+)?$/,
  rule: "must be lower-case words, such as endpoint.created"
})

const AnyId = text({
  min: 1,
  max: 255,
  pattern: withoutControls,
  rule: "must be 1 to 255 characters, without control characters"
})

export const ListAudit = strict(
  Schema.Struct({
    limit: pageFields.limit,
    starting_after: optional(Uuid, "The last id of the previous page"),
    action: optional(
      OwnName.annotations({
        description: "Only this action, such as `endpoint.created`",
        examples: ["endpoint.created"]
      })
    ),
    author_id: optional(AnyId, "Only changes by this person, key or operator"),
    target_type: optional(
      OwnName.annotations({ description: "Only changes of this kind of object", examples: ["endpoint"] })
    ),
    target_id: optional(AnyId, "Only changes of this object"),
    ...createdFields
  })
)
export type ListAudit = typeof ListAudit.Type

export class AuditApi extends HttpApiGroup.make("audit")
  .add(
    HttpApiEndpoint.get("list", "/audit-log")
      .setPath(OrganizationPath)
      .setUrlParams(ListAudit)
      .addSuccess(AuditPage)
      .addError(errorSchemas(RateLimitExceeded, ServiceUnavailable))
      .annotate(RequiredPermission, "audit-log:read")
      .annotate(OpenApi.Summary, "List recorded changes, newest first")
      .annotate(
        OpenApi.Description,
        "Changes in the credential's environment and those of the organization as a whole. Owners and admins may read it, and so may keys to which one of them has granted `audit-log:read`; no wildcard includes it. A search by anything but time takes at most 3 seconds: if little of a long log matches, the answer is 503 `service_unavailable`; give the time."
      )
  )
  .middleware(Authentication)
  .prefix("/v2/organizations/:organizationId/integrations")
  .annotate(OpenApi.Description, "Who changed what, and when") {}
