/** Converts days of the reader's calendar to the Unix seconds of list filters. */

const dayForm = /^(\d{4})-(\d{2})-(\d{2})$/

/** The start of the day in a date field (`2026-11-23`) plus `daysLater` days; undefined if invalid. */
const startOf = (day: string, daysLater: number): number | undefined => {
  const [, year, month, date] = dayForm.exec(day) ?? []
  if (year === undefined || month === undefined || date === undefined) return undefined
  // From its parts, since a date alone is parsed as UTC; a day may have 23 or 25 hours
  const millis = new Date(Number(year), Number(month) - 1, Number(date) + daysLater).getTime()
  return Number.isNaN(millis) || millis < 0 ? undefined : Math.floor(millis / 1000)
}

/** The query of a list from the first second of a day to the last of another; omits an invalid day. */
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
