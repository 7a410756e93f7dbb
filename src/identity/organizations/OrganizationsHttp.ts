import { HttpApiBuilder } from "@effect/platform"
import { Effect } from "effect"
import { environments } from "../../events/Environment.ts"
import { BaseApi } from "../../kit/BaseApi.ts"
import { CurrentSession } from "../Authentication.ts"
import { Organizations } from "./Organizations.ts"
import { OrganizationsApi } from "./OrganizationsApi.ts"

/** Serves `OrganizationsApi`. */
export const organizationsHttp = HttpApiBuilder.group(BaseApi.add(OrganizationsApi), "organizations", (handlers) =>
  Effect.map(Organizations, (organizations) =>
    handlers.handle(
      "create",
      Effect.fnUntraced(function* ({ payload }) {
        const session = yield* CurrentSession
        const { id, name } = yield* organizations.create({ name: payload.name, ownerEmail: session.email })
        return { id, name, workspaces: environments.map((environment) => ({ environment })) }
      })
    )
  )
)
