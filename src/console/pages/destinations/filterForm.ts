import type { AnswerOf } from "../../api/Types.ts"
import { filled, type Problems } from "../../components/forms/Reader.ts"
import { type FilterName, filterNames } from "../events/eventTypes.ts"

/**
 * Converts a destination's filters between the form and the API. Validates while typing with the contract's bounds
 * (7.2); the service decides. Pure.
 */

export type Filters = AnswerOf<"endpoints", "get">["filters"]

/** A metadata pair as typed; `id` identifies its row while editing. */
export interface MetadataRow {
  readonly id: number
  readonly key: string
  readonly value: string
}

/** The form's values. Lists are separated by spaces, commas, semicolons or new lines. */
const noPairs: ReadonlyArray<MetadataRow> = []

export const maxMetadataPairs = 10
const maxCurrencies = 10
const maxIds = 20

export const emptyFilterForm = {
  currencies: "",
  amountMin: "",
  amountMax: "",
  products: "",
  prices: "",
  metadata: noPairs
}
export type FilterForm = Readonly<typeof emptyFilterForm>

export const formOfFilters = (filters: Filters): FilterForm => ({
  currencies: (filters.currencies ?? []).join(", "),
  amountMin: filters.amountMin === undefined ? "" : String(filters.amountMin),
  amountMax: filters.amountMax === undefined ? "" : String(filters.amountMax),
  products: (filters.products ?? []).join("\n"),
  prices: (filters.prices ?? []).join("\n"),
  metadata: Object.entries(filters.metadata ?? {}).map(([key, value], id) => ({ id, key, value }))
})

const itemsOf = (text: string): ReadonlyArray<string> => [
  ...new Set(text.split(/[\s,;]+/).filter((item) => item !== ""))
]

const listProblem = (items: ReadonlyArray<string>, max: number, form: RegExp, rule: string): string | undefined => {
  const wrong = items.find((item) => !form.test(item))
  if (wrong !== undefined) return `“${wrong.length > 40 ? `${wrong.slice(0, 40)}…` : wrong}” ${rule}`
  return items.length > max ? `At most ${max}: there are ${items.length}` : undefined
}

const amountOf = (text: string): { readonly amount?: number; readonly problem?: string } => {
  const written = text.trim()
  if (written === "") return {}
  const amount = Number(written)
  return /^\d{1,16}$/.test(written) && Number.isSafeInteger(amount)
    ? { amount }
    : { problem: "Write a whole number in the smallest unit, in digits only: 1500 is R$15.00, or ¥1500" }
}

const keyForm = /^[^\s[\]]{1,40}$/u

const pairsOf = (
  rows: ReadonlyArray<MetadataRow>
): { readonly metadata: Readonly<Record<string, string>>; readonly problem?: string } => {
  const filled = rows.filter(({ key, value }) => key !== "" || value !== "")
  const metadata = Object.fromEntries(filled.map(({ key, value }) => [key, value]))
  const problem = (() => {
    if (filled.length > maxMetadataPairs) return `At most ${maxMetadataPairs} pairs: there are ${filled.length}`
    for (const { key, value } of filled) {
      if (key === "") return "A pair has a value, but no key"
      if (!keyForm.test(key))
        return `The key “${key.slice(0, 40)}” must have 1 to 40 characters, without spaces, [ and ]`
      if (value === "") return `The key “${key}” needs a value of 1 to 500 characters`
      const { length } = [...value]
      if (length > 500) return `The value of “${key}” has ${length} characters; at most 500 are allowed`
    }
    return Object.keys(metadata).length < filled.length ? "Two pairs have the same key" : undefined
  })()
  return { metadata, ...(problem === undefined ? {} : { problem }) }
}

/** Parses the form into filters, which are valid only if there are no problems. */
export const filtersOfForm = (form: FilterForm): { readonly filters: Filters; readonly problems: Problems } => {
  const currencies = itemsOf(form.currencies.toLowerCase())
  const products = itemsOf(form.products)
  const prices = itemsOf(form.prices)
  const least = amountOf(form.amountMin)
  const greatest = amountOf(form.amountMax)
  const { metadata, problem: pairProblem } = pairsOf(form.metadata)
  const crossed =
    least.amount !== undefined && greatest.amount !== undefined && least.amount > greatest.amount
      ? "The least amount must not be greater than the greatest"
      : undefined
  const problems = filled({
    "filters.currencies": listProblem(
      currencies,
      maxCurrencies,
      /^[a-z]{3}$/,
      "is not a currency's code of three letters, such as brl"
    ),
    "filters.amountMin": least.problem ?? crossed,
    "filters.amountMax": greatest.problem,
    "filters.products": listProblem(
      products,
      maxIds,
      /^prod_[A-Za-z0-9_]{1,250}$/,
      "is not a product's id, which begins with prod_"
    ),
    "filters.prices": listProblem(
      prices,
      maxIds,
      /^price_[A-Za-z0-9_]{1,249}$/,
      "is not a price's id, which begins with price_"
    ),
    "filters.metadata": pairProblem
  })
  return {
    filters: {
      ...filled({ currencies, amountMin: least.amount, amountMax: greatest.amount, products, prices }),
      ...(Object.keys(metadata).length === 0 ? {} : { metadata })
    },
    problems
  }
}

export const setFilters = (filters: Filters): ReadonlyArray<FilterName> =>
  filterNames.filter((name) => filters[name] !== undefined)

export const filterSentences = (filters: Filters): ReadonlyArray<string> => [
  ...(filters.currencies === undefined
    ? []
    : [`in ${filters.currencies.map((currency) => currency.toUpperCase()).join(" or ")}`]),
  ...(filters.amountMin === undefined ? [] : [`of at least ${filters.amountMin} in the smallest unit`]),
  ...(filters.amountMax === undefined ? [] : [`of at most ${filters.amountMax} in the smallest unit`]),
  ...(filters.products === undefined ? [] : [`selling ${filters.products.join(" or ")}`]),
  ...(filters.prices === undefined ? [] : [`at ${filters.prices.join(" or ")}`]),
  ...Object.entries(filters.metadata ?? {}).map(([key, value]) => `with ${key} = ${value}`)
]
