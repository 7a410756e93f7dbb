import type { ConnectedAccount, ProviderCall, WriteOptions } from "../ProviderCall.ts"
import type { ProviderObject, ProviderPage } from "../Schemas.ts"
import type { CreatePromotionCode, ListPromotionCodes, UpdatePromotionCode } from "./Api.ts"

/** The parameters of a new coupon, whose id the service chooses. */
export type NewCoupon = Pick<CreatePromotionCode, "discount" | "duration" | "duration_in_months" | "products"> & {
  readonly id: string
}

/** The parameters of a new promotion code for an existing coupon. */
export type NewPromotionCode = Pick<CreatePromotionCode, "code" | "max_redemptions" | "expires_at" | "metadata"> & {
  readonly coupon: string
}

/** The provider's operations on coupons and promotion codes; it returns codes with their coupon and its products. */
export interface PromotionCodesPort {
  readonly createCoupon: (
    account: ConnectedAccount,
    params: NewCoupon,
    options: WriteOptions
  ) => ProviderCall<ProviderObject>
  /** Deletes a coupon, which invalidates its promotion codes. */
  readonly deleteCoupon: (account: ConnectedAccount, id: string) => ProviderCall<void>

  readonly createPromotionCode: (
    account: ConnectedAccount,
    params: NewPromotionCode,
    options: WriteOptions
  ) => ProviderCall<ProviderObject>
  readonly updatePromotionCode: (
    account: ConnectedAccount,
    id: string,
    changes: UpdatePromotionCode,
    options: WriteOptions
  ) => ProviderCall<ProviderObject>
  readonly retrievePromotionCode: (account: ConnectedAccount, id: string) => ProviderCall<ProviderObject>
  /** `code` matches as payers enter it, in upper or lower case. */
  readonly listPromotionCodes: (
    account: ConnectedAccount,
    params: ListPromotionCodes & { readonly code?: string }
  ) => ProviderCall<ProviderPage>
}
