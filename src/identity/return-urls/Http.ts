import { Effect } from "effect"
import { serving } from "../../platform/kit/Handlers.ts"
import { memberInWorkspace } from "../members/CurrentMember.ts"
import { ReturnUrlsApi, writtenReturnUrls } from "./Api.ts"
import { ReturnUrls } from "./ReturnUrls.ts"

export const returnUrlsHttp = serving(ReturnUrlsApi, ReturnUrls, (returnUrls) => ({
  get: () => Effect.flatMap(memberInWorkspace, returnUrls.get),
  set: ({ payload }) =>
    Effect.flatMap(memberInWorkspace, (member) =>
      // A membership's organization always exists
      Effect.catchTag(returnUrls.set(member, writtenReturnUrls(payload), member.author), "ResourceNotFound", Effect.die)
    )
}))
