import { useEffect, useState } from "preact/hooks"
import { Field } from "./Field.tsx"

/** Amounts in their currency's own digits: JPY has none, KWD three. */

const formats = new Map<string, Intl.NumberFormat | undefined>()

const formatOf = (currency: string): Intl.NumberFormat | undefined => {
  const code = currency.toUpperCase()
  if (!formats.has(code)) {
    formats.set(
      code,
      /^[A-Z]{3}$/.test(code) ? new Intl.NumberFormat(undefined, { style: "currency", currency: code }) : undefined
    )
  }
  return formats.get(code)
}

/** How many digits follow the currency's decimal point; two for one that is not known. */
export const digitsOf = (currency: string): number => formatOf(currency)?.resolvedOptions().maximumFractionDigits ?? 2

/** An amount of smallest units as a decimal number, exact however large it is. */
const decimal = (amount: bigint, digits: number): string => {
  const sign = amount < 0n ? "-" : ""
  const text = String(amount < 0n ? -amount : amount).padStart(digits + 1, "0")
  return digits === 0 ? `${sign}${text}` : `${sign}${text.slice(0, -digits)}.${text.slice(-digits)}`
}

/** An amount in smallest units (a whole number, or its decimal text) as people write it. */
export const formatMoney = (amount: number | string | bigint, currency: string): string => {
  const format = formatOf(currency)
  const exact = decimal(BigInt(amount), digitsOf(currency))
  // A number's text is formatted without the loss that a number beyond 2^53 would have
  return format === undefined
    ? `${exact} ${currency.toUpperCase()}`
    : format.format(exact as Intl.StringNumericLiteral)
}

export const Money = (props: {
  /** In the currency's smallest unit. */
  readonly amount: number | string | bigint | null | undefined
  readonly currency: string | null | undefined
}) =>
  props.amount === null || props.amount === undefined || props.currency === null || props.currency === undefined ? (
    <span class="quiet">–</span>
  ) : (
    <span class="money">{formatMoney(props.amount, props.currency)}</span>
  )

/** What people type as smallest units; undefined if it is no amount of this currency. */
export const parseMoney = (text: string, currency: string): number | undefined => {
  const digits = digitsOf(currency)
  const written = text.trim().replaceAll(/[\s\u00a0\u202f]/g, "")
  // One mark is the decimal point, whichever of the two it is
  const [, whole, fraction = ""] = /^(\d{1,15})(?:[.,](\d*))?$/.exec(written) ?? []
  if (whole === undefined || fraction.length > digits) return undefined
  const amount = Number(`${whole}${fraction.padEnd(digits, "0")}`)
  return Number.isSafeInteger(amount) ? amount : undefined
}

/** An amount to type; gives whole smallest units, undefined while it is none. */
export const MoneyField = (props: {
  readonly name: string
  readonly label: string
  readonly amount: number | undefined
  readonly currency: string
  readonly onChange: (amount: number | undefined) => void
  readonly hint?: string | undefined
  readonly required?: boolean | undefined
}) => {
  const { amount, currency, onChange } = props
  const digits = digitsOf(currency)
  const written = amount === undefined ? "" : decimal(BigInt(amount), digits)
  const [text, setText] = useState(written)
  const [left, setLeft] = useState(false)
  // Another currency has other digits: what is typed stays, and is read again
  useEffect(() => {
    if (text !== "") onChange(parseMoney(text, currency))
  }, [currency])
  // Set from outside, such as by a form that is emptied
  useEffect(() => {
    if (amount !== undefined && amount !== parseMoney(text, currency)) setText(written)
  }, [amount])
  const wrong = left && text.trim() !== "" && parseMoney(text, currency) === undefined
  const rule =
    digits === 0
      ? `${currency.toUpperCase()} has no decimals: type a whole number.`
      : `Type an amount with at most ${digits} decimals.`
  return (
    <Field {...props} problem={wrong ? rule : undefined}>
      {(field) => (
        <div class="input-with-unit">
          <input
            {...field}
            type="text"
            inputMode={digits === 0 ? "numeric" : "decimal"}
            autocomplete="off"
            value={text}
            onInput={(event) => {
              setText(event.currentTarget.value)
              onChange(parseMoney(event.currentTarget.value, currency))
            }}
            onBlur={() => setLeft(true)}
          />
          <span class="input-unit">{currency.toUpperCase()}</span>
        </div>
      )}
    </Field>
  )
}
