import { Effect, Schema } from "effect"
import { onAccount, type RequestContext } from "../api/Route.ts"
import { type RenewalOrder, renewSubscription } from "../checkout/Renewal.ts"
import type { EmulatorError } from "../EmulatorError.ts"
import { isAccountId, newId } from "../Ids.ts"
import { accountInvalid, invalid, type ProviderError } from "../ProviderError.ts"
import type { Payout, Subscription } from "../Records.ts"
import { makePayoutOf, movePayout, type PayoutOrder, type PayoutState } from "../resources/balance/Payouts.ts"
import { makeAccount, underControl } from "../resources/connect/Accounts.ts"
import { type Service, transactNow } from "../Service.ts"
import type { ApiVersion } from "../Versions.ts"
import { maybe } from "./ControlInput.ts"

export const isTarget = (url: string): boolean => URL.canParse(url) && /^https?:\/\//i.test(url)

/** Creates an account if it is missing, the platform's own or a connected one; without an id, always a new one. */
export const keepAccount = ({ platformId, store }: Pick<Service, "platformId" | "store">, id?: string) =>
  transactNow(store, (transaction, now) =>
    Effect.sync(() => {
      const accounts = transaction.in(platformId)
      const account = id ?? newId("acct_")
      if (accounts.get("account", account) === undefined) accounts.put("account", account, makeAccount(account, now))
      return account
    })
  )

/** Keeps a connected account. Error (400): an id other than `acct_` and 16 letters or digits. */
export const ensureAccount = (service: Service, id?: string): Effect.Effect<string, ProviderError | EmulatorError> =>
  id === undefined || isAccountId(id)
    ? keepAccount(service, id)
    : invalid("id", "An account id is `acct_` and 16 letters or digits.")

/** As a change without an API request, notified in a version, by default the target's; an unknown account is a 403. */
export const happen = <A>(
  service: Service,
  account: string,
  body: (context: RequestContext) => Effect.Effect<A, ProviderError>,
  notifiedIn?: ApiVersion
): Effect.Effect<A, ProviderError | EmulatorError> =>
  onAccount(service, { account, notifiedIn }, (context) =>
    context.connected && context.platform.objects.get("account", account) ? body(context) : accountInvalid(account)
  )

export const AccountChange = Schema.Struct({
  /** The owner revokes the platform's access: from then on its calls get 403 `account_invalid`. */
  revoke: maybe(Schema.Boolean),
  restore: maybe(Schema.Boolean),
  /** Whether the platform controls the account, and so sees its bank accounts. */
  controlled: maybe(Schema.Boolean)
})

export const changeAccount = (
  service: Service,
  id: string,
  { controlled, restore, revoke }: typeof AccountChange.Type
) =>
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

export const UpsellRequest = Schema.Struct({
  account: Schema.String,
  price: Schema.String,
  upsell: Schema.NullOr(Schema.String)
})

/** Sets or removes a recurring price's upsell, of the same currency, as an owner does at the provider. */
export const setUpsell = (service: Service, { account, price, upsell }: typeof UpsellRequest.Type) =>
  happen(service, account, ({ objects }) => {
    const [from, to] = [objects.get("price", price), objects.get("price", upsell ?? "")]
    if (upsell === null) {
      objects.remove("upsell", price)
    } else if (!from?.recurring || !to?.recurring || from.currency !== to.currency) {
      return invalid("upsell", "An upsell is from one recurring price to another of the same currency.")
    } else {
      objects.put("upsell", price, { price, upsell })
    }
    return Effect.succeed({ price, upsell })
  })

export type RenewalRequest = { readonly account: string } & RenewalOrder

export const orderRenewal = (
  service: Service,
  request: RenewalRequest
): Effect.Effect<Subscription, ProviderError | EmulatorError> =>
  happen(service, request.account, (context) => renewSubscription(context, request))
