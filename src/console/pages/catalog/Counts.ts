/** Parses whole numbers and percentages. */

/** The result of parsing a field's text. Twelve digits exceed every count in the API. */
export type WrittenCount = number | "empty" | "unreadable"

/** Parses a whole number, which may have spaces around it. */
export const readCount = (text: string): WrittenCount => {
  const written = text.trim()
  if (written === "") return "empty"
  return /^\d{1,12}$/.test(written) ? Number(written) : "unreadable"
}

/** Parses a percentage with a point or a comma: `12.5`, `12,5`, `12.5 %`. */
export const readPercentage = (text: string): WrittenCount => {
  const written = text.trim().replace(/\s*%$/, "")
  if (written === "") return "empty"
  return /^\d{1,3}(?:[.,]\d{1,2})?$/.test(written) ? Number(written.replace(",", ".")) : "unreadable"
}
