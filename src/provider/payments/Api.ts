import { HttpApiGroup, OpenApi } from "@effect/platform"
import { Schema } from "effect"
import { Authentication } from "../../identity/Authentication.ts"
import { createdFields, pageFields, strict } from "../../kit/Request.ts"
import { providerGet, providerList } from "../Endpoints.ts"
import { providerErrors } from "../ProviderErrors.ts"
import { payerOf } from "../Schemas.ts"

/** Query of `GET P/charges` and `GET P/payment-intents` (contract 4.4). */
export const ListPayments = strict(Schema.Struct({ ...pageFields, ...createdFields }))
export type ListPayments = typeof ListPayments.Type

/** Charges on the organization's connected account. */
export class ChargesApi extends HttpApiGroup.make("charges")
  .add(
    providerList("/charges", "payments:read", "List charges")
      .setUrlParams(ListPayments)
      .annotate(OpenApi.Description, payerOf("`billing_details` and `receipt_email`"))
  )
  .add(
    providerGet("/charges/:id", "payments:read", "Read a charge").annotate(
      OpenApi.Description,
      payerOf("`billing_details` and `receipt_email`")
    )
  )
  .addError(providerErrors)
  .middleware(Authentication)
  .prefix("/v2/organizations/:organizationId/provider")
  .annotate(OpenApi.Description, "Charges on the organization's connected account") {}

/** Payment intents on the organization's connected account. */
export class PaymentIntentsApi extends HttpApiGroup.make("paymentIntents")
  .add(
    providerList("/payment-intents", "payments:read", "List payment intents")
      .setUrlParams(ListPayments)
      .annotate(OpenApi.Description, `Without their client secrets. ${payerOf("`receipt_email` and `shipping`")}`)
  )
  .add(
    providerGet("/payment-intents/:id", "payments:read", "Read a payment intent").annotate(
      OpenApi.Description,
      `Without its client secret. ${payerOf("`receipt_email` and `shipping`")}`
    )
  )
  .addError(providerErrors)
  .middleware(Authentication)
  .prefix("/v2/organizations/:organizationId/provider")
  .annotate(OpenApi.Description, "Payment intents on the organization's connected account") {}
