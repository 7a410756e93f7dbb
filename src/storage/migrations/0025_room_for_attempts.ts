import { SqlClient } from "@effect/sql"
import { Effect } from "effect"
import { defineAddDay } from "../DayPartitions.ts"

/**
 * More room in the pages of a day's deliveries. A delivery's row grows by its attempt. Of pages that were filled to 50 %, the
 * last fifth of the rows had to move to other pages, each with an entry in two indexes; at 40 %, all stay where they are.
 *
 * The tables of today and of days to come are changed as well: it applies to the pages that they add from now on.
 */
export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  yield* defineAddDay(40)

  // Neither reads nor writes wait for it, nor it for them
  yield* sql`
    DO $$
    DECLARE
      day_table text;
    BEGIN
      FOR day_table IN
        SELECT 'payments.deliveries_' || to_char(day, 'YYYYMMDD') FROM payments.days
        WHERE day >= (now() AT TIME ZONE 'UTC')::date
      LOOP
        IF to_regclass(day_table) IS NOT NULL THEN
          EXECUTE format('ALTER TABLE %s SET (fillfactor = 40)', day_table);
        END IF;
      END LOOP;
    END $$`
})
