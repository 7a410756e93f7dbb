import type { SqlClient } from "@effect/sql"
import { Duration } from "effect"

/** Takes a round of housekeeping; returns no row if another process has it, and was not silent for this long. */
export const takeRound = (sql: SqlClient.SqlClient, name: string, process: string, silence: Duration.Duration) => sql`
  INSERT INTO payments.housekeeping AS h (name, process) VALUES (${name}, ${process})
  ON CONFLICT (name) DO UPDATE SET process = EXCLUDED.process, begun_at = now()
  WHERE h.process = EXCLUDED.process
    OR h.begun_at <= now() - ${Duration.toMillis(silence)} * interval '1 millisecond'
  RETURNING 1`
