import { Clock, Effect, Redacted } from "effect"
import { OrganizationAccessDenied, ResourceNotFound, ValidationFailed } from "../../platform/errors/Errors.ts"
import { serving } from "../../platform/kit/Handlers.ts"
import { CurrentSession } from "../Authentication.ts"
import { currentMember } from "../members/CurrentMember.ts"
import { KeysApi } from "./Api.ts"
import { requireKeyManager, requireMayGrant } from "./GrantPolicy.ts"
import { Keys } from "./Keys.ts"

const member = Effect.gen(function* () {
  const { environment, membership } = yield* CurrentSession
  const { author, organizationId } = yield* currentMember
  return membership === null
    ? yield* new OrganizationAccessDenied()
    : { author, tenant: { organizationId, environment }, place: membership }
})

const keyManager = Effect.tap(member, ({ place, tenant }) => requireKeyManager(place, tenant.environment))

export const keysHttp = serving(KeysApi, Keys, (keys) => ({
  create: Effect.fnUntraced(function* ({ payload }) {
    const { expiresAt, mode = "test" } = payload
    const { author, place, tenant } = yield* member
    // Checked again in the transaction, since the person may lose the right in the meantime
    yield* requireMayGrant(place, mode === "live" ? "production" : "sandbox", payload.permissions)
    if (expiresAt !== undefined && expiresAt.getTime() <= (yield* Clock.currentTimeMillis)) {
      return yield* new ValidationFailed({
        message: `\`expiresAt\` must be in the future; got "${expiresAt.toISOString()}".`,
        fields: ["expiresAt"]
      })
    }
    const { organizationId } = tenant
    const { key, record } = yield* keys.create({ ...payload, mode, organizationId, author })
    return { ...record, key: Redacted.value(key) }
  }),
  list: () => Effect.flatMap(keyManager, ({ tenant }) => Effect.map(keys.list(tenant), (data) => ({ data }))),
  revoke: Effect.fnUntraced(function* ({ path }) {
    const { author, tenant } = yield* keyManager
    if (!(yield* keys.revoke(tenant, path.id, author))) {
      return yield* new ResourceNotFound({ message: "There is no such key in this environment." })
    }
  })
}))
