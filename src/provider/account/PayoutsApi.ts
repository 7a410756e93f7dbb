import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "@effect/platform"
import { Schema } from "effect"
import { Authentication } from "../../identity/Authentication.ts"
import { RequiredPermission } from "../../identity/keys/Permissions.ts"
import { NoQuery, OrganizationPath, optional, ProviderObjectPath, pageFields, strict } from "../../kit/Request.ts"
import { providerErrors } from "../ProviderErrors.ts"
import { createdFields, ProviderObject, ProviderPage } from "../Schemas.ts"

/** Query of `GET P/payouts`. */
export const ListPayouts = strict(
  Schema.Struct({
    ...pageFields,
    ...createdFields,
    status: optional(Schema.Literal("pending", "paid", "failed", "canceled"))
  })
)
export type ListPayouts = typeof ListPayouts.Type

/** Payouts of the organization's connected account. */
export class PayoutsApi extends HttpApiGroup.make("payouts")
  .add(
    HttpApiEndpoint.get("list", "/payouts")
      .setPath(OrganizationPath)
      .setUrlParams(ListPayouts)
      .addSuccess(ProviderPage)
      .annotate(RequiredPermission, "payment-account:read")
      .annotate(OpenApi.Summary, "List payouts")
  )
  .add(
    HttpApiEndpoint.get("get", "/payouts/:id")
      .setPath(ProviderObjectPath)
      .setUrlParams(NoQuery)
      .addSuccess(ProviderObject)
      .annotate(RequiredPermission, "payment-account:read")
      .annotate(OpenApi.Summary, "Read a payout")
  )
  .addError(providerErrors)
  .middleware(Authentication)
  .prefix("/v2/organizations/:organizationId/provider")
  .annotate(OpenApi.Description, "Payouts of the organization's connected account") {}
