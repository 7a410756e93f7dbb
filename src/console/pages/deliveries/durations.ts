/** Durations as short text. Pure. */

const units = { s: 1000, min: 60_000, h: 3_600_000, d: 86_400_000 }

type Unit = keyof typeof units

/** At most two units; omits the smaller one if it is zero. */
const inTwo = (millis: number, large: Unit, small: Unit): string => {
  // Rounded to the smaller unit first, so that 59.9 of it carry over into the larger
  const smalls = Math.round(millis / units[small])
  const perLarge = units[large] / units[small]
  const rest = smalls % perLarge
  const whole = `${(smalls - rest) / perLarge} ${large}`
  return rest === 0 ? whole : `${whole} ${rest} ${small}`
}

/** A duration, such as "420 ms", "1.2 s", "31 s", "5 min 12 s", "3 h 2 min", "2 d 4 h". Negative ones count as 0. */
export const durationText = (millis: number): string => {
  const length = Math.max(0, millis)
  if (length < units.s) return `${Math.round(length)} ms`
  if (length < 9.95 * units.s) return `${(length / units.s).toFixed(1).replace(/\.0$/, "")} s`
  if (length < units.min - units.s / 2) return `${Math.round(length / units.s)} s`
  if (length < units.h - units.s / 2) return inTwo(length, "min", "s")
  if (length < units.d - units.min / 2) return inTwo(length, "h", "min")
  return inTwo(length, "d", "h")
}
