/**
 * Times of filters: in the URL and the API as Unix seconds, so that a link means the same in every zone; in the form as
 * the reader's local time. Pure.
 */

const twoDigits = (value: number): string => String(value).padStart(2, "0")

/** The greatest Unix second that the API takes. */
const lastSecond = 4_102_444_800

/** Unix seconds as the value of an `<input type="datetime-local">` in the reader's zone; "" if they are none. */
export const localInput = (unixSeconds: string): string => {
  if (!/^\d{1,10}$/.test(unixSeconds)) return ""
  const at = new Date(Math.min(Number(unixSeconds), lastSecond) * 1000)
  const day = [String(at.getFullYear()).padStart(4, "0"), twoDigits(at.getMonth() + 1), twoDigits(at.getDate())].join(
    "-"
  )
  const time = `${twoDigits(at.getHours())}:${twoDigits(at.getMinutes())}`
  return at.getSeconds() === 0 ? `${day}T${time}` : `${day}T${time}:${twoDigits(at.getSeconds())}`
}

/** The value of such a field as Unix seconds; "" if it is empty, incomplete or not within what the API takes. */
export const unixSeconds = (local: string): string => {
  const at = Date.parse(local)
  if (local === "" || Number.isNaN(at)) return ""
  const seconds = Math.floor(at / 1000)
  return seconds >= 0 && seconds <= lastSecond ? String(seconds) : ""
}

/** The value of such a field as an ISO 8601 instant in UTC; null if it is not a complete time. */
export const instant = (local: string): string | null => {
  const at = Date.parse(local)
  return local === "" || Number.isNaN(at) ? null : new Date(at).toISOString()
}

/** A time for such a field, this many milliseconds ago, to the minute. */
export const localAgo = (millis: number, now: number): string =>
  localInput(String(Math.floor((now - millis) / 60_000) * 60))
