import { Effect, Schema } from "effect"
import { authenticate, connectedAccount, isConnected } from "../Authentication.ts"
import { newestFirst } from "../api/Lists.ts"
import * as Params from "../api/Params.ts"
import { onAccount, type RequestContext } from "../api/Route.ts"
import { suffer } from "../control/Faults.ts"
import type { EmulatorError } from "../EmulatorError.ts"
import { type HttpReply, type HttpRequest, jsonReply } from "../Http.ts"
import { newId, platformApplicationId } from "../Ids.ts"
import type { Account, Authorization } from "../Records.ts"
import { makeAccount } from "../resources/connect/Accounts.ts"
import type { Service } from "../Service.ts"
import { deauthorize } from "../triggers/AccountTriggers.ts"
import { consentPage } from "./OwnerPages.ts"
import { htmlReply, messageReply, type Page, redirect } from "./PageLayout.ts"

const lifetime = 5 * 60

const mostOffered = 20

const authorizeParams = Schema.Struct({
  client_id: Params.text(100),
  redirect_uri: Params.url,
  response_type: Params.oneOf("code"),
  scope: Params.optional(Params.oneOf("read_only", "read_write")),
  state: Params.optional(Params.text(1_000))
})

type Asked = typeof authorizeParams.Type

const decisionParams = Schema.Struct({
  account: Params.text(100),
  action: Params.oneOf("connect", "decline")
})

const onPlatform = <A, E>(
  service: Service,
  { id: requestId }: HttpRequest,
  act: (context: RequestContext) => Effect.Effect<A, E>
) => onAccount(service, { account: service.platformId, requestId }, act)

/** The accounts that an owner may choose: the newest ones, without the platform's own. */
const offered = ({ platform }: RequestContext): ReadonlyArray<Account> =>
  newestFirst(platform.objects.all("account"))
    .filter(({ id }) => id !== platform.id)
    .slice(0, mostOffered)

const backTo = ({ redirect_uri, state }: Asked, answer: Readonly<Record<string, string>>): HttpReply => {
  const url = new URL(redirect_uri)
  for (const [name, value] of Object.entries({ ...answer, ...(state === undefined ? {} : { state }) })) {
    url.searchParams.set(name, value)
  }
  return redirect(url.href, "Thank you", "Back to the platform.")
}

const grant = ({ now, platform }: RequestContext, asked: Asked, chosen: string): HttpReply | undefined => {
  const account = chosen === "new" ? newId("acct_") : chosen
  if (chosen === "new") {
    platform.objects.put("account", account, { ...makeAccount(account, now), controller: { type: "account" } })
  } else if (account === platform.id || platform.objects.get("account", account) === undefined) {
    return undefined
  }
  const code = newId("ac_")
  const scope = asked.scope ?? "read_only"
  platform.objects.put("authorization", code, { code, account, scope, expires: now + lifetime, redeemed: false })
  return backTo(asked, { scope, code })
}

const consent = (context: RequestContext, { scope }: Asked, refusal?: string) =>
  consentPage({ accounts: offered(context), mayWrite: scope === "read_write", refusal })

const decide = (context: RequestContext, asked: Asked, body: string): Effect.Effect<HttpReply> =>
  Effect.match(Params.decodeForm(decisionParams, body), {
    onFailure: ({ message, status }) => htmlReply(status, consent(context, asked, message)),
    onSuccess: ({ account, action }) =>
      action === "decline"
        ? backTo(asked, { error: "access_denied", error_description: "The user denied your request" })
        : (grant(context, asked, account) ?? htmlReply(422, consent(context, asked, "Choose one of the accounts.")))
  })

/**
 * The page on which an account's owner grants the platform access: `GET /oauth/authorize` shows it, `POST` performs its
 * buttons' actions. Both actions redirect to `redirect_uri`, with a code or with `error=access_denied`. The provider
 * requires that URL to be registered; the emulator accepts every http and https URL.
 */
