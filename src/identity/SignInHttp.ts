import { HttpApiBuilder } from "@effect/platform"
import { Effect } from "effect"
import { Api } from "../Api.ts"
import { clientNetwork } from "../kit/ClientAddress.ts"
import { RateLimits } from "../kit/RateLimit.ts"
import { addressPolicy, makeRedemption, type RedemptionOptions } from "./LinkRedemption.ts"
import { SignIn } from "./SignIn.ts"
import { signInPage } from "./SignInPage.ts"

/** Serves `SignInApi`. */
export const signInHttp = (options: RedemptionOptions) =>
  HttpApiBuilder.group(Api, "signIn", (handlers) =>
    Effect.gen(function* () {
      const signIn = yield* SignIn
      const limits = yield* RateLimits
      const redeem = yield* makeRedemption(options)
      const policy = addressPolicy(options)
      return handlers
        .handle(
          "requestLink",
          Effect.fnUntraced(function* ({ payload }) {
            const address = yield* clientNetwork(options.trustedProxies)
            yield* limits.take(`sign-in-links:${address}`, policy)
            yield* signIn.requestLink(payload.email)
            return { sent: true as const }
          })
        )
        .handle("page", () => Effect.succeed(signInPage))
        .handle("redeem", ({ payload }) => redeem(signIn.redeem(payload.token)))
    })
  )
