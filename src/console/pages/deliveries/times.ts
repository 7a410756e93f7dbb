/**
 * Filter times: Unix seconds in the URL and the API, so that a link means the same in every zone; local time in the
 * form. Pure.
 */

const twoDigits = (value: number): string => String(value).padStart(2, "0")

/** The API's latest Unix second. */
const lastSecond = 4_102_444_800

/** Unix seconds as the value of an `<input type="datetime-local">` in the reader's zone; "" if invalid. */
export const localInput = (unixSeconds: string): string => {
  if (!/^\d{1,10}$/.test(unixSeconds)) return ""
  const at = new Date(Math.min(Number(unixSeconds), lastSecond) * 1000)
  const day = [String(at.getFullYear()).padStart(4, "0"), twoDigits(at.getMonth() + 1), twoDigits(at.getDate())].join(
    "-"
  )
  const time = `${twoDigits(at.getHours())}:${twoDigits(at.getMinutes())}`
  return at.getSeconds() === 0 ? `${day}T${time}` : `${day}T${time}:${twoDigits(at.getSeconds())}`
}

/** Such a field's value as Unix seconds; "" if it is empty, incomplete or outside the API's range. */
export const unixSeconds = (local: string): string => {
  const at = Date.parse(local)
  if (local === "" || Number.isNaN(at)) return ""
  const seconds = Math.floor(at / 1000)
  return seconds >= 0 && seconds <= lastSecond ? String(seconds) : ""
}

/** Such a field's value as an ISO 8601 instant in UTC; null if incomplete. */
export const instant = (local: string): string | null => {
  const at = Date.parse(local)
  return local === "" || Number.isNaN(at) ? null : new Date(at).toISOString()
}

/** The value of such a field this many milliseconds ago, to the minute. */
export const localAgo = (millis: number, now: number): string =>
  localInput(String(Math.floor((now - millis) / 60_000) * 60))
