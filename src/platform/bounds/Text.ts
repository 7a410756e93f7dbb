import { Schema } from "effect"
import { echoed, rule } from "./Rules.ts"

/**
 * Text within bounds. The length is checked first, so that no pattern ever runs on more than the field accepts.
 * Characters are Unicode code points, as JSON Schema counts them: an emoji is one. No server code.
 */

export interface TextLength {
  readonly min?: number
  readonly max: number
}

export interface TextForm {
  /** Runs on at most `max` characters. Without flags, since JSON Schema has none. */
  readonly pattern: RegExp
  /** The form and the length in words, for the error: "must be 3 capital letters". */
  readonly rule: string
}

export type TextBounds = TextLength & (TextForm | { readonly pattern?: never; readonly rule?: never })

/** Whether a text has `min` to `max` characters; reads at most `2 * max` units of it. */
const hasLength = (text: string, min: number, max: number): boolean => {
  // A character has one or two units
  if (text.length < min || text.length > 2 * max) return false
  if (text.length <= max && text.length >= 2 * min) return true
  let count = 0
  for (const _ of text) count += 1
  return count >= min && count <= max
}

const ofLength = (min: number, max: number) =>
  Schema.String.pipe(
    Schema.filter((text) => hasLength(text, min, max), {
      jsonSchema: { ...(min === 0 ? {} : { minLength: min }), maxLength: max }
    })
  )

export const text = ({ max, min = 0, pattern, rule: words }: TextBounds): Schema.Schema<string> =>
  pattern === undefined ? ofLength(min, max) : ofLength(min, max).pipe(Schema.pattern(pattern)).annotations(rule(words))

/** Control characters, as part of a pattern's class: Unicode's `Cc`, for which JSON Schema has no portable name. */
export const controls = "\\u0000-\\u001f\\u007f-\\u009f"

export const withoutControls = new RegExp(`^[^${controls}]*$`)

/** A pattern of text with something to see and none of these characters; without lookahead, for the document's readers. */
const notBlank = (excluded: string): string => `^[^\\S${excluded}]*[^\\s${excluded}][^${excluded}]*$`

/**
 * Text that people read: 1 to `max` characters without control characters, which PostgreSQL (NUL) and logs do not
 * accept. It is trimmed before it is checked.
 */
export const PrintableText = (max: number) => {
  const words = `must be text of 1 to ${max} characters, without control characters such as line breaks`
  return Schema.transform(
    Schema.String.annotations({
      ...rule(words),
      jsonSchema: { type: "string", minLength: 1, maxLength: max, pattern: notBlank(controls) }
    }),
    text({ min: 1, max, pattern: withoutControls, rule: words }),
    { strict: true, decode: (written) => written.trim(), encode: (trimmed) => trimmed }
  )
}

/** The same controls, except tab, line feed and carriage return. */
const controlsInLines = "\\u0000-\\u0008\\u000b\\u000c\\u000e-\\u001f\\u007f-\\u009f"

const paragraphs = new RegExp(notBlank(controlsInLines))

/** Text that people read, of 1 to `max` characters, which may have several lines; kept as it was written. */
export const ParagraphText = (max: number) =>
  text({
    min: 1,
    max,
    pattern: paragraphs,
    rule: `must be text of 1 to ${max} characters, without control characters other than line breaks and tabs`
  }).annotations({ arbitrary: () => (fc) => fc.stringMatching(/^[ -~\n]{0,40}[!-~]$/) })

export const CurrencyCode = text({
  min: 3,
  max: 3,
  pattern: /^[a-z]{3}$/,
  rule: "must be a lowercase ISO 4217 code, such as brl"
}).annotations(echoed)

const uuidForm = /^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$/

/** A UUID of any version, in either case. */
export const Uuid = text({
  min: 36,
  max: 36,
  pattern: uuidForm,
  rule: "must be a UUID, such as 0192f0c0-7a1e-7c52-9d3b-5f0e6a1c2b4d"
}).annotations({
  description: "A UUID",
  jsonSchema: { format: "uuid", pattern: uuidForm.source },
  arbitrary: () => (fc) => fc.uuid()
})
