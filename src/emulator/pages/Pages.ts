import { Effect } from "effect"
import { makeRouter } from "../Http.ts"
import { hostedPage, linkPage } from "./HostedPage.ts"
import { oauth } from "./Oauth.ts"
import { accountLinkPage, accountSetupPage } from "./OnboardingPage.ts"
import { htmlReply, messagePage, type Page } from "./PageLayout.ts"

/** Serves a page for these methods, and answers 405 to others. */
const allowing =
  (methods: ReadonlyArray<string>, page: Page): Page =>
  (service, request, id, token) =>
    methods.includes(request.method ?? "")
      ? page(service, request, id, token)
      : Effect.succeed(
          htmlReply(405, messagePage("Not allowed", `Use ${methods.join(" or ")}.`), { allow: methods.join(", ") })
        )

const withoutForm = (page: Page) => allowing(["GET"], page)

const withForm = (page: Page) => allowing(["GET", "POST"], page)

/** The provider's pages, and what the platform calls for OAuth beside them. */
export const findPage = makeRouter<Page>({
  "/c/pay/:session": withForm(hostedPage),
  "/b/:link": withoutForm(linkPage),
  "/setup/s/:account/:token": withoutForm(accountLinkPage),
  "/setup/e/:account/:token": withForm(accountSetupPage),
  "/oauth/:operation": oauth
})
