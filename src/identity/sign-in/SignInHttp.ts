import { HttpApiBuilder } from "@effect/platform"
import { Effect } from "effect"
import { BaseApi } from "../../kit/BaseApi.ts"
import { RequestAdmission } from "../RequestAdmission.ts"
import { makeRedemption, type RedemptionOptions } from "./LinkRedemption.ts"
import { SignIn } from "./SignIn.ts"
import { SignInApi } from "./SignInApi.ts"
import { type LinkPageOptions, linkPage, signInPage } from "./SignInPage.ts"

export const signInHttp = (options: RedemptionOptions & LinkPageOptions) =>
  HttpApiBuilder.group(BaseApi.add(SignInApi), "signIn", (handlers) =>
    Effect.gen(function* () {
      const signIn = yield* SignIn
      const { client } = yield* RequestAdmission
      const { preview, redeem } = yield* makeRedemption(options)
      return handlers
        .handle(
          "requestLink",
          Effect.fnUntraced(function* ({ payload }) {
            yield* signIn.requestLink(payload.email, yield* client)
            return { sent: true as const }
          })
        )
        .handle("page", () => Effect.succeed(linkPage(options, "sign-in", signInPage)))
        .handle("preview", ({ payload }) => preview(signIn.preview(payload.token)))
        .handle("redeem", ({ payload }) => redeem((client) => signIn.redeem(payload.token, client)))
    })
  )
