import { HttpApiMiddleware, HttpApiSecurity } from "@effect/platform"
import { Effect, Layer } from "effect"
import { Keys } from "../identity/keys/Keys.ts"
import { isPermission, OwnPermission, OwnPermissions, type Permission } from "../identity/keys/Permissions.ts"
import { Principal } from "../identity/Principal.ts"
import { ApiKeyInvalid, errorSchemas, PermissionDenied, ServiceUnavailable } from "../platform/errors/Errors.ts"

/**
 * The service's API keys on an embedding team's own groups: `MyGroup.middleware(ApiKeyCheck)`. Requires a valid key in
 * `x-api-key` and provides its `Principal`: organization, environment, permissions, and the key's id as `author.id`. Unknown, revoked and expired keys, and none, get the same 401. It counts no rate limit.
 */
export class ApiKeyCheck extends HttpApiMiddleware.Tag<ApiKeyCheck>()("connected-payments/ApiKeyCheck", {
  provides: Principal,
  failure: errorSchemas(ApiKeyInvalid, ServiceUnavailable),
  security: { key: HttpApiSecurity.apiKey({ in: "header", key: "x-api-key" }) }
}) {
  static readonly layer: Layer.Layer<ApiKeyCheck, never, Keys> = Layer.effect(
    ApiKeyCheck,
    Effect.map(Keys, ({ authenticate }) => ApiKeyCheck.of({ key: authenticate }))
  )
}

/** Fails with `PermissionDenied` (403) unless the request's key has this permission; for handlers behind `ApiKeyCheck`. */
export const requirePermission = (
  permission: Permission | OwnPermission
): Effect.Effect<void, PermissionDenied, Principal> =>
  Effect.flatMap(Principal, ({ permissions }) =>
    permissions.has(permission)
      ? Effect.void
      : new PermissionDenied({ message: `This key lacks the permission \`${permission}\`.` })
  )

/**
 * Permissions of a team's own for its own groups, such as `invoices:read`. Provide `layer` to the layer that has `Keys`; a
 * key gets one by `Keys.create({ permissions: [permission("invoices:read")], … })`. Both sides of a name's colon have 1 to
 * 40 lowercase letters, digits and `-`; the service's own names are taken.
 */
export const ownPermissions = <const Name extends string>(names: ReadonlyArray<Name>) => {
  const permission = (name: Name): OwnPermission => OwnPermission.make(name)
  return {
    layer: Layer.sync(OwnPermissions, () => {
      const taken = names.find(isPermission)
      if (taken !== undefined) throw new Error(`The service has a permission ${taken} itself.`)
      return new Set<string>(names.map(permission))
    }),
    permission,
    /** `requirePermission`, for these and the service's. */
    requirePermission: (required: Permission | Name) =>
      requirePermission(isPermission(required) ? required : permission(required))
  }
}
