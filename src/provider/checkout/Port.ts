import type { SoldItems } from "../../events/stripe/Translate.ts"
import type { OwnReturnUrls } from "../../identity/return-urls/ReturnUrls.ts"
import type { ConnectedAccount, ProviderCall, WriteOptions } from "../ProviderCall.ts"
import type { ProviderObject, ProviderPage } from "../Schemas.ts"
import type { CreateCheckoutSession, ListCheckoutSessions, ListLineItems } from "./Api.ts"
import type { SessionCollection } from "./Collection.ts"

export type { SoldItems }

/** The terms that a subscription gets from its prices, in addition to the caller's parameters. */
export interface SubscriptionTerms {
  /** Days before a new subscription's first charge; null for none. */
  readonly trialPeriodDays: number | null
}

export interface SessionPage {
  /** The session's metadata `svc_checkout_page`. */
  readonly id: string
  readonly collect: SessionCollection
}

export type NewCheckoutSession = CreateCheckoutSession &
  SubscriptionTerms & {
    /** The organization's own pages that payers return to; null for the operator's. */
    readonly returnUrls: OwnReturnUrls
    /** Absent if it is created by a request to the API. */
    readonly page?: SessionPage
  }

/** The provider's operations on checkout sessions, which are returned without their items. */
export interface CheckoutSessionsPort {
  /** Also returns the items that the session sells, according to the provider. */
  readonly createCheckoutSession: (
    account: ConnectedAccount,
    params: NewCheckoutSession,
    options: WriteOptions
  ) => ProviderCall<{ readonly session: ProviderObject; readonly soldItems: SoldItems }>
  readonly retrieveCheckoutSession: (account: ConnectedAccount, id: string) => ProviderCall<ProviderObject>
  readonly listCheckoutSessions: (account: ConnectedAccount, params: ListCheckoutSessions) => ProviderCall<ProviderPage>
  /** Expires an open session; returns an already expired one unchanged. */
  readonly expireCheckoutSession: (
    account: ConnectedAccount,
    id: string,
    options: WriteOptions
  ) => ProviderCall<ProviderObject>
  /** A page of a session's lines, in their order. */
  readonly listSessionLines: (
    account: ConnectedAccount,
    id: string,
    params: ListLineItems
  ) => ProviderCall<ProviderPage>
  /** The prices and products that a session sells, read from all of its lines. */
  readonly listSessionItems: (account: ConnectedAccount, id: string) => ProviderCall<SoldItems>
}
