/**
 * Replaces the text between a document's markers `<!-- The <what>, written by `npm run docs` -->` and
 * `<!-- The end of the <what> -->`. A text without both is returned unchanged.
 */
export const withGenerated = (text: string, what: string, generated: string): string => {
  const begin = `<!-- The ${what}, written by \`npm run docs\` -->`
  const end = `<!-- The end of the ${what} -->`
  const from = text.indexOf(begin)
  const to = text.indexOf(end)
  return from === -1 || to < from ? text : `${text.slice(0, from + begin.length)}\n\n${generated}\n${text.slice(to)}`
}
