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
import { Metadata, ProviderObject, ProviderPage, ProviderText } from "./Schemas.ts"

/** An https URL, as the provider takes for images and product pages. */
const HttpsUrl = Schema.String.pipe(
  Schema.maxLength(2048),
  Schema.filter((text) => (URL.canParse(text) && new URL(text).protocol === "https:") || "must be an https URL")
)

/** Body of `POST P/products` (contract, Write operations). */
export const CreateProduct = strict(
  Schema.Struct({
    name: ProviderText(250),
    active: optional(Schema.Boolean),
    images: optional(Schema.Array(HttpsUrl).pipe(Schema.maxItems(8))),
    url: optional(HttpsUrl),
    statement_descriptor: optional(
      Schema.String.pipe(Schema.pattern(/^[^<>\\'"*]*[A-Za-z][^<>\\'"*]*$/), Schema.minLength(1), Schema.maxLength(22))
    ),
    unit_label: optional(ProviderText(12)),
    marketing_features: optional(Schema.Array(Schema.Struct({ name: ProviderText(80) })).pipe(Schema.maxItems(15))),
    shippable: optional(Schema.Boolean),
    metadata: optional(Metadata)
  }).annotations({ identifier: "CreateProduct" })
)
export type CreateProduct = typeof CreateProduct.Type

/** Query of `GET P/products`. */
export const ListProducts = strict(Schema.Struct({ ...pageFields, active: optional(BooleanFromQuery) }))
export type ListProducts = typeof ListProducts.Type

/** Products on the organization's connected account. */
export class ProductsApi extends HttpApiGroup.make("products")
  .add(
    HttpApiEndpoint.post("create", "/products")
      .setPath(OrganizationPath)
      .setUrlParams(NoQuery)
      .setHeaders(IdempotencyHeaders)
      .setPayload(CreateProduct)
      .addSuccess(ProviderObject)
      .annotate(RequiredPermission, "products:write")
      .annotate(OpenApi.Summary, "Create a product")
  )
  .add(
    HttpApiEndpoint.get("list", "/products")
      .setPath(OrganizationPath)
      .setUrlParams(ListProducts)
      .addSuccess(ProviderPage)
      .annotate(RequiredPermission, "products:read")
      .annotate(OpenApi.Summary, "List products")
  )
  .add(
    HttpApiEndpoint.get("get", "/products/:id")
      .setPath(ProviderObjectPath)
      .setUrlParams(NoQuery)
      .addSuccess(ProviderObject)
      .annotate(RequiredPermission, "products:read")
      .annotate(OpenApi.Summary, "Read a product, with its default price")
  )
  .addError(providerErrors)
  .middleware(Authentication)
  .prefix("/v2/organizations/:organizationId/provider")
  .annotate(OpenApi.Description, "Products on the organization's connected account") {}
