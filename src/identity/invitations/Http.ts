import { HttpApiBuilder } from "@effect/platform"
import { Effect } from "effect"
import { BaseApi } from "../../kit/BaseApi.ts"
import { currentMember } from "../members/CurrentMember.ts"
import { makeRedemption, type RedemptionOptions } from "../sign-in/LinkRedemption.ts"
import { invitationPage, type LinkPageOptions, linkPage } from "../sign-in/SignInPage.ts"
import { InvitationApi, InvitationsApi } from "./Api.ts"
import { Invitations } from "./Invitations.ts"

export const invitationsHttp = HttpApiBuilder.group(BaseApi.add(InvitationsApi), "invitations", (handlers) =>
  Effect.gen(function* () {
    const invitations = yield* Invitations
    return handlers
      .handle(
        "create",
        Effect.fnUntraced(function* ({ payload }) {
          const { author, organizationId } = yield* currentMember
          return yield* invitations.create({ environments: [], ...payload, organizationId, author })
        })
      )
      .handle("list", () =>
        Effect.flatMap(currentMember, (principal) => Effect.map(invitations.list(principal), (data) => ({ data })))
      )
      .handle("revoke", ({ path }) =>
        Effect.flatMap(currentMember, ({ author, organizationId }) =>
          invitations.revoke({ organizationId, author, id: path.id })
        )
      )
  })
)

export const invitationHttp = (options: RedemptionOptions & LinkPageOptions) =>
  HttpApiBuilder.group(BaseApi.add(InvitationApi), "invitation", (handlers) =>
    Effect.gen(function* () {
      const invitations = yield* Invitations
      const { preview, redeem } = yield* makeRedemption(options)
      return handlers
        .handle("page", () => Effect.succeed(linkPage(options, "invitation", invitationPage)))
        .handle("preview", ({ payload }) => preview(invitations.preview(payload.token)))
        .handle("accept", ({ payload }) => redeem((client) => invitations.accept(payload.token, client)))
    })
  )
