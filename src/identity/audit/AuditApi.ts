import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "@effect/platform"
import { Schema } from "effect"
import { Uuid } from "../../bounds/Text.ts"
import { errorSchema, ServiceUnavailable } from "../../errors/Errors.ts"
import { OrganizationPath, optional, pageFields, strict } from "../../kit/Request.ts"
import { Authentication } from "../Authentication.ts"
import { RequiredPermission } from "../keys/Permissions.ts"
import { AuthorShown } from "../Schemas.ts"

/** A recorded change: who, what, which object, when, in which request. */
export const AuditRecord = Schema.Struct({
  id: Schema.UUID,
  environment: Schema.NullOr(Schema.Literal("sandbox", "production")).annotations({
    description: "Null if the change concerns the organization as a whole"
  }),
  author: AuthorShown,
  action: Schema.String.annotations({ examples: ["endpoint.created"] }),
  target: Schema.Struct({ type: Schema.String, id: Schema.String }),
  requestId: Schema.String,
  at: Schema.Date
}).annotations({ identifier: "AuditRecord" })
export type AuditRecord = typeof AuditRecord.Type

export const AuditPage = Schema.Struct({ data: Schema.Array(AuditRecord), has_more: Schema.Boolean }).annotations({
  identifier: "AuditPage"
})
export type AuditPage = typeof AuditPage.Type

export const ListAudit = strict(
  Schema.Struct({
    limit: pageFields.limit,
    starting_after: optional(Uuid.annotations({ description: "The last id of the previous page" }))
  })
)
export type ListAudit = typeof ListAudit.Type

/** The audit log (contract 2.13). */
export class AuditApi extends HttpApiGroup.make("audit")
  .add(
    HttpApiEndpoint.get("list", "/audit-log")
      .setPath(OrganizationPath)
      .setUrlParams(ListAudit)
      .addSuccess(AuditPage)
      .addError(errorSchema(ServiceUnavailable))
      .annotate(RequiredPermission, "audit-log:read")
      .annotate(OpenApi.Summary, "List recorded changes, newest first")
      .annotate(
        OpenApi.Description,
        "Changes in the credential's environment and those of the organization as a whole. Owners and admins may read it, and so may keys to which one of them has granted `audit-log:read`; no wildcard includes it."
      )
  )
  .middleware(Authentication)
  .prefix("/v2/organizations/:organizationId/integrations")
  .annotate(OpenApi.Description, "Who changed what, and when") {}
