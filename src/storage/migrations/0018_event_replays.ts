import { SqlClient } from "@effect/sql"
import { Effect } from "effect"
import { shortLockTimeout } from "../DayPartitions.ts"
import { addEventIndex, firstEventsByPublicId } from "../EventIndexes.ts"

/** Events as a resource: looked up by their public id, and sent again to an endpoint. */
export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  // The caller tries again
  yield* sql`SET LOCAL lock_timeout = ${sql.literal(`'${shortLockTimeout}'`)}`

  // What filters read besides the payload, as far as it was known when the event was stored: see StoredSubjects.ts. Null
  // if there is nothing, and in rows of earlier versions
  yield* sql`ALTER TABLE payments.events ADD COLUMN filter_subjects text`

  // An event is read by its public id, whose day nobody knows. Public ids are hashes: a tree would hold 72 bytes a row,
  // a hash index holds 4 and finds as fast. Each new event is one more small write somewhere in its own day's index,
  // which is small enough to stay in memory; the past days' are never written. The preparation has indexed the
  // tables that exist, without blocking writes: here they are only attached
  yield* addEventIndex(firstEventsByPublicId)

  // reached: the key of the last event that was looked at. The id's time is that of the deliveries' ids
  yield* sql`
    CREATE TABLE payments.event_replays (
      organization_id uuid NOT NULL,
      environment text NOT NULL,
      id uuid NOT NULL,
      endpoint_id uuid NOT NULL,
      types text[],
      since timestamptz NOT NULL,
      until timestamptz NOT NULL CHECK (until > since),
      state text NOT NULL DEFAULT 'running' CHECK (state IN ('running', 'finished', 'canceled')),
      queued bigint NOT NULL DEFAULT 0 CHECK (queued >= 0),
      skipped bigint NOT NULL DEFAULT 0 CHECK (skipped >= 0),
      reached text NOT NULL,
      stepped_at timestamptz NOT NULL DEFAULT now(),
      created_at timestamptz NOT NULL DEFAULT now(),
      finished_at timestamptz,
      PRIMARY KEY (organization_id, environment, id),
      FOREIGN KEY (organization_id, environment, endpoint_id) REFERENCES payments.endpoints,
      CHECK ((state = 'running') = (finished_at IS NULL))
    )`
  yield* sql`
    CREATE INDEX event_replays_of_endpoint ON payments.event_replays (organization_id, environment, endpoint_id, id)`
  // One at a time per endpoint
  yield* sql`
    CREATE UNIQUE INDEX event_replays_running ON payments.event_replays (organization_id, environment, endpoint_id)
    WHERE state = 'running'`

  // The last later day that has deliveries of this day's events: as long as that one is kept, so is this one
  yield* sql`ALTER TABLE payments.days ADD COLUMN needed_by date`
})
