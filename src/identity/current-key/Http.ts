import { HttpApiBuilder } from "@effect/platform"
import { Effect } from "effect"
import { BaseApi } from "../../kit/BaseApi.ts"
import { Principal } from "../Principal.ts"
import { CurrentKeyApi } from "./Api.ts"

export const currentKeyHttp = HttpApiBuilder.group(BaseApi.add(CurrentKeyApi), "currentKey", (handlers) =>
  Effect.succeed(
    handlers.handle("get", () =>
      Effect.map(Principal, ({ author, environment, organizationId, permissions }) => ({
        id: author.id,
        organizationId,
        environment,
        permissions: [...permissions]
      }))
    )
  )
)
