import { useEffect, useRef, useState } from "preact/hooks"
import { amountToText, digitsOf, formatAmount, readAmount, type WrittenAmount } from "../amounts.ts"
import { type Described, Field } from "./Field.tsx"

const valueOf = (written: WrittenAmount): number | undefined => {
  if (written.kind === "amount") return written.amount
  return written.kind === "empty" ? undefined : Number.NaN
}

const textOf = (amount: number | undefined, currency: string): string =>
  amount === undefined || Number.isNaN(amount) ? "" : amountToText(amount, currency)

/**
 * An amount field with the digits of its currency: `15.00`, `1500`, `1.500`. It shows the amount as understood, and
 * parses the text again if the currency changes.
 */
export const MoneyField = ({
  currency,
  onChange,
  value: amount,
  ...field
}: Described & {
  /** In the smallest currency unit; undefined if the field is empty, NaN if its text is not an amount. */
  readonly value: number | undefined
  /** An ISO 4217 code, which determines the number of digits. */
  readonly currency: string
  readonly onChange: (amount: number | undefined) => void
}) => {
  const [text, setText] = useState(() => textOf(amount, currency))
  const written = readAmount(text, currency)
  const value = valueOf(written)

  // The page has set another amount, such as everything that is left
  const given = useRef(amount)
  useEffect(() => {
    if (!Object.is(given.current, amount) && !Object.is(amount, value)) setText(textOf(amount, currency))
    given.current = amount
  }, [amount, currency, value])

  // The same text is another amount in another currency
  const shownIn = useRef(currency)
  useEffect(() => {
    if (shownIn.current === currency) return
    shownIn.current = currency
    if (!Object.is(value, amount)) onChange(value)
  }, [currency, value, amount, onChange])

  const understood =
    written.kind === "amount" && amountToText(written.amount, currency) !== text.trim()
      ? formatAmount(written.amount, currency)
      : undefined
  return (
    <Field {...field} problem={written.kind === "problem" ? written.problem : field.problem}>
      {(input) => (
        <div class="input-with-unit">
          <input
            {...input}
            aria-describedby={[`${input.id}-unit`, input["aria-describedby"] ?? ""].join(" ").trim()}
            type="text"
            inputMode={digitsOf(currency) === 0 ? "numeric" : "decimal"}
            autocomplete="off"
            value={text}
            placeholder={amountToText(0, currency)}
            onInput={(event) => {
              setText(event.currentTarget.value)
              onChange(valueOf(readAmount(event.currentTarget.value, currency)))
            }}
          />
          <span class="input-unit" id={`${input.id}-unit`}>
            {understood === undefined ? currency.toUpperCase() : `= ${understood}`}
          </span>
        </div>
      )}
    </Field>
  )
}
