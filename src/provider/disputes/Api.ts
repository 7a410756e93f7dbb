import { HttpApiGroup, OpenApi } from "@effect/platform"
import { Schema } from "effect"
import { Authentication } from "../../identity/Authentication.ts"
import { createdFields, pageFields, strict } from "../../kit/Request.ts"
import { providerGet, providerList } from "../Endpoints.ts"
import { providerErrors } from "../ProviderErrors.ts"
import { ofPaymentFields } from "../Schemas.ts"

/** Query of `GET P/disputes`. */
export const ListDisputes = strict(Schema.Struct({ ...pageFields, ...createdFields, ...ofPaymentFields }))
export type ListDisputes = typeof ListDisputes.Type

const withoutEvidence =
  "Without the `evidence`, which can name the payer, unless the credential also has the permission `customers:read`."

/** Disputes on the organization's connected account. */
export class DisputesApi extends HttpApiGroup.make("disputes")
  .add(
    providerList("/disputes", "payments:read", "List disputes")
      .setUrlParams(ListDisputes)
      .annotate(OpenApi.Description, withoutEvidence)
  )
  .add(providerGet("/disputes/:id", "payments:read", "Read a dispute").annotate(OpenApi.Description, withoutEvidence))
  .addError(providerErrors)
  .middleware(Authentication)
  .prefix("/v2/organizations/:organizationId/provider")
  .annotate(OpenApi.Description, "Disputes of payments on the organization's connected account") {}
