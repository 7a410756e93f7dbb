import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "@effect/platform"
import { connectingPaths } from "../connecting/Port.ts"
import { NeededCalls } from "../Endpoints.ts"

const Page = HttpApiSchema.Text({ contentType: "text/html" })

/** For browsers: every answer is a page or redirects to one. */
export class AccountPagesApi extends HttpApiGroup.make("accountPages")
  .add(
    HttpApiEndpoint.get("returned", connectingPaths.returned)
      .addSuccess(Page)
      .annotate(NeededCalls, ["createOnboardingUrl"])
      .annotate(OpenApi.Summary, "The page after onboarding")
      .annotate(
        OpenApi.Description,
        "The provider leads here when its onboarding was finished or left: it proves nothing, so the page says to look at the status. It has no secrets. `environment` in the query says which account it was; anything else is ignored."
      )
  )
  .add(
    HttpApiEndpoint.get("refresh", connectingPaths.refresh)
      .addSuccess(Page)
      .annotate(NeededCalls, ["createOnboardingUrl"])
      .annotate(OpenApi.Summary, "The page after an onboarding URL that no longer works")
      .annotate(
        OpenApi.Description,
        "The provider leads here from a URL that has expired or was used. A new one takes `POST /identity/account/onboarding` with the session: opening this page creates none."
      )
  )
  .add(
    HttpApiEndpoint.get("authorized", connectingPaths.authorized)
      .addSuccess(Page)
      .annotate(NeededCalls, ["redeemAuthorization"])
      .annotate(OpenApi.Summary, "Finish connecting an existing account")
      .annotate(
        OpenApi.Description,
        "The provider leads here with `state` and either `code` or `error`. The account is linked if the state is the one that this session began with, less than 10 minutes ago and not used yet. Always a page that says how it ended, or a redirect to one."
      )
  )
  .annotate(OpenApi.Description, "Pages after connecting the provider account") {}
