import { Effect } from "effect"
import { serving } from "../../platform/kit/Handlers.ts"
import { currentMember } from "../members/CurrentMember.ts"
import { makeRedemption, type RedemptionOptions } from "../sign-in/LinkRedemption.ts"
import { invitationPage, type LinkPageOptions, linkPage } from "../sign-in/SignInPage.ts"
import { InvitationApi, InvitationsApi } from "./Api.ts"
import { Invitations } from "./Invitations.ts"

export const invitationsHttp = serving(InvitationsApi, Invitations, (invitations) => ({
  create: ({ payload }) =>
    Effect.flatMap(currentMember, ({ author, organizationId }) =>
      invitations.create({ environments: [], ...payload, organizationId, author })
    ),
  list: () => Effect.flatMap(currentMember, (member) => Effect.map(invitations.list(member), (data) => ({ data }))),
  revoke: ({ path }) =>
    Effect.flatMap(currentMember, ({ author, organizationId }) =>
      invitations.revoke({ organizationId, author, id: path.id })
    )
}))

export const invitationHttp = (options: RedemptionOptions & LinkPageOptions) =>
  serving(InvitationApi, Effect.all([Invitations, makeRedemption(options)]), ([invitations, { preview, redeem }]) => ({
    page: () => Effect.succeed(linkPage(options, "invitation", invitationPage)),
    preview: ({ payload }) => preview(invitations.preview(payload.token)),
    accept: ({ payload }) => redeem((client) => invitations.accept(payload.token, client))
  }))
