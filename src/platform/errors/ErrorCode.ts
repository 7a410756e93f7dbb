import { Predicate } from "effect"

/** The error codes of Node.js and its libraries, such as `ENOENT`. */

export const errorCode = (error: unknown): string | undefined =>
  Predicate.hasProperty(error, "code") && Predicate.isString(error.code) ? error.code : undefined

export const hasErrorCode = (error: unknown, ...codes: ReadonlyArray<string>): boolean => {
  const code = errorCode(error)
  return code !== undefined && codes.includes(code)
}
