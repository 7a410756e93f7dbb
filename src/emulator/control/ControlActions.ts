import { Effect } from "effect"
import { type RequestContext, requestContext } from "../api/Route.ts"
import { type RenewalOrder, renewSubscription } from "../checkout/Renewal.ts"
import type { EmulatorError } from "../EmulatorError.ts"
import { isAccountId, newId } from "../Ids.ts"
import { accountInvalid, invalid, type ProviderError } from "../ProviderError.ts"
import type { Payout, Subscription } from "../Records.ts"
import { makePayoutOf, movePayout, type PayoutOrder, type PayoutState } from "../resources/balance/Payouts.ts"
import { makeAccount, underControl } from "../resources/connect/Accounts.ts"
import { type Service, transactNow } from "../Service.ts"
import type { ApiVersion } from "../Versions.ts"

export const isTarget = (url: string): boolean => URL.canParse(url) && /^https?:\/\//i.test(url)

/** Without an id, always a new account. Error (400): an id other than `acct_` and 16 letters or digits. */
export const ensureAccount = (service: Service, id?: string): Effect.Effect<string, ProviderError | EmulatorError> => {
  if (id !== undefined && !isAccountId(id)) {
    return invalid("id", "An account id is `acct_` and 16 letters or digits.")
  }
  return transactNow(service.store, (transaction, now) =>
    Effect.sync(() => {
      const accounts = transaction.in(service.platformId)
      const account = id ?? newId("acct_")
      if (accounts.get("account", account) === undefined) accounts.put("account", account, makeAccount(account, now))
      return account
    })
  )
}

/** As a change without an API request, notified in a version, by default the target's; an unknown account is a 403. */
export const happen = <A>(
  service: Service,
  account: string,
  body: (context: RequestContext) => Effect.Effect<A, ProviderError>,
  notifiedIn?: ApiVersion
): Effect.Effect<A, ProviderError | EmulatorError> =>
  transactNow(service.store, (transaction, now) => {
    const known = account !== service.platformId && transaction.in(service.platformId).get("account", account)
    return known ? body(requestContext(service, transaction, { account, now, notifiedIn })) : accountInvalid(account)
  })

export interface AccountChange {
  /** The owner revokes the platform's access: from then on its calls get 403 `account_invalid`. */
  readonly revoke?: boolean
  readonly restore?: boolean
  /** Whether the platform controls the account, and so sees its bank accounts. */
  readonly controlled?: boolean
}

export const changeAccount = (service: Service, id: string, { controlled, restore, revoke }: AccountChange) =>
  happen(service, id, ({ platform }) => {
    if (revoke === true && restore === true) {
      return invalid("restore", "Access is either revoked or restored.")
    }
    const accounts = platform.objects
    if (revoke === true || restore === true) {
      accounts.put("connection", id, { account: id, revoked: revoke === true })
    }
    const account = accounts.get("account", id)
    if (controlled !== undefined && account !== undefined) {
      accounts.put("account", id, underControl(account, controlled))
    }
    return Effect.succeed({ id, revoked: accounts.get("connection", id)?.revoked === true })
  })

export type PayoutRequest =
  | ({ readonly account: string } & PayoutOrder)
  | { readonly account: string; readonly id: string; readonly state: PayoutState }

export const orderPayout = (
  service: Service,
  request: PayoutRequest
): Effect.Effect<Payout, ProviderError | EmulatorError> =>
  happen(service, request.account, (context) =>
    "id" in request ? movePayout(context, request.id, request.state) : makePayoutOf(context, request)
  )

export interface UpsellRequest {
  readonly account: string
  readonly price: string
  readonly upsell: string | null
}

/** Sets or removes a recurring price's upsell, of the same currency, as an owner does at the provider. */
export const setUpsell = (
  service: Service,
  { account, price, upsell }: UpsellRequest
): Effect.Effect<Omit<UpsellRequest, "account">, ProviderError | EmulatorError> =>
  happen(service, account, ({ objects }): Effect.Effect<Omit<UpsellRequest, "account">, ProviderError> => {
    if (upsell === null) {
      objects.remove("upsell", price)
      return Effect.succeed({ price, upsell })
    }
    const [from, to] = [objects.get("price", price), objects.get("price", upsell)]
    if (!from?.recurring || !to?.recurring || from.currency !== to.currency) {
      return invalid("upsell", "An upsell is from one recurring price to another of the same currency.")
    }
    objects.put("upsell", price, { price, upsell })
    return Effect.succeed({ price, upsell })
  })

export type RenewalRequest = { readonly account: string } & RenewalOrder

export const orderRenewal = (
  service: Service,
  request: RenewalRequest
): Effect.Effect<Subscription, ProviderError | EmulatorError> =>
  happen(service, request.account, (context) => renewSubscription(context, request))
