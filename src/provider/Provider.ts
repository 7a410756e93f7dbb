import { Context, type Effect } from "effect"
import type { SignatureInvalid } from "../Errors.ts"
import type { Environment } from "../Settings.ts"
import type { CreateCheckoutSession, ListCheckoutSessions } from "./CheckoutSessionsApi.ts"
import type { CreatePrice, ListPrices } from "./PricesApi.ts"
import type { CreateProduct, ListProducts } from "./ProductsApi.ts"
import type { AccountAccessRevoked, ProviderFailure } from "./ProviderErrors.ts"
import type { ProviderObject, ProviderPage } from "./Schemas.ts"

/** The account that a call acts on, always resolved by the service from the authorized organization. */
export interface ConnectedAccount {
  readonly environment: Environment
  readonly accountId: string
}

/** A notification whose signature and time were found good under a secret of this environment. */
export interface VerifiedNotification {
  readonly environment: Environment
  /** The parsed JSON, not looked into yet. */
  readonly event: unknown
}

/** A write's key at the provider; the same key with the same parameters makes one object. */
export interface WriteOptions {
  readonly idempotencyKey: string
}

type Call<A> = Effect.Effect<A, ProviderFailure | AccountAccessRevoked>

/**
 * The payment provider, as the service uses it. Replace this layer to run on another provider or a test double of your
 * own: parameters and answers are JSON in the provider's names, errors are the documented ones.
 */
export class Provider extends Context.Tag("connected-payments/provider/Provider")<
  Provider,
  {
    readonly retrieveAccount: (account: ConnectedAccount) => Call<ProviderObject>
    /** Whether the account has charges already: decides whether its first payment here is a milestone. */
    readonly hasCharges: (account: ConnectedAccount) => Call<boolean>

    readonly createProduct: (
      account: ConnectedAccount,
      params: CreateProduct,
      options: WriteOptions
    ) => Call<ProviderObject>
    /** With `default_price` expanded. */
    readonly retrieveProduct: (account: ConnectedAccount, id: string) => Call<ProviderObject>
    readonly listProducts: (account: ConnectedAccount, params: ListProducts) => Call<ProviderPage>

    readonly createPrice: (
      account: ConnectedAccount,
      params: CreatePrice,
      options: WriteOptions
    ) => Call<ProviderObject>
    /** With `tiers` expanded. */
    readonly retrievePrice: (account: ConnectedAccount, id: string) => Call<ProviderObject>
    readonly listPrices: (account: ConnectedAccount, params: ListPrices) => Call<ProviderPage>

    /** Answers the session, and what it sells as the provider understood it. */
    readonly createCheckoutSession: (
      account: ConnectedAccount,
      params: CreateCheckoutSession,
      options: WriteOptions
    ) => Call<{ readonly session: ProviderObject; readonly soldItems: SoldItems }>
    readonly retrieveCheckoutSession: (account: ConnectedAccount, id: string) => Call<ProviderObject>
    readonly listCheckoutSessions: (account: ConnectedAccount, params: ListCheckoutSessions) => Call<ProviderPage>

    /** Checks a notification's signature over its exact bytes, and its time in both directions (5 minutes). */
    readonly verifyNotification: (
      body: Uint8Array,
      signatureHeader: string | undefined
    ) => Effect.Effect<VerifiedNotification, SignatureInvalid>
  }
>() {}

/** The prices and products of a session or payment link, each once, in the order of its lines. */
export interface SoldItems {
  readonly priceIds: ReadonlyArray<string>
  readonly productIds: ReadonlyArray<string>
}
