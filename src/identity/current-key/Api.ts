import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "@effect/platform"
import { Schema } from "effect"
import { OrganizationId } from "../../platform/kit/Ids.ts"
import { described, NoQuery } from "../../platform/kit/Request.ts"
import { KeyAuthentication } from "../Authentication.ts"
import { OwnPermission, Permission } from "../keys/Permissions.ts"
import { WorkspaceEnvironment } from "../Schemas.ts"

export const CurrentKey = Schema.Struct({
  id: described(Schema.UUID, "The key's id, as the audit log names it"),
  organizationId: OrganizationId,
  environment: WorkspaceEnvironment,
  permissions: described(Schema.Array(Schema.Union(Permission, OwnPermission)), "With `*` and other wildcards expanded")
}).annotations({ identifier: "CurrentKey" })

/** The key of the request: a program that has nothing else learns its organization here. */
export class CurrentKeyApi extends HttpApiGroup.make("currentKey")
  .add(
    HttpApiEndpoint.get("get", "/identity/api-key")
      .setUrlParams(NoQuery)
      .addSuccess(CurrentKey)
      .annotate(OpenApi.Summary, "Read what the request's own key is: its organization, environment and permissions")
  )
  .middleware(KeyAuthentication)
  .annotate(OpenApi.Description, "The request's own API key") {}
