import { formatAmount } from "./amounts.ts"

export { digitsOf, formatAmount as formatMoney } from "./amounts.ts"
export { MoneyField, type MoneyFieldProps } from "./MoneyField.tsx"

export interface MoneyProps {
  /** In the smallest currency unit, as a number or as text; a dash is shown without it. */
  readonly amount: number | bigint | string | null | undefined
  /** An ISO 4217 code, in any case. */
  readonly currency: string | null | undefined
}

/** An amount with its currency's symbol and digits, which never wraps. */
export const Money = ({ amount, currency }: MoneyProps) =>
  amount === null || amount === undefined || currency === null || currency === undefined ? (
    <span class="quiet">–</span>
  ) : (
    <span class="money">{formatAmount(amount, currency)}</span>
  )
