import { Duration } from "effect"

/**
 * What may be read after its time: each delivery for as long as the retention says, whatever its day's table still holds. A
 * day goes as a whole, and anybody's replay or re-send keeps it for everybody.
 */

/** SQL: the time since which something must have ended to be kept. */
export const keptSince = (keepFor: Duration.Duration): string =>
  `now() - ${Duration.toMillis(keepFor)} * interval '1 millisecond'`

/** SQL: whether a delivery `d` may be read. */
export const isReadable = (keepFor: Duration.Duration): string =>
  `(d.state = 'queued' OR d.finished_at >= ${keptSince(keepFor)})`
