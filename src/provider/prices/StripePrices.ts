import { Effect } from "effect"
import type Stripe from "stripe"
import { inOurNames } from "../RefusedFields.ts"
import { explainRounding } from "../RoundedAmounts.ts"
import { named, one, page, type StripeCall } from "../stripe/StripeCall.ts"
import { metadataParams } from "../stripe/StripeMetadata.ts"
import type { CreatePrice, ListPrices, UpdatePrice } from "./Api.ts"
import type { PricesPort } from "./Port.ts"

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

export const stripePrices = (call: StripeCall): PricesPort => ({
  createPrice: (account, params, { idempotencyKey }) =>
    one(
      call("prices.create", account, (client, scope) =>
        client.prices.create(priceParams(params), { ...scope, idempotencyKey })
      )
    ).pipe(Effect.mapError(inOurNames({ billing_scheme: "tiers" })), Effect.mapError(explainRounding(params.currency))),
  updatePrice: (account, id, changes, { idempotencyKey }) =>
    named(
      call("prices.update", account, (client, scope) =>
        client.prices.update(id, priceChangeParams(changes), { ...scope, idempotencyKey })
      )
    ),
  retrievePrice: (account, id) =>
    named(call("prices.retrieve", account, (client, scope) => client.prices.retrieve(id, expanded, scope))),
  listPrices: (account, params) =>
    page(call("prices.list", account, (client, scope) => client.prices.list(pricesParams(params), scope)))
})
