/**
 * Reads fields of the provider's objects that the contract leaves open: any of them may be missing, null or of another
 * type one day, which must not break a page.
 */

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** The value at a path of fields; undefined if there is none. */
export const valueAt = (object: unknown, ...path: ReadonlyArray<string>): unknown =>
  path.reduce<unknown>((value, field) => (isRecord(value) ? value[field] : undefined), object)

/** The text at a path; undefined if it is missing, empty or no text. */
export const textAt = (object: unknown, ...path: ReadonlyArray<string>): string | undefined => {
  const value = valueAt(object, ...path)
  return typeof value === "string" && value !== "" ? value : undefined
}

/** The number at a path; undefined if it is missing or no number. */
export const numberAt = (object: unknown, ...path: ReadonlyArray<string>): number | undefined => {
  const value = valueAt(object, ...path)
  return typeof value === "number" && Number.isFinite(value) ? value : undefined
}

/** Whether the value at a path is `true`. */
export const isAt = (object: unknown, ...path: ReadonlyArray<string>): boolean => valueAt(object, ...path) === true

/** The items of the array at a path; none if there is no array. */
export const itemsAt = (object: unknown, ...path: ReadonlyArray<string>): ReadonlyArray<unknown> => {
  const value = valueAt(object, ...path)
  return Array.isArray(value) ? value : []
}

/** The pairs of an object whose values are text, such as metadata, in the order in which they were set. */
export const pairsAt = (object: unknown, ...path: ReadonlyArray<string>): ReadonlyArray<readonly [string, string]> => {
  const value = valueAt(object, ...path)
  return isRecord(value)
    ? Object.entries(value).flatMap(([key, text]) => (typeof text === "string" ? [[key, text] as const] : []))
    : []
}

/** The first letter large: for words of the provider that begin a line. */
export const capitalized = (words: string): string => words.charAt(0).toUpperCase() + words.slice(1)

/** A word of the provider as people read it: `requires_payment_method` is `requires payment method`. */
export const plainWords = (word: string): string => word.replaceAll(/[_-]+/g, " ").trim()
