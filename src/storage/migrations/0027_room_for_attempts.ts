import { SqlClient } from "@effect/sql"
import { Effect } from "effect"

/**
 * More room in the pages of a day's deliveries. A delivery's row grows by its attempt. Of pages that were filled to 50 %, the
 * last fifth of the rows had to move to other pages, each with an entry in two indexes; at 40 %, all stay where they are.
 *
 * Later pages of the day under way are filled so as well.
 */
export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  // As in 0014, but for the room
  yield* sql`
    CREATE OR REPLACE FUNCTION payments.add_day(wanted date) RETURNS void LANGUAGE plpgsql AS $$
    DECLARE
      suffix text := to_char(wanted, 'YYYYMMDD');
      bounds text := format('FOR VALUES FROM (%L) TO (%L)', payments.first_id_of(wanted), payments.first_id_of(wanted + 1));
      today date := (now() AT TIME ZONE 'UTC')::date;
    BEGIN
      IF wanted < (payments.partitioned_from() AT TIME ZONE 'UTC')::date THEN RETURN; END IF;
      IF wanted < today THEN PERFORM pg_advisory_xact_lock_shared(5190277303); END IF;
      INSERT INTO payments.days AS d (day, used_at) VALUES (wanted, CASE WHEN wanted < today THEN now() END)
      ON CONFLICT (day) DO UPDATE SET used_at = now() WHERE d.day < today;
      IF to_regclass('payments.deliveries_' || suffix) IS NOT NULL THEN RETURN; END IF;
      PERFORM pg_advisory_xact_lock(5190277304);
      IF to_regclass('payments.deliveries_' || suffix) IS NOT NULL THEN RETURN; END IF;
      EXECUTE format('CREATE TABLE payments.events_%s (LIKE payments.events INCLUDING ALL)', suffix);
      EXECUTE format('CREATE TABLE payments.deliveries_%s (LIKE payments.deliveries INCLUDING ALL) WITH (fillfactor = 40)',
        suffix);
      EXECUTE format('ALTER TABLE payments.events ATTACH PARTITION payments.events_%s %s', suffix, bounds);
      EXECUTE format('ALTER TABLE payments.deliveries ATTACH PARTITION payments.deliveries_%s %s', suffix, bounds);
    END $$`

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
