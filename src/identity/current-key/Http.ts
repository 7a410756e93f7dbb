import { Effect } from "effect"
import { serving } from "../../platform/kit/Handlers.ts"
import { Principal } from "../Principal.ts"
import { CurrentKeyApi } from "./Api.ts"

export const currentKeyHttp = serving(CurrentKeyApi, Effect.void, () => ({
  get: () =>
    Effect.map(Principal, ({ author, environment, organizationId, permissions }) => ({
      id: author.id,
      organizationId,
      environment,
      permissions: [...permissions]
    }))
}))
