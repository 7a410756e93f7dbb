import { HttpApiBuilder } from "@effect/platform"
import { Effect } from "effect"
import { BaseApi } from "../../kit/BaseApi.ts"
import type { MemberKeys } from "./Api.ts"
import { MembersApi } from "./Api.ts"
import { currentMember } from "./CurrentMember.ts"
import { Members } from "./Members.ts"

/** The member that a request is about, and whether their keys are kept. */
const about = ({ personId }: { readonly personId: string }, { keep_keys = false }: typeof MemberKeys.Type) => ({
  personId: personId.toLowerCase(),
  keepKeys: keep_keys
})

export const membersHttp = HttpApiBuilder.group(BaseApi.add(MembersApi), "members", (handlers) =>
  Effect.gen(function* () {
    const members = yield* Members
    return handlers
      .handle("list", () =>
        Effect.flatMap(currentMember, ({ organizationId }) =>
          Effect.map(members.list(organizationId), (data) => ({ data }))
        )
      )
      .handle("update", ({ path, payload, urlParams }) =>
        Effect.flatMap(currentMember, ({ author, organizationId }) =>
          members.update({ ...about(path, urlParams), organizationId, author, change: payload })
        )
      )
      .handle("remove", ({ path, urlParams }) =>
        Effect.flatMap(currentMember, ({ author, organizationId }) =>
          members.remove({ ...about(path, urlParams), organizationId, author })
        )
      )
  })
)
