import { HttpApiGroup, OpenApi } from "@effect/platform"
import { Schema } from "effect"
import { Authentication } from "../../identity/Authentication.ts"
import { createdFields, pageFields, strict } from "../../kit/Request.ts"
import { providerGet, providerList } from "../Endpoints.ts"
import { providerErrors } from "../ProviderErrors.ts"

/** Query of `GET P/customers`. There is no search by e-mail address: addresses in URLs end up in logs along the way. */
export const ListCustomers = strict(Schema.Struct({ ...pageFields, ...createdFields }))
export type ListCustomers = typeof ListCustomers.Type

const reducedFields =
  "With `payments:read` alone, only `id`, `object`, `created`, `currency`, `deleted`, `delinquent` and `livemode`. Name, addresses, e-mail, telephone, metadata and all else need the permission `customers:read` as well, which no wildcard includes and only owners and admins have and can grant."

/** Customers on the organization's connected account. */
export class CustomersApi extends HttpApiGroup.make("customers")
  .add(
    providerList("/customers", "payments:read", "List customers, without personal data unless it was granted")
      .setUrlParams(ListCustomers)
      .annotate(OpenApi.Description, reducedFields)
  )
  .add(
    providerGet(
      "/customers/:id",
      "payments:read",
      "Read a customer, without personal data unless it was granted"
    ).annotate(
      OpenApi.Description,
      `${reducedFields} A customer that was deleted at the provider has \`deleted: true\`.`
    )
  )
  .addError(providerErrors)
  .middleware(Authentication)
  .prefix("/v2/organizations/:organizationId/provider")
  .annotate(OpenApi.Description, "Customers on the organization's connected account") {}
