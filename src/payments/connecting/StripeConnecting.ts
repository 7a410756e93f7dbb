import { Effect, Option, Redacted } from "effect"
import type Stripe from "stripe"
import { ProviderPermissionDenied, ProviderUnavailable } from "../../platform/errors/Errors.ts"
import type { Environment } from "../../platform/kit/Environment.ts"
import type { ConnectedAccount, ProviderCall } from "../ProviderCall.ts"
import type { StripeCall, StripeProviderOptions } from "../stripe/StripeCall.ts"
import { someOnPages } from "../stripe/StripePages.ts"
import type { AuthorizationPort, ConnectingPort, NewAccount, OnboardingPages, OnboardingPort } from "./Port.ts"

/** The metadata key that marks an account with the onboarding it was created for. */
const markerKey = "svc_onboarding"

/**
 * The parameters that Stripe recommends to platforms whose accounts charge directly and pay their own fees: Stripe
 * collects the owner's details, bears the losses, and gives the owner its full dashboard. Stripe itself requests the
 * capabilities of such an account, and asks its owner for country and business.
 */
export const accountParams = ({ marker }: Pick<NewAccount, "marker">): Stripe.AccountCreateParams => ({
  controller: {
    fees: { payer: "account" },
    losses: { payments: "stripe" },
    requirement_collection: "stripe",
    stripe_dashboard: { type: "full" }
  },
  metadata: { [markerKey]: marker }
})

/** Asks for everything that will eventually be due, so that the owner need not return soon. */
export const onboardingParams = (
  { accountId }: Pick<ConnectedAccount, "accountId">,
  { refreshUrl, returnUrl }: OnboardingPages
): Stripe.AccountLinkCreateParams => ({
  account: accountId,
  type: "account_onboarding",
  collection_options: { fields: "eventually_due" },
  refresh_url: refreshUrl,
  return_url: returnUrl
})

/** How far Stripe's clock may be behind ours. */
const clockSkewSeconds = 300

/** The scope that the service needs: it creates products, prices and sessions. */
const scope = "read_write"

/** The platform itself, where a call expects a connected account. */
const platform = (environment: Environment): ConnectedAccount => ({ environment, accountId: "platform" })

/** A call on the platform names no account whose access could be revoked. */
const onPlatform = <A>(call: ProviderCall<A>): ProviderCall<A> =>
  Effect.catchTag(call, "AccountAccessRevoked", ({ cause }) => new ProviderPermissionDenied({ cause }))

/** Corrects the package's types: OAuth answers have the response attached as well. */
const withResponse = <A>(answer: Promise<A>): Promise<Stripe.Response<A>> => answer as Promise<Stripe.Response<A>>

const accountIdForm = /^acct_\w{1,64}$/

const incomplete = () => new ProviderUnavailable({ cause: "The provider's answer lacks the account's id" })

const stripeOnboarding = (call: StripeCall): OnboardingPort => ({
  retrievePlatformId: (environment) =>
    onPlatform(
      call("accounts.retrieveCurrent", platform(environment), (client) => client.accounts.retrieveCurrent())
    ).pipe(
      Effect.filterOrFail(({ id }) => accountIdForm.test(id), incomplete),
      Effect.map(({ id }) => id)
    ),

  createAccount: (account, options) =>
    onPlatform(
      call("accounts.create", platform(account.environment), (client) =>
        client.accounts.create(accountParams(account), options)
      )
    ).pipe(Effect.map(({ id }) => id)),

  findCreatedAccount: ({ environment, marker }, since) =>
    Effect.suspend(() => {
      let found = Option.none<string>()
      const created = { gte: Math.floor(since.getTime() / 1000) - clockSkewSeconds }
      return someOnPages(
        (params) =>
          onPlatform(
            call("accounts.list", platform(environment), (client) => client.accounts.list({ ...params, created }))
          ),
        ({ id, metadata }) => {
          if (metadata?.[markerKey] !== marker) return false
          found = Option.some(id)
          return true
        },
        false
      ).pipe(Effect.map(() => found))
    }),

  createOnboardingUrl: (account, pages) =>
    call("account_links.create", account, (client) =>
      client.accountLinks.create(onboardingParams(account, pages))
    ).pipe(Effect.map(({ expires_at, url }) => ({ url: Redacted.make(url), expiresAt: new Date(expires_at * 1000) })))
})

type ConnectingOptions = Pick<StripeProviderOptions, "apiUrl" | "oauthClientIds">

const stripeAuthorization = (
  call: StripeCall,
  { apiUrl, oauthClientIds = {} }: ConnectingOptions
): AuthorizationPort => {
  const authorizeAt = new URL(
    "/oauth/authorize",
    Option.getOrElse(apiUrl, () => new URL("https://connect.stripe.com"))
  )

  return {
    authorizationUrl: (environment, { redirectUrl, state }) =>
      Option.map(Option.fromNullable(oauthClientIds[environment]), (clientId) => {
        const url = new URL(authorizeAt)
        url.search = new URLSearchParams({
          response_type: "code",
          client_id: clientId,
          scope,
          redirect_uri: redirectUrl,
          state: Redacted.value(state)
        }).toString()
        return Redacted.make(url.href)
      }),

    redeemAuthorization: (environment, code) =>
      onPlatform(
        call(
          "oauth.token",
          platform(environment),
          (client) =>
            withResponse(client.oauth.token({ grant_type: "authorization_code", code: Redacted.value(code) })),
          { once: true }
        )
      ).pipe(
        Effect.flatMap(({ livemode, scope: granted, stripe_user_id: accountId }) =>
          accountId === undefined
            ? incomplete()
            : Effect.succeed({
                accountId,
                environment: livemode === true ? ("production" as const) : ("sandbox" as const),
                mayWrite: granted === scope
              })
        )
      ),

    endAuthorization: (account) => {
      const clientId = oauthClientIds[account.environment]
      return clientId === undefined
        ? new ProviderPermissionDenied({
            cause: `No OAuth client id is set for the environment ${account.environment}`
          })
        : call("oauth.deauthorize", account, (client) =>
            withResponse(client.oauth.deauthorize({ client_id: clientId, stripe_user_id: account.accountId }))
          ).pipe(Effect.asVoid)
    }
  }
}

export const stripeConnecting = (call: StripeCall, options: ConnectingOptions): ConnectingPort => ({
  ...stripeOnboarding(call),
  ...stripeAuthorization(call, options)
})
