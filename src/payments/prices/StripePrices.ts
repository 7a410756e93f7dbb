import { Effect } from "effect"
import type Stripe from "stripe"
import type { ChangeObject, CreateObject, ListObjects, RetrieveObject } from "../ProviderCall.ts"
import { inOurNames } from "../RefusalReasons.ts"
import { explainRounding } from "../RoundedAmounts.ts"
import type { StripeCall } from "../stripe/StripeCall.ts"
import { metadataParams, stripeObjects } from "../stripe/StripeObjects.ts"
import type { CreatePrice, ListPrices, UpdatePrice } from "./Api.ts"

/** The provider's operations on prices, which it returns with their `tiers`. */
export interface PricesPort {
  readonly createPrice: CreateObject<CreatePrice>
  /** Absent fields stay as they are; past sales at a price that is deactivated are unchanged. */
  readonly updatePrice: ChangeObject<UpdatePrice>
  readonly retrievePrice: RetrieveObject
  readonly listPrices: ListObjects<ListPrices>
}

/** Prices, single or listed, are returned with their tiers (contract 4.13). */
const expanded = { expand: ["tiers"] }
const expandedEach = { expand: ["data.tiers"] }

/** A recurrence without `usage_type`: metered prices are not supported, so it is dropped (contract 4.6). */
export const withoutUsage = <A extends { readonly usage_type?: string }>(recurring: A): Omit<A, "usage_type"> => {
  const { usage_type: _, ...supported } = recurring
  return supported
}

/** An amount that the payer chooses, with the `enabled` that Stripe requires. */
export const chosenByPayer = <A extends object>(amount: A) => ({ ...amount, enabled: true as const })

export const priceParams = (params: CreatePrice): Stripe.PriceCreateParams => {
  const { custom_unit_amount, recurring, tiers, ...rest } = params
  return {
    ...rest,
    ...(custom_unit_amount === undefined ? {} : { custom_unit_amount: chosenByPayer(custom_unit_amount) }),
    ...(recurring === undefined ? {} : { recurring: withoutUsage(recurring) }),
    ...(tiers === undefined ? {} : { billing_scheme: "tiered", tiers: tiers.map((tier) => ({ ...tier })) }),
    ...expanded
  }
}

/** The parameters of a price change. In Stripe's API, an empty string removes a text. */
export const priceChangeParams = ({
  lookup_key,
  metadata,
  nickname,
  ...rest
}: UpdatePrice): Stripe.PriceUpdateParams => ({
  ...rest,
  ...(lookup_key === undefined ? {} : { lookup_key: lookup_key ?? "" }),
  ...(nickname === undefined ? {} : { nickname: nickname ?? "" }),
  ...metadataParams(metadata),
  ...expanded
})

export const pricesParams = ({ lookup_keys, ...rest }: ListPrices): Stripe.PriceListParams => ({
  ...rest,
  ...(lookup_keys === undefined ? {} : { lookup_keys: [...lookup_keys] }),
  ...expandedEach
})

export const stripePrices = (call: StripeCall): PricesPort => {
  const { create, list, retrieve, update } = stripeObjects(call)
  const createPrice = create("prices.create", (client) => client.prices, priceParams)
  return {
    createPrice: (account, params, options) =>
      createPrice(account, params, options).pipe(
        Effect.mapError(inOurNames({ billing_scheme: "tiers" })),
        Effect.mapError(explainRounding(params.currency))
      ),
    updatePrice: update("prices.update", (client) => client.prices, priceChangeParams),
    retrievePrice: retrieve("prices.retrieve", (client) => client.prices, expanded),
    listPrices: list("prices.list", (client) => client.prices, pricesParams)
  }
}
