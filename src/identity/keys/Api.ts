import { OpenApi } from "@effect/platform"
import { Schema } from "effect"
import { PrintableText, Uuid } from "../../platform/bounds/Text.ts"
import {
  ApiKeyLimitReached,
  errorSchema,
  errorSchemas,
  OrganizationAccessDenied,
  PermissionDenied,
  ResourceNotFound,
  ServiceUnavailable,
  WorkspaceAccessRequired
} from "../../platform/errors/Errors.ts"
import { Instant } from "../../platform/kit/Instant.ts"
import { CreatedAt, described, optional, strict, uniqueArray, withStatus } from "../../platform/kit/Request.ts"
import { CreatedBy, WorkspaceEnvironment } from "../Schemas.ts"
import { sessionDelete, sessionGet, sessionGroup, sessionPost } from "../SessionEndpoints.ts"
import { Grant, grants, OwnPermission } from "./Permissions.ts"

/** An API key as it is shown: never the key itself (contract 2.1). */
export const ApiKey = Schema.Struct({
  id: described(Schema.UUID, "The id that paths and the audit log name it by"),
  name: described(Schema.String, "The name that its creator chose"),
  environment: WorkspaceEnvironment,
  prefix: Schema.String.annotations({
    description: "The beginning of the key, which says its environment: `pk_test_` or `pk_live_`",
    examples: ["pk_test_"]
  }),
  lastFour: described(Schema.String, "The last four characters of the key, to recognize it by"),
  permissions: described(Schema.Array(Schema.Union(Grant, OwnPermission)), "What the key may do"),
  createdAt: CreatedAt,
  createdBy: CreatedBy,
  expiresAt: described(Schema.NullOr(Schema.Date), "When it expires, in ISO 8601; null if it does not"),
  lastUsedAt: described(Schema.NullOr(Schema.Date), "To the minute; null if it was never used")
}).annotations({ identifier: "ApiKey" })

/** The answer to create: the record with the key, shown only this once. */
export const CreatedApiKey = Schema.Struct({
  ...ApiKey.fields,
  key: described(Schema.String, "`pk_test_…` or `pk_live_…`, shown only this once")
}).annotations({ identifier: "CreatedApiKey" })

export const ApiKeyList = Schema.Struct({ data: described(Schema.Array(ApiKey), "The newest first") }).annotations({
  identifier: "ApiKeyList"
})

export const CreateApiKey = strict(
  Schema.Struct({
    name: described(PrintableText(100), "A name that you choose, 1 to 100 characters"),
    permissions: described(uniqueArray(Grant, { min: 1, max: grants.length }), "What the key may do"),
    mode: optional(
      Schema.Literal("test", "live").annotations({ identifier: "CreateApiKeyMode" }),
      "Default test: production needs an explicit live"
    ),
    expiresAt: optional(Instant, "In the future; if absent, the key does not expire")
  }).annotations({ identifier: "CreateApiKey" })
)

const KeyPath = Schema.Struct({ id: Uuid.annotations({ description: "The key's id (UUID)" }) })

export class KeysApi extends sessionGroup(
  "apiKeys",
  "API keys of the organization",
  errorSchemas(PermissionDenied, WorkspaceAccessRequired, OrganizationAccessDenied, ServiceUnavailable)
)
  .add(
    sessionPost("create", "/identity/api-keys", "Create an API key, shown only this once")
      .setPayload(CreateApiKey)
      .addSuccess(withStatus(201, CreatedApiKey))
      .addError(errorSchema(ApiKeyLimitReached))
      .annotate(
        OpenApi.Description,
        "A test key unless `mode` is `live`. Its creator must be allowed into the workspace of its environment, and it carries no more than they may do: only owners and admins give `audit-log:read` and `customers:read`. It is revoked when its creator is removed or may no longer give it, unless `keep_keys` says otherwise. An organization has at most 100 keys that were not revoked."
      )
  )
  .add(
    sessionGet("list", "/identity/api-keys", "List the selected environment's keys, newest first").addSuccess(
      ApiKeyList
    )
  )
  .add(
    sessionDelete("revoke", "/identity/api-keys/:id", "Revoke a key of the selected environment")
      .setPath(KeyPath)
      .addError(errorSchema(ResourceNotFound))
      .annotate(OpenApi.Description, "From then on, requests with the key are refused.")
  ) {}
