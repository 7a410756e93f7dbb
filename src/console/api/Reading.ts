/** Reads the provider's objects: any field may be missing, null or of another type. */

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value)

export const valueAt = (object: unknown, ...path: ReadonlyArray<string>): unknown =>
  path.reduce<unknown>((value, field) => (isRecord(value) ? value[field] : undefined), object)

export const textAt = (object: unknown, ...path: ReadonlyArray<string>): string | undefined => {
  const value = valueAt(object, ...path)
  return typeof value === "string" && value !== "" ? value : undefined
}

export const numberAt = (object: unknown, ...path: ReadonlyArray<string>): number | undefined => {
  const value = valueAt(object, ...path)
  return typeof value === "number" && Number.isFinite(value) ? value : undefined
}

/** Whether the value at a path is `true`. */
export const isAt = (object: unknown, ...path: ReadonlyArray<string>): boolean => valueAt(object, ...path) === true

export const itemsAt = (object: unknown, ...path: ReadonlyArray<string>): ReadonlyArray<unknown> => {
  const value = valueAt(object, ...path)
  return Array.isArray(value) ? value : []
}

/** The string entries of the object at a path, such as metadata, in insertion order. */
export const pairsAt = (object: unknown, ...path: ReadonlyArray<string>): ReadonlyArray<readonly [string, string]> => {
  const value = valueAt(object, ...path)
  return isRecord(value)
    ? Object.entries(value).flatMap(([key, text]) => (typeof text === "string" ? [[key, text] as const] : []))
    : []
}

export const capitalized = (words: string): string => words.charAt(0).toUpperCase() + words.slice(1)

/** A provider's word in plain English: `requires_payment_method` becomes `requires payment method`. */
export const plainWords = (word: string): string => word.replaceAll(/[_-]+/g, " ").trim()
