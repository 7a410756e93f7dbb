import { Arbitrary, FastCheck, Schema } from "effect"
import { CreateCheckoutSession } from "../../src/payments/checkout-sessions/Api.ts"
import { CreatePaymentLink, UpdatePaymentLink } from "../../src/payments/payment-links/Api.ts"
import { CreatePrice, ListPrices, UpdatePrice } from "../../src/payments/prices/Api.ts"
import {
  CustomUnitAmount,
  RecurringWithTrial,
  type Tiers,
  TransformQuantity
} from "../../src/payments/prices/PriceFields.ts"
import { CreateProduct, UpdateProduct } from "../../src/payments/products/Api.ts"
import { CreatePromotionCode, UpdatePromotionCode } from "../../src/payments/promotion-codes/Api.ts"
import { Currency, Metadata, ProviderText, referenceTo, TaxBehavior, UnitAmount } from "../../src/payments/Schemas.ts"

const sometimes = <A>(arbitrary: FastCheck.Arbitrary<A>) => FastCheck.option(arbitrary, { nil: undefined })

const present = (fields: object): unknown => JSON.parse(JSON.stringify(fields))

const amount = Arbitrary.make(UnitAmount)

/** 1 to 25 tiers: rising limits, an amount in each. */
const tiers: FastCheck.Arbitrary<typeof Tiers.Type> = FastCheck.uniqueArray(
  FastCheck.integer({ min: 1, max: 999_999 }),
  {
    maxLength: 24
  }
).chain((limits) =>
  FastCheck.tuple(
    ...[...limits.toSorted((a, b) => a - b), "inf" as const].map((up_to) =>
      FastCheck.oneof(
        amount.map((unit_amount) => ({ up_to, unit_amount })),
        amount.map((flat_amount) => ({ up_to, flat_amount })),
        FastCheck.tuple(amount, amount).map(([unit_amount, flat_amount]) => ({ up_to, unit_amount, flat_amount }))
      )
    )
  )
)

const costs = FastCheck.oneof(
  FastCheck.record({
    unit_amount: amount,
    transform_quantity: sometimes(Arbitrary.make(TransformQuantity)),
    recurring: sometimes(Arbitrary.make(RecurringWithTrial))
  }),
  FastCheck.record({ custom_unit_amount: Arbitrary.make(CustomUnitAmount) }),
  FastCheck.record({
    tiers,
    tiers_mode: FastCheck.constantFrom("graduated", "volume"),
    recurring: sometimes(Arbitrary.make(RecurringWithTrial))
  })
)

const productOfPrice = FastCheck.oneof(
  FastCheck.record({ product: Arbitrary.make(referenceTo("product")) }),
  FastCheck.record({
    product_data: FastCheck.record({
      name: Arbitrary.make(ProviderText(250)),
      active: sometimes(FastCheck.boolean()),
      metadata: sometimes(Arbitrary.make(Metadata))
    })
  })
)

/** Bodies of `POST P/prices`, every way of saying what a price costs as often as another. */
export const prices: FastCheck.Arbitrary<CreatePrice> = FastCheck.tuple(
  productOfPrice,
  costs,
  FastCheck.record({
    currency: Arbitrary.make(Currency),
    nickname: sometimes(Arbitrary.make(ProviderText(250))),
    lookup_key: sometimes(Arbitrary.make(ProviderText(200))),
    tax_behavior: sometimes(Arbitrary.make(TaxBehavior)),
    metadata: sometimes(Arbitrary.make(Metadata))
  })
).map(([product, cost, rest]) => Schema.decodeUnknownSync(CreatePrice)(present({ ...rest, ...product, ...cost })))

export const products = Arbitrary.make(CreateProduct)
export const productChanges = Arbitrary.make(UpdateProduct)
export const promotionCodes = Arbitrary.make(CreatePromotionCode)
export const promotionCodeChanges = Arbitrary.make(UpdatePromotionCode)
export const paymentLinks = Arbitrary.make(CreatePaymentLink)
export const paymentLinkChanges = Arbitrary.make(UpdatePaymentLink)
export const priceChanges = Arbitrary.make(UpdatePrice)
export const priceLists = Arbitrary.make(Schema.typeSchema(ListPrices))
export const checkoutSessions = Arbitrary.make(CreateCheckoutSession)
