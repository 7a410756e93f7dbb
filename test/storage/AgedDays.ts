/**
 * Moves the beginning of the tables by day back by a number of days, as if the installation had had them for so long:
 * of the installation's first days, none can be added in another way. For a database without events and deliveries.
 */
export const backdatePartitions = (days: number): ReadonlyArray<string> => [
  "ALTER TABLE payments.deliveries DETACH PARTITION payments.deliveries_before_days",
  `DO $$
  DECLARE first_day date := (now() AT TIME ZONE 'UTC')::date - ${days};
  BEGIN
    EXECUTE format('CREATE OR REPLACE FUNCTION payments.partitioned_from() RETURNS timestamptz LANGUAGE sql IMMUTABLE AS
      %L', format('SELECT timestamptz %L', first_day || ' 00:00:00+00'));
    EXECUTE format('ALTER TABLE payments.deliveries ATTACH PARTITION payments.deliveries_before_days
      FOR VALUES FROM (MINVALUE) TO (%L)', payments.first_id_of(first_day));
  END $$`
]
