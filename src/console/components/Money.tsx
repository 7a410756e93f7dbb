import { formatAmount } from "./amounts.ts"

export { digitsOf, formatAmount as formatMoney } from "./amounts.ts"
export { MoneyField, type MoneyFieldProps } from "./MoneyField.tsx"

/** What {@link Money} shows. */
export interface MoneyProps {
  /** In the smallest unit of the currency, as a whole number or its text; a dash is shown if there is none. */
  readonly amount: number | bigint | string | null | undefined
  /** An ISO 4217 code, in any case. */
  readonly currency: string | null | undefined
}

/** An amount with its currency and the digits that the currency has, which never breaks across lines. */
export const Money = ({ amount, currency }: MoneyProps) =>
  amount === null || amount === undefined || currency === null || currency === undefined ? (
    <span class="quiet">–</span>
  ) : (
    <span class="money">{formatAmount(amount, currency)}</span>
  )
