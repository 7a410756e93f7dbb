import { Duration } from "effect"

/**
 * Which expired rows may be read: each delivery for as long as the retention says, even if its day's table still holds
 * it. A day is removed as a whole, and any replay or re-send keeps it for all organizations.
 */

/** SQL: the earliest time at which something that is kept may have ended. */
export const keptSince = (keepFor: Duration.Duration): string =>
  `now() - ${Duration.toMillis(keepFor)} * interval '1 millisecond'`

/** SQL: whether a delivery `d` may be read. */
export const isReadable = (keepFor: Duration.Duration): string =>
  `(d.state = 'queued' OR d.finished_at >= ${keptSince(keepFor)})`
