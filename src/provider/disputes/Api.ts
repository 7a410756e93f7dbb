import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "@effect/platform"
import { Schema } from "effect"
import { Authentication } from "../../identity/Authentication.ts"
import { RequiredPermission } from "../../identity/keys/Permissions.ts"
import { NoQuery, OrganizationPath, ProviderObjectPath, pageFields, strict } from "../../kit/Request.ts"
import { providerErrors } from "../ProviderErrors.ts"
import { createdFields, ofPaymentFields, ProviderObject, ProviderPage } from "../Schemas.ts"

/** Query of `GET P/disputes`. */
export const ListDisputes = strict(Schema.Struct({ ...pageFields, ...createdFields, ...ofPaymentFields }))
export type ListDisputes = typeof ListDisputes.Type

const withoutEvidence =
  "Without the `evidence`, which can name the payer, unless the credential also has the permission `customers:read`."

/** Disputes on the organization's connected account. */
export class DisputesApi extends HttpApiGroup.make("disputes")
  .add(
    HttpApiEndpoint.get("list", "/disputes")
      .setPath(OrganizationPath)
      .setUrlParams(ListDisputes)
      .addSuccess(ProviderPage)
      .annotate(RequiredPermission, "payments:read")
      .annotate(OpenApi.Summary, "List disputes")
      .annotate(OpenApi.Description, withoutEvidence)
  )
  .add(
    HttpApiEndpoint.get("get", "/disputes/:id")
      .setPath(ProviderObjectPath)
      .setUrlParams(NoQuery)
      .addSuccess(ProviderObject)
      .annotate(RequiredPermission, "payments:read")
      .annotate(OpenApi.Summary, "Read a dispute")
      .annotate(OpenApi.Description, withoutEvidence)
  )
  .addError(providerErrors)
  .middleware(Authentication)
  .prefix("/v2/organizations/:organizationId/provider")
  .annotate(OpenApi.Description, "Disputes of payments on the organization's connected account") {}
