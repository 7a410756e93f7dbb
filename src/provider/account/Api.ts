import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "@effect/platform"
import { Authentication } from "../../identity/Authentication.ts"
import { RequiredPermission } from "../../identity/keys/Permissions.ts"
import { NoQuery, OrganizationPath } from "../../kit/Request.ts"
import { providerErrors } from "../ProviderErrors.ts"
import { ProviderObject } from "../Schemas.ts"

/** The organization's connected account itself (contract 4.4). */
export class AccountApi extends HttpApiGroup.make("account")
  .add(
    HttpApiEndpoint.get("get", "/account")
      .setPath(OrganizationPath)
      .setUrlParams(NoQuery)
      .addSuccess(ProviderObject)
      .annotate(RequiredPermission, "payment-account:read")
      .annotate(OpenApi.Summary, "Read the connected account")
      .annotate(
        OpenApi.Description,
        "Its capabilities, requirements and settings. Personal data (the e-mail address, people, company details, the acceptance of terms) and bank accounts are left out."
      )
  )
  .add(
    HttpApiEndpoint.get("balance", "/balance")
      .setPath(OrganizationPath)
      .setUrlParams(NoQuery)
      .addSuccess(ProviderObject)
      .annotate(RequiredPermission, "payment-account:read")
      .annotate(OpenApi.Summary, "Read the account's balance")
      .annotate(OpenApi.Description, "Available and pending amounts by currency, in the smallest currency unit.")
  )
  .add(
    HttpApiEndpoint.get("payoutSettings", "/payout-settings")
      .setPath(OrganizationPath)
      .setUrlParams(NoQuery)
      .addSuccess(ProviderObject)
      .annotate(RequiredPermission, "payment-account:read")
      .annotate(OpenApi.Summary, "Read when and where the account is paid out")
      .annotate(
        OpenApi.Description,
        "`status` (`enabled` or `disabled`), `schedule` (`interval` and its days), `delay_days` (how long funds are held) and `destinations`: bank accounts and cards, masked to type, bank name, last four digits, currency, country and whether it is the currency's default. `destinations` is null where the provider does not show them to the platform."
      )
  )
  .addError(providerErrors)
  .middleware(Authentication)
  .prefix("/v2/organizations/:organizationId/provider")
  .annotate(OpenApi.Description, "The organization's connected account") {}
