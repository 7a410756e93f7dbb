import { Effect } from "effect"
import { serving } from "../../platform/kit/Handlers.ts"
import { Mailer } from "../../platform/kit/Mailer.ts"
import { RequestAdmission } from "../RequestAdmission.ts"
import { makeRedemption, type RedemptionOptions } from "./LinkRedemption.ts"
import { SignIn } from "./SignIn.ts"
import { SignInApi } from "./SignInApi.ts"
import { type LinkPageOptions, linkPage, signInPage } from "./SignInPage.ts"

export const signInHttp = (options: RedemptionOptions & LinkPageOptions) =>
  serving(
    SignInApi,
    Effect.all([SignIn, RequestAdmission, makeRedemption(options), Mailer]),
    ([signIn, { client }, { preview, redeem }, { toLog }]) => ({
      requestLink: Effect.fnUntraced(function* ({ payload }) {
        yield* signIn.requestLink(payload.email, yield* client)
        return { sent: true as const, toLog }
      }),
      page: () => Effect.succeed(linkPage(options, "sign-in", signInPage)),
      preview: ({ payload }) => preview(signIn.preview(payload.token)),
      redeem: ({ payload }) => redeem((client) => signIn.redeem(payload.token, client))
    })
  )