const authorizePage = (service: Service, request: HttpRequest): Effect.Effect<HttpReply, EmulatorError> => {
  const answer = (asked: Asked) =>
    asked.client_id === platformApplicationId
      ? onPlatform(service, request, (context) =>
          request.method === "POST"
            ? decide(context, asked, request.body)
            : Effect.sync(() => htmlReply(200, consent(context, asked)))
        )
      : Effect.succeed(messageReply(400, "Unknown platform", `No application matches client_id '${asked.client_id}'.`))
  return Effect.flatMap(Params.decodeForm(authorizeParams, request.query), answer).pipe(
    Effect.catchTag("ProviderError", (error) =>
      Effect.succeed(messageReply(error.status, "This can't be opened", error.message))
    )
  )
}

/** A refusal in OAuth's format, which differs from the API's. */
const refused = (status: number, error: string, description: string): HttpReply =>
  jsonReply(status, JSON.stringify({ error, error_description: description }))

const revoke = (context: RequestContext, account: string) =>
  deauthorize(context.in(account), { snapshot: true, thin: false })

const tokenOf = ({ account, scope }: Authorization): HttpReply =>
  jsonReply(
    200,
    JSON.stringify({
      access_token: `sk_test_${newId("ac_").slice(3)}`,
      livemode: false,
      refresh_token: `rt_${newId("ac_").slice(3)}`,
      scope,
      stripe_publishable_key: `pk_test_${newId("ac_").slice(3)}`,
      stripe_user_id: account,
      token_type: "bearer"
    })
  )

const tokenParams = Schema.Struct({
  code: Params.optional(Params.text()),
  grant_type: Params.text(100)
})

const token = Effect.fnUntraced(function* (context: RequestContext, body: string) {
  const { code = "", grant_type } = yield* Params.decodeForm(tokenParams, body)
  if (grant_type !== "authorization_code") {
    return refused(400, "unsupported_grant_type", `Grant type not supported: ${grant_type}`)
  }
  const platform = context.platform.objects
  const found = platform.get("authorization", code)
  if (found === undefined || found.expires <= context.now) {
    return refused(400, "invalid_grant", `Authorization code does not exist: ${code.slice(0, 100)}`)
  }
  if (found.redeemed) {
    if (isConnected(platform, found.account)) yield* revoke(context, found.account)
    return refused(400, "invalid_grant", "This authorization code has already been used. Its tokens are revoked.")
  }
  platform.put("authorization", code, { ...found, redeemed: true })
  platform.put("connection", found.account, { account: found.account, revoked: false })
  return tokenOf(found)
})

const deauthorizeParams = Schema.Struct({ client_id: Params.text(100), stripe_user_id: Params.text(100) })

const endAccess = Effect.fnUntraced(function* (context: RequestContext, body: string) {
  const { client_id, stripe_user_id: account } = yield* Params.decodeForm(deauthorizeParams, body)
  if (client_id !== platformApplicationId) {
    return refused(401, "invalid_client", `No such application: '${client_id}'`)
  }
  const { id, objects } = context.platform
  if (account === id || connectedAccount(objects, account) === undefined) {
    return refused(
      401,
      "invalid_client",
      `This application is not connected to stripe account ${account}, or that account does not exist.`
    )
  }
  yield* revoke(context, account)
  return jsonReply(200, JSON.stringify({ stripe_user_id: account }))
})

const operations = { token, deauthorize: endAccess } as const

const operation = (service: Service, request: HttpRequest, name: string) => {
  if (request.method !== "POST" || (name !== "token" && name !== "deauthorize")) {
    return Effect.succeed(refused(404, "invalid_request", "Unrecognized request URL."))
  }
  return authenticate(request, service.secretKey).pipe(
    Effect.zipRight(onPlatform(service, request, (context) => operations[name](context, request.body))),
    Effect.catchTag("ProviderError", ({ message, status }) =>
      Effect.succeed(refused(status, status === 401 ? "invalid_client" : "invalid_request", message))
    )
  )
}

/** `/oauth/authorize` for an account's owner; `POST /oauth/token` and `/oauth/deauthorize` for the platform. */
export const oauth: Page = (service, request, name) => {
  if (name !== "authorize") return suffer(service.faults.take(request), operation(service, request, name))
  const { method } = request
  return method === "GET" || method === "POST" ? authorizePage(service, request) : operation(service, request, name)
}
