import type { RequestOf } from "../../api/Types.ts"
import { readAmount } from "../../components/amounts.ts"
import { eventIdForm } from "../deliveries/historyFilters.ts"

/** Interprets the text of the search field. Pure. */

/** The page of an id, below the workspace; undefined if the text is not an id with a page. */
export const pageOf = (text: string): string | undefined => {
  if (/^(?:pi|ch|py|cs)_\w{1,250}$/.test(text)) return `/payments/${text}`
  if (/^prod_\w{1,250}$/.test(text)) return `/products/${text}`
  return eventIdForm.test(text) ? `/events/${text}` : undefined
}

export type Asked = RequestOf<"search", "payments">["payload"]

/** An amount, which may have a symbol before it and a code before or after it: `R$49.90`, `49,90`, `1500 JPY`. */
const amountForm = /^(?:([a-z]{3})\s*)?[^\w\s.,-]{0,3}[a-z]?[$€£¥]?\s*([\d.,]{1,20})(?:\s*([a-z]{3}))?$/i

const amountIn = (text: string): Asked | undefined => {
  const [, before, digits, after] = amountForm.exec(text) ?? []
  if (digits === undefined) return undefined
  const currency = (before ?? after)?.toLowerCase()
  // Without a code, as most currencies are written
  const written = readAmount(digits, currency ?? "usd")
  if (written.kind !== "amount") return undefined
  return { amount: written.amount, ...(currency === undefined ? {} : { currency }) }
}

/** The searches that a text asks for: by e-mail address, or by order reference and, if it reads as one, by amount. */
export const searchesOf = (text: string): ReadonlyArray<Asked> => {
  if (/^\S+@\S+$/.test(text)) return [{ email: text }]
  const amount = amountIn(text)
  return [{ client_reference_id: text }, ...(amount === undefined ? [] : [amount])]
}
