import type { ApiError } from "../api/ApiError.ts"

/** The refusals of the API in the words of a form. */

/** The sentences of a message, each of which begins with a field's name in backquotes. */
const sentencesOf = (message: string): ReadonlyArray<string> => message.split(/(?<=[.?]) (?=`)/)

/** The message with fields named as the form names them. */
export const inWords = (message: string, labels: Readonly<Record<string, string>>): string =>
  message.replaceAll(/`([^`]*)`/g, (_, name: string) => (Object.hasOwn(labels, name) ? (labels[name] ?? name) : name))

/** Whether a refused field is the one of this name or a part of it. */
export const concerns = (refused: string, name: string): boolean => refused === name || refused.startsWith(`${name}.`)

/** Why the API refused a field; undefined if it did not name it. */
export const reasonFor = (
  { fields, message }: ApiError,
  name: string,
  labels: Readonly<Record<string, string>>
): string | undefined => {
  const refused = fields.filter((field) => concerns(field, name))
  if (refused.length === 0) return undefined
  const sentences = sentencesOf(message).filter((sentence) =>
    refused.some((field) => sentence.includes(`\`${field}\``))
  )
  const said = sentences.length === 0 ? message : sentences.join(" ")
  // "`name` must be …" at the field itself: "Must be …"
  const own = new RegExp(`^\`${name.replaceAll(/[.*+?^$()[\]{}|\\]/g, "\\$&")}\` (\\w)`)
  return inWords(
    said.replace(own, (_, first: string) => first.toUpperCase()),
    labels
  )
}
