import { formatAmount } from "./amounts.ts"

export const Money = ({
  amount,
  currency
}: {
  /** In the smallest currency unit, as a number or as text. */
  readonly amount: number | bigint | string | null | undefined
  /** An ISO 4217 code, in any case. */
  readonly currency: string | null | undefined
}) =>
  amount === null || amount === undefined || currency === null || currency === undefined ? (
    <span class="quiet">–</span>
  ) : (
    <span class="money">{formatAmount(amount, currency)}</span>
  )
