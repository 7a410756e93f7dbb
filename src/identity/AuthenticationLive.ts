import { HttpRouter } from "@effect/platform"
import { Effect, Layer, Redacted, Schema } from "effect"
import {
  AuthenticationRequired,
  EndpointManagementForbidden,
  OrganizationAccessDenied,
  PermissionDenied,
  ValidationFailed
} from "../Errors.ts"
import { Authentication } from "./Authentication.ts"
import { Keys } from "./Keys.ts"
import { isWebhookPermission, type Permission } from "./Permissions.ts"
import type { PrincipalShape } from "./Principal.ts"

/** The permission of the operation that a request was routed to. */
export type PermissionOf = (method: string, routePath: string) => Permission | undefined

const isUuid = Schema.is(Schema.UUID)

/** The organization in the path must be the credential's; one that does not exist is answered alike. */
const checkOrganization = Effect.fnUntraced(function* (principal: PrincipalShape) {
  const { params } = yield* HttpRouter.RouteContext
  const organizationId = params["organizationId"]
  if (!isUuid(organizationId)) {
    return yield* new ValidationFailed({ fields: ["organizationId"] })
  }
  if (organizationId.toLowerCase() !== principal.organizationId) {
    return yield* new OrganizationAccessDenied()
  }
})

const checkPermission = (principal: PrincipalShape, permission: Permission) => {
  if (principal.permissions.has(permission)) {
    return Effect.void
  }
  return isWebhookPermission(permission)
    ? Effect.fail(
        new EndpointManagementForbidden({ message: `This API key lacks the webhook management scope ${permission}.` })
      )
    : Effect.fail(new PermissionDenied({ message: `This API key lacks the permission ${permission}.` }))
}

/** `Authentication` by API key. An operation without a declared permission is closed to everybody. */
export const authenticationLayer = (permissionOf: PermissionOf): Layer.Layer<Authentication, never, Keys> =>
  Layer.effect(
    Authentication,
    Effect.map(Keys, (keys) =>
      Authentication.of({
        // A missing header arrives as the empty string
        apiKey: Effect.fnUntraced(function* (key) {
          if (Redacted.value(key) === "") {
            return yield* new AuthenticationRequired()
          }
          const principal = yield* keys.authenticate(key)
          const { route } = yield* HttpRouter.RouteContext
          yield* checkOrganization(principal)
          // The route's method: HEAD is served by the route of GET
          const permission = permissionOf(route.method, route.path)
          yield* permission === undefined
            ? new PermissionDenied({ message: "This operation is open to nobody." })
            : checkPermission(principal, permission)
          yield* Effect.annotateCurrentSpan({
            "organization.id": principal.organizationId,
            environment: principal.environment,
            "author.kind": principal.author.kind,
            "author.id": principal.author.id
          })
          return principal
        })
      })
    )
  )
