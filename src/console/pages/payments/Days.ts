/** Days of the reader's calendar as filters of lists, which take Unix seconds. */

const dayForm = /^(\d{4})-(\d{2})-(\d{2})$/

/** The start of a day that a date field names (`2026-11-23`), `daysLater` days on; undefined if it names none. */
const startOf = (day: string, daysLater: number): number | undefined => {
  const [, year, month, date] = dayForm.exec(day) ?? []
  if (year === undefined || month === undefined || date === undefined) return undefined
  // By its parts, since a date alone is read as UTC; a day may have 23 or 25 hours
  const millis = new Date(Number(year), Number(month) - 1, Number(date) + daysLater).getTime()
  return Number.isNaN(millis) || millis < 0 ? undefined : Math.floor(millis / 1000)
}

/** The query of a list from the first second of a day to the last of another; each is left out if it names no day. */
export const createdWithin = (
  from: string,
  to: string
): { readonly created_gte?: number; readonly created_lte?: number } => {
  const first = startOf(from, 0)
  const after = startOf(to, 1)
  return {
    ...(first === undefined ? {} : { created_gte: first }),
    ...(after === undefined ? {} : { created_lte: after - 1 })
  }
}
