import type { Price } from "../../src/emulator/Records.ts"

export const priceRecord = (fields: Partial<Price>): Price => ({
  id: "price_a",
  object: "price",
  active: true,
  billing_scheme: "per_unit",
  created: 0,
  currency: "brl",
  custom_unit_amount: null,
  livemode: false,
  lookup_key: null,
  metadata: {},
  nickname: null,
  product: "prod_a",
  recurring: null,
  tax_behavior: null,
  tiers_mode: null,
  transform_quantity: null,
  type: "one_time",
  unit_amount: null,
  unit_amount_decimal: null,
  ...fields
})
