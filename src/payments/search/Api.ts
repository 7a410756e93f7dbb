import { HttpApiEndpoint, OpenApi } from "@effect/platform"
import { Schema } from "effect"
import { RequiredPermission } from "../../identity/keys/Permissions.ts"
import { Email } from "../../identity/Schemas.ts"
import { errorSchema, PermissionDenied } from "../../platform/errors/Errors.ts"
import { NoQuery, OrganizationPath, optional, strict } from "../../platform/kit/Request.ts"
import { NeededCalls, providerGroup } from "../Endpoints.ts"
import { Currency, ProviderPage, ProviderText, UnitAmount } from "../Schemas.ts"

/** A search takes exactly one of these. */
const keys = ["client_reference_id", "email", "amount"] as const

/** Body of `POST P/search`. A body, since addresses in URLs end up in logs along the way. */
export const SearchPayments = strict(
  Schema.Struct({
    client_reference_id: optional(ProviderText(200), "The shop's own reference of an order, whole"),
    email: optional(Email, "The address that the payer gave; needs the permission `customers:read`"),
    amount: optional(UnitAmount, "The amount of the payment, in the smallest currency unit"),
    currency: optional(Currency, "Only with `amount`: lowercase ISO 4217 code. Default: every currency")
  })
    .pipe(
      Schema.filter((body) => {
        const [first, second] = keys.filter((key) => body[key] !== undefined)
        if (first === undefined) {
          return [{ path: [keys[0]], message: `is missing; a search needs one of ${keys.join(", ")}` }]
        }
        if (second !== undefined) {
          return [{ path: [second], message: `is not accepted together with ${first}: send one of the two` }]
        }
        return body.currency !== undefined && body.amount === undefined
          ? [{ path: ["currency"], message: "is accepted only together with amount" }]
          : []
      })
    )
    .annotations({ identifier: "SearchPayments" })
)

/** The search of people who know an order, but no id. */
export class SearchApi extends providerGroup(
  "search",
  "Payments and checkout sessions by what a person knows of them"
).add(
  HttpApiEndpoint.post("payments", "/v2/organizations/:organizationId/provider/search")
    .setPath(OrganizationPath)
    .setUrlParams(NoQuery)
    .setPayload(SearchPayments)
    .addSuccess(ProviderPage)
    .addError(errorSchema(PermissionDenied))
    .annotate(NeededCalls, ["searchPaymentIntents"])
    .annotate(RequiredPermission, "payments:read")
    .annotate(OpenApi.Summary, "Find payments by order reference, e-mail address or amount")
    .annotate(
      OpenApi.Description,
      "Send one of the three. `client_reference_id`: the up to 20 newest checkout sessions of this order, among those that this service or its payment links created in the last 90 days. `email`: the 100 newest checkout sessions in which a payer gave this address. `amount`: the 100 newest payment intents of this amount, each with its `sale` as in the list of payment intents; the provider finds new ones after about a minute. Everything is found by an index: there is no search for a part of a text."
    )
) {}
