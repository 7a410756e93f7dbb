import { formatAmount } from "./amounts.ts"

/** What {@link Money} shows. */
export interface MoneyProps {
  /** In the smallest unit of the currency; a dash is shown if the provider sent none. */
  readonly amount: number | null | undefined
  /** An ISO 4217 code, in any case. */
  readonly currency: string | null | undefined
}

/** An amount with its currency and the digits that the currency has, which never breaks across lines. */
export const Money = ({ amount, currency }: MoneyProps) =>
  typeof amount === "number" && typeof currency === "string" ? (
    <span class="money">{formatAmount(amount, currency)}</span>
  ) : (
    <span class="money">
      <span aria-hidden="true">–</span>
      <span class="visually-hidden">no amount</span>
    </span>
  )
