import { Effect } from "effect"
import { makeRouter } from "../Http.ts"
import { hostedPage, linkPage } from "./HostedPage.ts"
import { oauth } from "./Oauth.ts"
import { accountLinkPage, accountSetupPage } from "./OnboardingPage.ts"
import { htmlReply, messagePage, messageReply, type Page } from "./PageLayout.ts"

const useGet = messageReply(405, "Not allowed", "Use GET.")

const useGetOrPost = htmlReply(405, messagePage("Not allowed", "Use GET or POST."), { allow: "GET, POST" })

const withoutForm =
  (page: Page): Page =>
  (service, request, id, token) =>
    request.method === "GET" ? page(service, request, id, token) : Effect.succeed(useGet)

const withForm =
  (page: Page): Page =>
  (service, request, id, token) =>
    request.method === "GET" || request.method === "POST"
      ? page(service, request, id, token)
      : Effect.succeed(useGetOrPost)

/** The provider's pages, and what the platform calls for OAuth beside them. */
export const findPage = makeRouter<Page>({
  "/c/pay/:session": withForm(hostedPage),
  "/b/:link": withoutForm(linkPage),
  "/setup/s/:account/:token": withoutForm(accountLinkPage),
  "/setup/e/:account/:token": withForm(accountSetupPage),
  "/oauth/:operation": oauth
})
