/** Durations as short text. Pure. */

const second = 1000
const minute = 60 * second
const hour = 60 * minute
const day = 24 * hour

/** At most two units; omits the second if it is zero. */
const inTwo = (millis: number, large: number, largeName: string, small: number, smallName: string): string => {
  // Rounded to the smaller unit first, so that 59.9 of it carry over into the larger
  const smalls = Math.round(millis / small)
  const perLarge = large / small
  const rest = smalls % perLarge
  const whole = `${(smalls - rest) / perLarge} ${largeName}`
  return rest === 0 ? whole : `${whole} ${rest} ${smallName}`
}

/** A duration, such as "420 ms", "1.2 s", "31 s", "5 min 12 s", "3 h 2 min", "2 d 4 h". Negative ones count as 0. */
export const durationText = (millis: number): string => {
  const length = Math.max(0, millis)
  if (length < second) return `${Math.round(length)} ms`
  if (length < 9.95 * second) return `${(length / second).toFixed(1).replace(/\.0$/, "")} s`
  if (length < minute - second / 2) return `${Math.round(length / second)} s`
  if (length < hour - second / 2) return inTwo(length, minute, "min", second, "s")
  if (length < day - minute / 2) return inTwo(length, hour, "h", minute, "min")
  return inTwo(length, day, "d", hour, "h")
}
