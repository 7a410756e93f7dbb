/**
 * The kinds of field in `data` (contract 6.3). Each field has a schema of its own with its own description, since a
 * shared identifier would merge them into one definition in the published JSON Schema.
 */
import { Schema } from "effect"

export const providerId = (description: string) => Schema.String.pipe(Schema.minLength(1)).annotations({ description })

/** A code or status of the provider. Any text, since the provider adds values without notice. */
export const providerCode = (description: string) =>
  Schema.String.pipe(Schema.minLength(1)).annotations({ description })

/** An amount in the smallest unit of its currency (500 means 5.00 BRL); negative if money flows back. */
export const amount = (description: string) =>
  Schema.Number.pipe(Schema.int()).annotations({ description: `${description}, in the smallest currency unit` })

export const count = (description: string) =>
  Schema.Number.pipe(Schema.int(), Schema.nonNegative()).annotations({ description })

/** A point in time as the provider sends it: whole Unix seconds. */
export const unixSeconds = (description: string) =>
  Schema.Number.pipe(Schema.int(), Schema.nonNegative()).annotations({ description: `${description}, in Unix seconds` })

export const flag = (description: string) => Schema.Boolean.annotations({ description })

export const currency = Schema.String.pipe(Schema.pattern(/^[a-z]{3}$/)).annotations({
  description: "Lowercase ISO 4217 currency code"
})
