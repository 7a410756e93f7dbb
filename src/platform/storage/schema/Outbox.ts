import { SqlClient } from "@effect/sql"
import { Effect } from "effect"

/**
 * Events that a transaction of an embedding team's database publishes by SQL, until a process turns them into events
 * with deliveries. `refusal` tells the team why an event can't be published. `payments.publish` is the only way in: it
 * runs with the owner's rights, so that a role needs EXECUTE on it and nothing on the tables.
 */
export const outbox = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  yield* sql`
    CREATE TABLE payments.outbox (
      place bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
      organization_id uuid NOT NULL,
      environment text COLLATE "C" NOT NULL,
      id text COLLATE "C" NOT NULL,
      type text NOT NULL,
      data json NOT NULL,
      created_at timestamptz NOT NULL DEFAULT now(),
      refusal text
    )`
  yield* sql`CREATE INDEX outbox_waiting ON payments.outbox (place) WHERE refusal IS NULL`

  yield* sql`
    CREATE FUNCTION payments.publish(organization uuid, environment text, id text, type text, data json)
    RETURNS void LANGUAGE plpgsql SECURITY DEFINER SET search_path = '' AS $$
    BEGIN
      IF NOT EXISTS (
        SELECT 1 FROM payments.workspaces w
        WHERE w.organization_id = organization AND w.environment = publish.environment
      ) THEN
        RAISE EXCEPTION 'payments.publish: there is no organization % with an environment %', organization, environment
          USING ERRCODE = 'foreign_key_violation', HINT = 'Create it with Organizations; environments are sandbox and production';
      END IF;
      IF id IS NULL OR id !~ '^[^[:cntrl:]]{1,255}$' THEN
        RAISE EXCEPTION 'payments.publish: an event''s id must have 1 to 255 printable characters'
          USING ERRCODE = 'check_violation';
      END IF;
      IF json_typeof(data) IS DISTINCT FROM 'object' OR octet_length(data::text) > 262144 THEN
        RAISE EXCEPTION 'payments.publish: data must be a JSON object of at most 262144 bytes'
          USING ERRCODE = 'check_violation';
      END IF;
      INSERT INTO payments.outbox (organization_id, environment, id, type, data)
      VALUES (organization, publish.environment, publish.id, publish.type, publish.data);
    END
    $$`
})
