import { HttpApiMiddleware, HttpApiSecurity, OpenApi } from "@effect/platform"
import { Schema } from "effect"
import {
  ApiKeyInvalid,
  AuthenticationRequired,
  EndpointManagementForbidden,
  errorSchema,
  OrganizationAccessDenied,
  PermissionDenied,
  ServiceUnavailable,
  ValidationFailed
} from "../Errors.ts"
import { Principal } from "./Principal.ts"

/**
 * Who calls, and may they (contract, Authentication): the API key in `x-api-key`, the organization in the path, the
 * operation's permission, in this order. Provides the `Principal`. Said on a group; implemented by `authenticationLayer`.
 */
export class Authentication extends HttpApiMiddleware.Tag<Authentication>()(
  "connected-payments/identity/Authentication",
  {
    provides: Principal,
    failure: Schema.Union(
      errorSchema(AuthenticationRequired),
      errorSchema(ApiKeyInvalid),
      errorSchema(OrganizationAccessDenied),
      errorSchema(PermissionDenied),
      errorSchema(EndpointManagementForbidden),
      errorSchema(ValidationFailed),
      errorSchema(ServiceUnavailable)
    ),
    security: {
      apiKey: HttpApiSecurity.apiKey({ in: "header", key: "x-api-key" }).pipe(
        HttpApiSecurity.annotate(OpenApi.Description, "An API key of the organization; for servers only")
      )
    }
  }
) {}
