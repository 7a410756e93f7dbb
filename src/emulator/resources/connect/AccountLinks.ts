import { Effect, Schema } from "effect"
import { connectedAccount } from "../../Authentication.ts"
import * as Params from "../../api/Params.ts"
import { type RequestContext, type Route, route } from "../../api/Route.ts"
import { newUrlToken } from "../../Ids.ts"
import { accountInvalid, invalid } from "../../ProviderError.ts"

const lifetime = 5 * 60

/** How long a link that no longer works still redirects to the platform, in seconds. */
const remembered = 24 * 60 * 60

const createParams = Schema.Struct({
  account: Params.text(),
  collect: Params.optional(Params.oneOf("currently_due", "eventually_due")),
  collection_options: Params.optional(
    Schema.Struct({
      fields: Params.optional(Params.oneOf("currently_due", "eventually_due")),
      future_requirements: Params.optional(Params.oneOf("include", "omit"))
    })
  ),
  refresh_url: Params.url,
  return_url: Params.url,
  type: Params.oneOf("account_onboarding", "account_update")
})

export const accountLinkPath = (account: string, token: string): string => `/setup/s/${account}/${token}`

const forgetOld = ({ now, platform: { objects } }: RequestContext): void => {
  for (const { expires, id } of objects.all("account_link")) {
    if (expires + remembered < now) objects.remove("account_link", id)
  }
  for (const { created, id } of objects.all("onboarding_visit")) {
    if (created + remembered < now) objects.remove("onboarding_visit", id)
  }
}

const create = Effect.fnUntraced(function* (context: RequestContext, params: typeof createParams.Type) {
  const { now, platform } = context
  const account = connectedAccount(platform.objects, params.account)
  if (account === undefined) {
    return yield* accountInvalid(params.account)
  }
  if (account.controller?.is_controller !== true) {
    return yield* invalid(
      "account",
      "You cannot create account links for an account that your platform does not control."
    )
  }
  forgetOld(context)
  const id = newUrlToken()
  const expires = now + lifetime
  platform.objects.put("account_link", id, {
    id,
    account: account.id,
    expires,
    opened: false,
    refreshUrl: params.refresh_url,
    returnUrl: params.return_url
  })
  return {
    object: "account_link",
    created: now,
    expires_at: expires,
    url: `${context.baseUrl}${accountLinkPath(account.id, id)}`
  }
})

export const accountLinkRoutes: ReadonlyArray<Route> = [
  route({
    method: "POST",
    path: "/v1/account_links",
    answers: { object: "account_link" },
    params: createParams,
    run: create
  })
]
