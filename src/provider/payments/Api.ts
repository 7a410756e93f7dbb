import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "@effect/platform"
import { Schema } from "effect"
import { Authentication } from "../../identity/Authentication.ts"
import { RequiredPermission } from "../../identity/keys/Permissions.ts"
import { NoQuery, OrganizationPath, ProviderObjectPath, pageFields, strict } from "../../kit/Request.ts"
import { providerErrors } from "../ProviderErrors.ts"
import { createdFields, ProviderObject, ProviderPage, payerOf } from "../Schemas.ts"

/** Query of `GET P/charges` and `GET P/payment-intents` (contract 4.4). */
export const ListPayments = strict(Schema.Struct({ ...pageFields, ...createdFields }))
export type ListPayments = typeof ListPayments.Type

/** Charges on the organization's connected account. */
export class ChargesApi extends HttpApiGroup.make("charges")
  .add(
    HttpApiEndpoint.get("list", "/charges")
      .setPath(OrganizationPath)
      .setUrlParams(ListPayments)
      .addSuccess(ProviderPage)
      .annotate(RequiredPermission, "payments:read")
      .annotate(OpenApi.Summary, "List charges")
      .annotate(OpenApi.Description, payerOf("`billing_details` and `receipt_email`"))
  )
  .add(
    HttpApiEndpoint.get("get", "/charges/:id")
      .setPath(ProviderObjectPath)
      .setUrlParams(NoQuery)
      .addSuccess(ProviderObject)
      .annotate(RequiredPermission, "payments:read")
      .annotate(OpenApi.Summary, "Read a charge")
      .annotate(OpenApi.Description, payerOf("`billing_details` and `receipt_email`"))
  )
  .addError(providerErrors)
  .middleware(Authentication)
  .prefix("/v2/organizations/:organizationId/provider")
  .annotate(OpenApi.Description, "Charges on the organization's connected account") {}

/** Payment intents on the organization's connected account. */
export class PaymentIntentsApi extends HttpApiGroup.make("paymentIntents")
  .add(
    HttpApiEndpoint.get("list", "/payment-intents")
      .setPath(OrganizationPath)
      .setUrlParams(ListPayments)
      .addSuccess(ProviderPage)
      .annotate(RequiredPermission, "payments:read")
      .annotate(OpenApi.Summary, "List payment intents")
      .annotate(OpenApi.Description, `Without their client secrets. ${payerOf("`receipt_email` and `shipping`")}`)
  )
  .add(
    HttpApiEndpoint.get("get", "/payment-intents/:id")
      .setPath(ProviderObjectPath)
      .setUrlParams(NoQuery)
      .addSuccess(ProviderObject)
      .annotate(RequiredPermission, "payments:read")
      .annotate(OpenApi.Summary, "Read a payment intent")
      .annotate(OpenApi.Description, `Without its client secret. ${payerOf("`receipt_email` and `shipping`")}`)
  )
  .addError(providerErrors)
  .middleware(Authentication)
  .prefix("/v2/organizations/:organizationId/provider")
  .annotate(OpenApi.Description, "Payment intents on the organization's connected account") {}
