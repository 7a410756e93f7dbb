import { HttpApiBuilder } from "@effect/platform"
import { Effect } from "effect"
import { Api } from "../Api.ts"
import { currentMember } from "./CurrentMember.ts"
import { Members } from "./Members.ts"

/** Serves `MembersApi`. */
export const membersHttp = HttpApiBuilder.group(Api, "members", (handlers) =>
  Effect.gen(function* () {
    const members = yield* Members
    return handlers
      .handle("list", () =>
        Effect.flatMap(currentMember, ({ organizationId }) =>
          Effect.map(members.list(organizationId), (data) => ({ data }))
        )
      )
      .handle("update", ({ path, payload }) =>
        Effect.flatMap(currentMember, ({ author, organizationId }) =>
          members.update({ organizationId, author, personId: path.personId.toLowerCase(), change: payload })
        )
      )
      .handle("remove", ({ path }) =>
        Effect.flatMap(currentMember, ({ author, organizationId }) =>
          members.remove({ organizationId, author, personId: path.personId.toLowerCase() })
        )
      )
  })
)
