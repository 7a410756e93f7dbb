import { Effect, ParseResult, Schema } from "effect"
import { maximumAmount } from "../Amounts.ts"
import { optional } from "../api/Params.ts"
import { type ProviderError, refuse } from "../ProviderError.ts"

export { optional as maybe }

/** One issue with its path: `amount: Expected an integer, actual 1.5`. */
const sentenceOf = (issue: ParseResult.ParseIssue): string =>
  ParseResult.ArrayFormatter.formatIssueSync(issue)
    .map(({ message, path }) => (path.length === 0 ? message : `${path.map(String).join(".")}: ${message}`))
    .join("; ")

/** Decodes a control request; refuses (400) unknown or invalid fields, which the message names. */
export const decodeInput = <A, I>(schema: Schema.Schema<A, I>, input: unknown): Effect.Effect<A, ProviderError> =>
  ParseResult.decodeUnknown(schema, { onExcessProperty: "error" })(input).pipe(
    Effect.mapError((issue) => refuse({ message: sentenceOf(issue) }))
  )

/** An optional field with its meaning and its default, which the list of triggers shows. */
export const option = <A, I>(schema: Schema.Schema<A, I>, meaning: string) =>
  optional(schema.annotations({ documentation: meaning }))

export const amount = Schema.Int.pipe(Schema.between(1, maximumAmount))

export const currency = Schema.String.pipe(Schema.pattern(/^[a-z]{3}$/))

export const word = Schema.String.pipe(Schema.pattern(/^[a-z_]{1,64}$/))

export const metadata = Schema.Record({ key: Schema.String, value: Schema.String })

/** No options; an empty struct would accept any. */
export const noOptions = Schema.Record({ key: Schema.String, value: Schema.Never })
