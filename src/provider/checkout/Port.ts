import type { SoldItems } from "../../events/stripe/Translate.ts"
import type { ConnectedAccount, ProviderCall, WriteOptions } from "../ProviderCall.ts"
import type { ProviderObject, ProviderPage } from "../Schemas.ts"
import type { CreateCheckoutSession, ListCheckoutSessions } from "./Api.ts"

export type { SoldItems }

/** The terms that a subscription gets from its prices, in addition to the caller's parameters. */
export interface SubscriptionTerms {
  /** Days before a new subscription's first charge; null for none. */
  readonly trialPeriodDays: number | null
}

/** The parameters of a new checkout session. */
export type NewCheckoutSession = CreateCheckoutSession & SubscriptionTerms

/** The provider's operations on checkout sessions. */
export interface CheckoutSessionsPort {
  /** Returns the session, and what it sells according to the provider. */
  readonly createCheckoutSession: (
    account: ConnectedAccount,
    params: NewCheckoutSession,
    options: WriteOptions
  ) => ProviderCall<{ readonly session: ProviderObject; readonly soldItems: SoldItems }>
  readonly retrieveCheckoutSession: (account: ConnectedAccount, id: string) => ProviderCall<ProviderObject>
  readonly listCheckoutSessions: (account: ConnectedAccount, params: ListCheckoutSessions) => ProviderCall<ProviderPage>
  /** What a session sells, read from its lines. */
  readonly listSessionItems: (account: ConnectedAccount, id: string) => ProviderCall<SoldItems>
}
