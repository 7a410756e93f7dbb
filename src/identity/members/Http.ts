import { Effect } from "effect"
import { serving } from "../../platform/kit/Handlers.ts"
import { type MemberKeys, MembersApi } from "./Api.ts"
import { currentMember } from "./CurrentMember.ts"
import { Members } from "./Members.ts"

const about = ({ personId }: { readonly personId: string }, { keep_keys = false }: typeof MemberKeys.Type) => ({
  personId: personId.toLowerCase(),
  keepKeys: keep_keys
})

export const membersHttp = serving(MembersApi, Members, (members) => ({
  list: () =>
    Effect.flatMap(currentMember, ({ organizationId }) =>
      Effect.map(members.list(organizationId), (data) => ({ data }))
    ),
  update: ({ path, payload, urlParams }) =>
    Effect.flatMap(currentMember, ({ author, organizationId }) =>
      members.update({ ...about(path, urlParams), organizationId, author, change: payload })
    ),
  remove: ({ path, urlParams }) =>
    Effect.flatMap(currentMember, ({ author, organizationId }) =>
      members.remove({ ...about(path, urlParams), organizationId, author })
    )
}))
