/** Whole numbers as people write them. */

/** What a field's text means. Twelve digits are more than any count of the API has. */
export type WrittenCount = number | "empty" | "unreadable"

/** Reads a whole number, which may have spaces around it. */
export const readCount = (text: string): WrittenCount => {
  const written = text.trim()
  if (written === "") return "empty"
  return /^\d{1,12}$/.test(written) ? Number(written) : "unreadable"
}

/** A percentage that was written with a point or a comma: `12.5`, `12,5`, `12.5 %`. */
export const readPercentage = (text: string): WrittenCount => {
  const written = text.trim().replace(/\s*%$/, "")
  if (written === "") return "empty"
  return /^\d{1,3}(?:[.,]\d{1,2})?$/.test(written) ? Number(written.replace(",", ".")) : "unreadable"
}
