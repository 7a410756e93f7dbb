import { HttpApiBuilder } from "@effect/platform"
import { Clock, Effect, Redacted } from "effect"
import { Api } from "../Api.ts"
import { PermissionDenied, ResourceNotFound, ValidationFailed } from "../Errors.ts"
import { principalOf, requireWorkspace } from "./Access.ts"
import { CurrentSession } from "./Authentication.ts"
import { Keys } from "./Keys.ts"
import type { CreateApiKey } from "./KeysApi.ts"
import { expandGrants } from "./Permissions.ts"
import type { PrincipalShape } from "./Principal.ts"

/**
 * The signed-in person, as one who may manage keys: not a viewer, who has the read permissions and nothing else, and
 * allowed into the workspace of the environment, by default the selected one.
 */
const keyManager = (mode?: CreateApiKey["mode"]) =>
  Effect.gen(function* () {
    const session = yield* CurrentSession
    const principal = yield* principalOf(session)
    if (principal.role === "viewer") {
      return yield* new PermissionDenied({ message: "The role viewer may not manage API keys." })
    }
    const environment = mode === undefined ? session.environment : mode === "live" ? "production" : "sandbox"
    yield* requireWorkspace({ ...session, environment })
    return principal
  })

/** A key never carries more than its maker has. */
const requireOwn = (principal: PrincipalShape, { permissions }: CreateApiKey) => {
  const beyond = [...expandGrants(permissions)].filter((permission) => !principal.permissions.has(permission))
  return beyond.length === 0
    ? Effect.void
    : new PermissionDenied({ message: `You lack ${beyond.join(", ")}, and can't give it to a key.` })
}

/** Serves `KeysApi`. */
export const keysHttp = HttpApiBuilder.group(Api, "apiKeys", (handlers) =>
  Effect.map(Keys, (keys) =>
    handlers
      .handle(
        "create",
        Effect.fnUntraced(function* ({ payload }) {
          const { expiresAt, mode = "test" } = payload
          const principal = yield* keyManager(mode)
          yield* requireOwn(principal, payload)
          if (expiresAt !== undefined && expiresAt.getTime() <= (yield* Clock.currentTimeMillis)) {
            return yield* new ValidationFailed({ message: "A key expires in the future.", fields: ["expiresAt"] })
          }
          const { author, organizationId } = principal
          const { key, record } = yield* keys.create({ ...payload, mode, organizationId, author })
          return { ...record, key: Redacted.value(key) }
        })
      )
      .handle("list", () =>
        Effect.flatMap(keyManager(), (principal) => Effect.map(keys.list(principal), (data) => ({ data })))
      )
      .handle(
        "revoke",
        Effect.fnUntraced(function* ({ path }) {
          const principal = yield* keyManager()
          if (!(yield* keys.revoke(principal, path.id, principal.author))) {
            return yield* new ResourceNotFound({ message: "There is no such key in this environment." })
          }
        })
      )
  )
)
