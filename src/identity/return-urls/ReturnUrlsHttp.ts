import { HttpApiBuilder } from "@effect/platform"
import { Effect } from "effect"
import { BaseApi } from "../../kit/BaseApi.ts"
import { requireWorkspace } from "../Access.ts"
import { CurrentSession } from "../Authentication.ts"
import { currentMember } from "../members/CurrentMember.ts"
import { ReturnUrls } from "./ReturnUrls.ts"
import { ReturnUrlsApi, writtenReturnUrls } from "./ReturnUrlsApi.ts"

/** The signed-in person in the selected workspace. */
const memberInWorkspace = Effect.zipLeft(currentMember, Effect.flatMap(CurrentSession, requireWorkspace))

export const returnUrlsHttp = HttpApiBuilder.group(BaseApi.add(ReturnUrlsApi), "returnUrls", (handlers) =>
  Effect.map(ReturnUrls, (returnUrls) =>
    handlers
      .handle("get", () => Effect.flatMap(memberInWorkspace, returnUrls.get))
      .handle("set", ({ payload }) =>
        Effect.flatMap(memberInWorkspace, (member) =>
          // A membership's organization always exists
          Effect.catchTag(
            returnUrls.set(member, writtenReturnUrls(payload), member.author),
            "ResourceNotFound",
            Effect.die
          )
        )
      )
  )
)
