import { HttpApiGroup, OpenApi } from "@effect/platform"
import { Schema } from "effect"
import { Authentication } from "../../identity/Authentication.ts"
import { createdFields, optional, pageFields, strict } from "../../kit/Request.ts"
import { providerGet, providerList } from "../Endpoints.ts"
import { providerErrors } from "../ProviderErrors.ts"

/** Query of `GET P/payouts`. */
export const ListPayouts = strict(
  Schema.Struct({
    ...pageFields,
    ...createdFields,
    status: optional(Schema.Literal("pending", "paid", "failed", "canceled"), "Only these")
  })
)
export type ListPayouts = typeof ListPayouts.Type

/** Payouts of the organization's connected account. */
export class PayoutsApi extends HttpApiGroup.make("payouts")
  .add(providerList("/payouts", "payment-account:read", "List payouts").setUrlParams(ListPayouts))
  .add(providerGet("/payouts/:id", "payment-account:read", "Read a payout"))
  .addError(providerErrors)
  .middleware(Authentication)
  .prefix("/v2/organizations/:organizationId/provider")
  .annotate(OpenApi.Description, "Payouts of the organization's connected account") {}
