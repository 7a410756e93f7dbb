import { Effect } from "effect"
import qs from "qs"
import { invalid, type ProviderError, refuse } from "../ProviderError.ts"

/** Form-encoded parameters as received: every leaf is a string, and nothing is validated yet. */
export interface FormInput {
  readonly [name: string]: unknown
}

/** A well-formed parameter name: `name`, then any number of `[part]`. The parser silently cuts or drops all others. */
const wellFormed = /^[^[\]]+(?:\[[^[\]]*\])*$/

const decodeName = (text: string): string | undefined => {
  try {
    return decodeURIComponent(text.replaceAll("+", " "))
  } catch {
    return undefined
  }
}

const malformedName = (text: string): string | undefined =>
  text
    .split("&")
    .filter((pair) => pair !== "")
    .map((pair) => pair.split("=", 1)[0] ?? "")
    .find((name) => {
      const decoded = decodeName(name)
      return decoded === undefined || !wellFormed.test(decoded) || /(?:^|\[)__proto__(?:\]|$)/.test(decoded)
    })

/**
 * Reads a form-encoded body or a query string with nested brackets (`line_items[0][price]=...`, `metadata[k]=v`,
 * `expand[]=...`).
 *
 * Fails on names that are not well formed, on more than 5,000 parameters, on more than 8 levels and on array indexes
 * above 1,000: a parameter is either understood or refused, never ignored.
 */
export const parseForm = (text: string): Effect.Effect<FormInput, ProviderError> => {
  const malformed = malformedName(text)
  return malformed !== undefined
    ? invalid(malformed, `Invalid parameter name: ${malformed}`, "parameter_unknown")
    : Effect.try({
        try: (): FormInput =>
          qs.parse(text, {
            allowSparse: true,
            arrayLimit: 1_000,
            depth: 8,
            parameterLimit: 5_000,
            plainObjects: true,
            strictDepth: true,
            throwOnLimitExceeded: true
          }),
        catch: (cause) => refuse({ message: cause instanceof Error ? cause.message : "Invalid request parameters" })
      })
}
