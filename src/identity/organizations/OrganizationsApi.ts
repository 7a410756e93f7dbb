import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "@effect/platform"
import { Schema } from "effect"
import { errorSchema, OrganizationAlreadyExists, ServiceUnavailable } from "../../errors/Errors.ts"
import { OrganizationId } from "../../kit/Ids.ts"
import { NoQuery, strict } from "../../kit/Request.ts"
import { SessionAuthentication } from "../Authentication.ts"
import { WorkspaceEnvironment } from "../Schemas.ts"
import { bySession } from "../sign-in/SessionApi.ts"
import { OrganizationName, organizationNameRule } from "./OrganizationName.ts"

/** Body of `POST /identity/organizations`. */
export const CreateOrganization = strict(
  Schema.Struct({ name: OrganizationName.annotations({ description: organizationNameRule }) }).annotations({
    identifier: "CreateOrganization"
  })
)

/** A new organization with its workspaces. */
export const CreatedOrganization = Schema.Struct({
  id: OrganizationId,
  name: Schema.String,
  workspaces: Schema.Array(Schema.Struct({ environment: WorkspaceEnvironment }))
}).annotations({ identifier: "CreatedOrganization" })

/** Creation of organizations (contract 14.3). */
export class OrganizationsApi extends HttpApiGroup.make("organizations")
  .add(
    HttpApiEndpoint.post("create", "/identity/organizations")
      .setUrlParams(NoQuery)
      .setPayload(CreateOrganization)
      .addSuccess(CreatedOrganization, { status: 201 })
      .addError(errorSchema(OrganizationAlreadyExists))
      .annotate(OpenApi.Summary, "Create an organization, with both of its workspaces")
      .annotate(OpenApi.Description, "The signed-in person becomes its owner. A person has one organization.")
  )
  .addError(errorSchema(ServiceUnavailable))
  .middleware(SessionAuthentication)
  .annotateEndpoints(OpenApi.Override, bySession)
  .annotate(OpenApi.Description, "Organizations of signed-in people") {}
