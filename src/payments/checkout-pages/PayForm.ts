import { Effect } from "effect"
import { ValidationFailed } from "../../platform/errors/Errors.ts"
import type { Chosen, FoundPage } from "./CheckoutPages.ts"
import { type Entered, fieldOf, versionOf } from "./PayPage.ts"

/** Parses a payer's form, which is untrusted input. */

/** Maximum size of a form; one with 20 items is below 1 KiB. */
export const maxFormBytes = 8 * 1024

/** Maximum number of fields, more than a form with 20 items and its hidden fields has. */
const maxFields = 40

export type Choice =
  | { readonly kind: "chosen"; readonly chosen: ReadonlyArray<Chosen>; readonly attempt: string }
  /** The items changed after the payer saw them. */
  | { readonly kind: "changed" }
  | { readonly kind: "refused"; readonly entered: Entered; readonly alert: string }

const utf8 = new TextDecoder("utf-8", { fatal: true })

const malformed = () => new ValidationFailed({ message: "The form is not one of this page." })

export const readFields = (bytes: Uint8Array): Effect.Effect<ReadonlyMap<string, string>, ValidationFailed> =>
  Effect.suspend(() => {
    const written = Effect.try({ try: () => utf8.decode(bytes), catch: malformed })
    return Effect.flatMap(written, (text) => {
      if (text.split("&", maxFields + 1).length > maxFields) return malformed()
      const pairs = [...new URLSearchParams(text)]
      const fields = new Map(pairs)
      return fields.size === pairs.length ? Effect.succeed(fields) : malformed()
    })
  })

const uuid = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

/** The quantity of an item, or an error message. */
const quantityOf = (
  { adjustableQuantity, quantity }: FoundPage["items"][number],
  written: string | undefined
): number | string => {
  if (adjustableQuantity === null) return quantity
  const { maximum, minimum } = adjustableQuantity
  const text = (written ?? "").trim()
  const value = /^\d{1,4}$/.test(text) ? Number(text) : Number.NaN
  return value >= minimum && value <= maximum ? value : `Enter a whole number from ${minimum} to ${maximum}.`
}

/** Returns a payer's choice on a page. Fails if the form has fields that the page's form does not have. */
export const choiceOf = (
  page: FoundPage,
  fields: ReadonlyMap<string, string>
): Effect.Effect<Choice, ValidationFailed> =>
  Effect.suspend((): Effect.Effect<Choice, ValidationFailed> => {
    const attempt = fields.get("attempt") ?? ""
    if (!uuid.test(attempt) || !fields.has("version")) return malformed()
    if (fields.get("version") !== versionOf(page)) return Effect.succeed({ kind: "changed" })
    const adjustable = page.items.flatMap((item, index) => (item.adjustableQuantity === null ? [] : [index]))
    const known = new Set(["attempt", "version", ...adjustable.map(fieldOf)])
    if ([...fields.keys()].some((name) => !known.has(name))) return malformed()
    const quantities = page.items.map((item, index) => quantityOf(item, fields.get(fieldOf(index))))
    const entered = {
      quantities: new Map(adjustable.map((index) => [index, (fields.get(fieldOf(index)) ?? "").slice(0, 10)] as const)),
      problems: new Map(
        quantities.flatMap((quantity, index) => (typeof quantity === "string" ? [[index, quantity] as const] : []))
      )
    }
    if (entered.problems.size > 0) {
      return Effect.succeed({ kind: "refused", entered, alert: "Check the quantities. Nothing was charged." })
    }
    const chosen = page.items.flatMap((item, index): ReadonlyArray<Chosen> => {
      const quantity = quantities[index]
      return typeof quantity === "number" && quantity > 0 ? [{ item, quantity }] : []
    })
    return Effect.succeed(
      chosen.length === 0
        ? { kind: "refused", entered, alert: "Choose at least one item. Nothing was charged." }
        : { kind: "chosen", chosen, attempt }
    )
  })
