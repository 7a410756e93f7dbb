import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "@effect/platform"
import { Schema } from "effect"
import { Authentication } from "../identity/Authentication.ts"
import { RequiredPermission } from "../identity/Permissions.ts"
import {
  BooleanFromQuery,
  IdempotencyHeaders,
  NoQuery,
  OrganizationPath,
  optional,
  ProviderObjectPath,
  pageFields,
  strict
} from "../kit/Request.ts"
import { providerErrors } from "./ProviderErrors.ts"
import { Currency, Metadata, ProviderObject, ProviderPage, ProviderText, Reference, UnitAmount } from "./Schemas.ts"

/** Recurrence every `interval_count` intervals. */
const Recurring = Schema.Struct({
  interval: Schema.Literal("day", "week", "month", "year"),
  interval_count: optional(Schema.Int.pipe(Schema.between(1, 1095))),
  // Accepted and dropped before the provider: metered prices are not supported (contract, Write operations)
  usage_type: optional(Schema.Literal("licensed", "metered"))
})

/** Body of `POST P/prices` (contract, Request shapes). */
export const CreatePrice = strict(
  Schema.Struct({
    product: Reference,
    currency: Currency,
    unit_amount: UnitAmount,
    recurring: optional(Recurring),
    nickname: optional(ProviderText(250)),
    lookup_key: optional(ProviderText(200)),
    tax_behavior: optional(Schema.Literal("inclusive", "exclusive", "unspecified")),
    metadata: optional(Metadata)
  }).annotations({ identifier: "CreatePrice" })
)
export type CreatePrice = typeof CreatePrice.Type

/** Query of `GET P/prices`. */
export const ListPrices = strict(
  Schema.Struct({
    ...pageFields,
    active: optional(BooleanFromQuery),
    product: optional(Reference)
  })
)
export type ListPrices = typeof ListPrices.Type

/** Prices on the organization's connected account. */
export class PricesApi extends HttpApiGroup.make("prices")
  .add(
    HttpApiEndpoint.post("create", "/prices")
      .setPath(OrganizationPath)
      .setUrlParams(NoQuery)
      .setHeaders(IdempotencyHeaders)
      .setPayload(CreatePrice)
      .addSuccess(ProviderObject)
      .annotate(RequiredPermission, "products:write")
      .annotate(OpenApi.Summary, "Create a price")
  )
  .add(
    HttpApiEndpoint.get("list", "/prices")
      .setPath(OrganizationPath)
      .setUrlParams(ListPrices)
      .addSuccess(ProviderPage)
      .annotate(RequiredPermission, "products:read")
      .annotate(OpenApi.Summary, "List prices")
  )
  .add(
    HttpApiEndpoint.get("get", "/prices/:id")
      .setPath(ProviderObjectPath)
      .setUrlParams(NoQuery)
      .addSuccess(ProviderObject)
      .annotate(RequiredPermission, "products:read")
      .annotate(OpenApi.Summary, "Read a price")
  )
  .addError(providerErrors)
  .middleware(Authentication)
  .prefix("/v2/organizations/:organizationId/provider")
  .annotate(OpenApi.Description, "Prices on the organization's connected account") {}
