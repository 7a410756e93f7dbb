import type { ApiError } from "../../api/ApiError.ts"

/** Splits a message into sentences, each of which begins with a field name in backquotes. */
const sentencesOf = (message: string): ReadonlyArray<string> => message.split(/(?<=[.?]) (?=`)/)

/** Replaces the API's field names in a message with the form's labels. */
export const inWords = (message: string, labels: Readonly<Record<string, string>>): string =>
  message.replaceAll(/`([^`]*)`/g, (_, name: string) => (Object.hasOwn(labels, name) ? (labels[name] ?? name) : name))

/** Whether a refused field is this field or a part of it. */
export const concerns = (refused: string, name: string): boolean => refused === name || refused.startsWith(`${name}.`)

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
  // At the field itself, "`name` must be …" becomes "Must be …"
  const own = new RegExp(`^\`${name.replaceAll(/[.*+?^$()[\]{}|\\]/g, "\\$&")}\` (\\w)`)
  return inWords(
    said.replace(own, (_, first: string) => first.toUpperCase()),
    labels
  )
}
