import { OpenApi } from "@effect/platform"
import { Schema } from "effect"
import { Uuid } from "../../platform/bounds/Text.ts"
import {
  errorSchema,
  errorSchemas,
  OrganizationAccessDenied,
  OrganizationAlreadyExists,
  OrganizationNotEmpty,
  PermissionDenied,
  ServiceUnavailable
} from "../../platform/errors/Errors.ts"
import { OrganizationId } from "../../platform/kit/Ids.ts"
import { described, strict, withStatus } from "../../platform/kit/Request.ts"
import { WorkspaceEnvironment } from "../Schemas.ts"
import { sessionDelete, sessionGroup, sessionPatch, sessionPost } from "../SessionEndpoints.ts"
import { OrganizationName, OrganizationNameShown, organizationNameRule } from "./OrganizationName.ts"

export const CreateOrganization = strict(
  Schema.Struct({ name: described(OrganizationName, organizationNameRule) }).annotations({
    identifier: "CreateOrganization"
  })
)

export const CreatedOrganization = Schema.Struct({
  id: OrganizationId,
  name: OrganizationNameShown,
  workspaces: described(
    Schema.Array(Schema.Struct({ environment: WorkspaceEnvironment })),
    "An entry for each environment; both always exist"
  )
}).annotations({ identifier: "CreatedOrganization" })

export const RenameOrganization = strict(
  Schema.Struct({ name: described(OrganizationName, organizationNameRule) }).annotations({
    identifier: "RenameOrganization"
  })
)

export const RenamedOrganization = Schema.Struct({ id: OrganizationId, name: OrganizationNameShown }).annotations({
  identifier: "RenamedOrganization"
})

const OrganizationPath = Schema.Struct({
  organizationId: described(
    Uuid,
    "The organization's id (UUID): it must be the signed-in person's, so that no other is changed by mistake"
  )
})

export class OrganizationsApi extends sessionGroup(
  "organizations",
  "Organizations of signed-in people",
  errorSchema(ServiceUnavailable)
)
  .add(
    sessionPost("create", "/identity/organizations", "Create an organization, with both of its workspaces")
      .setPayload(CreateOrganization)
      .addSuccess(withStatus(201, CreatedOrganization))
      .addError(errorSchema(OrganizationAlreadyExists))
      .annotate(OpenApi.Description, "The signed-in person becomes its owner. A person has one organization.")
  )
  .add(
    sessionPatch("rename", "/identity/organizations/:organizationId", "Rename your organization")
      .setPath(OrganizationPath)
      .setPayload(RenameOrganization)
      .addSuccess(RenamedOrganization)
      .addError(errorSchemas(OrganizationAccessDenied, PermissionDenied))
      .annotate(OpenApi.Description, "Owners only.")
  )
  .add(
    sessionDelete("close", "/identity/organizations/:organizationId", "Close your organization")
      .setPath(OrganizationPath)
      .addError(errorSchemas(OrganizationAccessDenied, OrganizationNotEmpty, PermissionDenied))
      .annotate(
        OpenApi.Description,
        "Owners only. Its accounts must be disconnected, its destinations and checkout pages deleted, and its other members removed. All of its API keys and invitations are revoked, and its accounts can be connected elsewhere. The person can then create or join another organization; this one can't be opened again, except by the operator. A person may try this at most 20 times in a day. To hand an organization over instead, make another member an owner, and leave."
      )
  ) {}
