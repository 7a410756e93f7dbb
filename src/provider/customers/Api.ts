import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "@effect/platform"
import { Schema } from "effect"
import { Authentication } from "../../identity/Authentication.ts"
import { RequiredPermission } from "../../identity/keys/Permissions.ts"
import { NoQuery, OrganizationPath, ProviderObjectPath, pageFields, strict } from "../../kit/Request.ts"
import { providerErrors } from "../ProviderErrors.ts"
import { createdFields, ProviderObject, ProviderPage } from "../Schemas.ts"

/**
 * Query of `GET P/customers`. There is no search by e-mail address: addresses in URLs end up in the logs of everything
 * on the way.
 */
export const ListCustomers = strict(Schema.Struct({ ...pageFields, ...createdFields }))
export type ListCustomers = typeof ListCustomers.Type

const reducedFields =
  "With `payments:read` alone, only `id`, `object`, `created`, `currency`, `deleted`, `delinquent` and `livemode`. Name, addresses, e-mail, telephone, metadata and all else need the permission `customers:read` as well, which no wildcard includes and only owners and admins have and can grant."

/** Customers on the organization's connected account. */
export class CustomersApi extends HttpApiGroup.make("customers")
  .add(
    HttpApiEndpoint.get("list", "/customers")
      .setPath(OrganizationPath)
      .setUrlParams(ListCustomers)
      .addSuccess(ProviderPage)
      .annotate(RequiredPermission, "payments:read")
      .annotate(OpenApi.Summary, "List customers, without personal data unless it was granted")
      .annotate(OpenApi.Description, reducedFields)
  )
  .add(
    HttpApiEndpoint.get("get", "/customers/:id")
      .setPath(ProviderObjectPath)
      .setUrlParams(NoQuery)
      .addSuccess(ProviderObject)
      .annotate(RequiredPermission, "payments:read")
      .annotate(OpenApi.Summary, "Read a customer, without personal data unless it was granted")
      .annotate(
        OpenApi.Description,
        `${reducedFields} A customer that was deleted at the provider has \`deleted: true\`.`
      )
  )
  .addError(providerErrors)
  .middleware(Authentication)
  .prefix("/v2/organizations/:organizationId/provider")
  .annotate(OpenApi.Description, "Customers on the organization's connected account") {}
