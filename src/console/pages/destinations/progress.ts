/** A replay's progress through its period, in whole percent. Pure. */
export const replayPercent = (replay: {
  readonly since: string
  readonly until: string
  readonly reachedAt: string
}): number => {
  const since = Date.parse(replay.since)
  const whole = Date.parse(replay.until) - since
  const done = Date.parse(replay.reachedAt) - since
  if (!(whole > 0)) return 100
  return Math.max(0, Math.min(100, Math.floor((done / whole) * 100)))
}
