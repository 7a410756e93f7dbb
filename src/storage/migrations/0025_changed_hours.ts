import { SqlClient } from "@effect/sql"
import { Effect } from "effect"

/**
 * The hours of an organization's history that change while it is copied to another cell, so that the others can be
 * compared before its writes are refused: see `src/cells/move/ComparedHours.ts`. As in 0024, the triggers that call the
 * function exist only during a move.
 */
export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  // Without a unique key, which would have writers wait for each other: an hour may be there more than once.
  // '-infinity' for rows whose time is not known
  yield* sql`
    CREATE TABLE payments.move_changed_hours (
      organization_id uuid NOT NULL,
      table_name text NOT NULL,
      hour timestamptz NOT NULL
    )`
  yield* sql`
    CREATE INDEX move_changed_hours_of_organization ON payments.move_changed_hours (organization_id, table_name, hour)`

  yield* sql`
    CREATE FUNCTION payments.hour_of(moment timestamptz) RETURNS timestamptz LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
      SELECT CASE WHEN isfinite(moment) THEN date_bin('1 hour', moment, to_timestamp(0)) ELSE '-infinity' END
    $$`
  // Of the time in an id, a UUIDv7
  yield* sql`
    CREATE FUNCTION payments.hour_of(id text) RETURNS timestamptz LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
      SELECT CASE WHEN id ~ '^[0-9a-f]{8}-[0-9a-f]{4}-' THEN date_bin('1 hour',
          to_timestamp(('x' || translate(substr(id, 1, 13), '-', ''))::bit(48)::bigint / 1000.0), to_timestamp(0))
        ELSE '-infinity' END
    $$`

  yield* sql`
    CREATE FUNCTION payments.note_changed_hour(of_organization uuid, of_table text, changed timestamptz) RETURNS void
    LANGUAGE plpgsql AS $$
    BEGIN
      INSERT INTO payments.move_changed_hours (organization_id, table_name, hour)
      SELECT of_organization, of_table, changed WHERE NOT EXISTS (
        SELECT 1 FROM payments.move_changed_hours h
        WHERE h.organization_id = of_organization AND h.table_name = of_table AND h.hour = changed);
    END $$`

  // Its arguments are the organization, the table, and the column that has the time. Under the writers' lock of
  // payments.moving_phase(), so that the mover forgets hours only while no write is under way. The mover itself changes
  // history only once it has been moved
  yield* sql`
    CREATE FUNCTION payments.note_moving_change() RETURNS trigger LANGUAGE plpgsql AS $$
    DECLARE of_organization uuid := TG_ARGV[0]::uuid;
    BEGIN
      IF current_setting('payments.mover', true) = 'on' THEN RETURN COALESCE(NEW, OLD); END IF;
      PERFORM pg_advisory_xact_lock_shared(hashtextextended(of_organization::text, 5190277307));
      IF NOT EXISTS (SELECT 1 FROM payments.moves m WHERE m.organization_id = of_organization
        AND m.role = 'leaving' AND m.phase IN ('copying', 'parking')) THEN RETURN COALESCE(NEW, OLD); END IF;
      IF TG_OP <> 'INSERT' THEN
        IF TG_ARGV[2] = 'id' THEN
          PERFORM payments.note_changed_hour(of_organization, TG_ARGV[1], payments.hour_of(OLD.id::text));
        ELSIF TG_ARGV[2] = 'received_at' THEN
          PERFORM payments.note_changed_hour(of_organization, TG_ARGV[1], payments.hour_of(OLD.received_at));
        ELSE
          PERFORM payments.note_changed_hour(of_organization, TG_ARGV[1], payments.hour_of(OLD.created_at));
        END IF;
      END IF;
      IF TG_OP <> 'DELETE' THEN
        IF TG_ARGV[2] = 'id' THEN
          PERFORM payments.note_changed_hour(of_organization, TG_ARGV[1], payments.hour_of(NEW.id::text));
        ELSIF TG_ARGV[2] = 'received_at' THEN
          PERFORM payments.note_changed_hour(of_organization, TG_ARGV[1], payments.hour_of(NEW.received_at));
        ELSE
          PERFORM payments.note_changed_hour(of_organization, TG_ARGV[1], payments.hour_of(NEW.created_at));
        END IF;
      END IF;
      RETURN COALESCE(NEW, OLD);
    END $$`
})
