import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "@effect/platform"
import { Schema } from "effect"
import { Authentication } from "../../identity/Authentication.ts"
import { RequiredPermission } from "../../identity/keys/Permissions.ts"
import {
  errorSchemas,
  ImageQuotaExceeded,
  ProviderAccountNotConnected,
  RateLimitExceeded,
  ResourceNotFound,
  ServiceUnavailable
} from "../../platform/errors/Errors.ts"
import { described, NoQuery, OrganizationPath } from "../../platform/kit/Request.ts"
import { NeededCalls } from "../Endpoints.ts"

export const ProductImage = Schema.Struct({
  url: described(Schema.String, "The public, immutable URL, for `images` of products")
}).annotations({ identifier: "ProductImage" })

const binary = { schema: { type: "string", format: "binary" } }

/** Declared here rather than by a schema, since the handler reads the bytes as they arrive, within their bound. */
const uploadBody = {
  required: true,
  content: {
    "image/jpeg": binary,
    "image/png": binary,
    "image/webp": binary,
    "multipart/form-data": {
      schema: { type: "object", required: ["file"], properties: { file: binary.schema }, additionalProperties: false }
    }
  }
}

export class ProductImagesApi extends HttpApiGroup.make("productImages")
  .add(
    HttpApiEndpoint.post("upload", "/product-images")
      .setPath(OrganizationPath)
      .setUrlParams(NoQuery)
      .addSuccess(ProductImage)
      .addError(errorSchemas(ProviderAccountNotConnected, ImageQuotaExceeded, ServiceUnavailable))
      .annotate(NeededCalls, ["createProduct"])
      .annotate(RequiredPermission, "products:write")
      .annotate(OpenApi.Summary, "Upload a product image")
      .annotate(
        OpenApi.Description,
        "One whole JPEG, PNG or WebP image, up to 4 MiB: as the body itself, or as the part `file` of a form. Its bytes decide the format. The same bytes have the same URL, so a repeat needs no key. Everybody who knows the URL can see the image. An organization's uploads per hour are limited; an upload without `Content-Length` counts as 4 MiB."
      )
      .annotate(OpenApi.Override, { requestBody: uploadBody })
  )
  .middleware(Authentication)
  .prefix("/v2/organizations/:organizationId/provider")
  .annotate(OpenApi.Description, "Images of products, hosted by the service") {}

export class PublicImagesApi extends HttpApiGroup.make("publicImages")
  .add(
    HttpApiEndpoint.get("get", "/product-images/:file")
      .setPath(Schema.Struct({ file: Schema.String.annotations({ description: "`<sha256>.<jpg|png|webp>`" }) }))
      .addSuccess(HttpApiSchema.Uint8Array({ contentType: "image/*" }))
      .addError(errorSchemas(ResourceNotFound, RateLimitExceeded, ServiceUnavailable))
      .annotate(OpenApi.Summary, "Read a product image")
      .annotate(
        OpenApi.Description,
        "An image never changes, so it may be cached for ever; `If-None-Match` is supported. An operator can remove it."
      )
  )
  .annotate(OpenApi.Description, "Product images, public") {}
