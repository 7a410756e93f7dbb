import { SqlClient, type SqlError } from "@effect/sql"
import { Effect } from "effect"
import type { OrganizationId } from "../../kit/Ids.ts"

/**
 * A time by the database's clock, in whole microseconds since 1970: exact, and within what a number holds. PostgreSQL's
 * own precision, so that no event falls between two of them.
 */
export type Micros = number

/** How far back a stream can be resumed. In microseconds. */
export const lookBack: Micros = 24 * 3_600_000_000

export interface StreamedRow {
  readonly id: string
  /** When its transaction began, which may be long before others see it. */
  readonly createdAt: Micros
  /** The exact text that is sent to endpoints. */
  readonly payload: string
}

/**
 * A day before yesterday whose tables are in use again. A row's table is that of its receipt's day, so what a replay of an
 * old receipt stores now is in an old table, whose day it notes: see `add_day`.
 */
export interface UsedDay {
  /** As `2026-08-04`. */
  readonly day: string
  readonly usedAt: Micros
}

/**
 * How much earlier than an event its day may have been noted: of two transactions at once, the later note may be of the
 * one that began first. Far longer than transactions last. In microseconds.
 */
const noteDelay = 3_600_000_000

/** The days in which there may be events from this time on, apart from that day, the one before and the later ones. */
export const usedSince = (days: ReadonlyArray<UsedDay>, from: Micros): ReadonlyArray<string> => [
  ...new Set(days.filter(({ usedAt }) => usedAt >= from - noteDelay).map(({ day }) => day))
]

/** What to read of an organization's sandbox events. */
export interface ReadStream {
  readonly organizationId: OrganizationId
  readonly from: Micros
  /** Those of `usedSince`. */
  readonly days: ReadonlyArray<string>
  /** Empty: all. */
  readonly types: ReadonlyArray<string>
  /** Ids that are left out. */
  readonly except: ReadonlyArray<string>
  readonly limit: number
}

/** What all streams of a process have to know, from time to time. */
export interface StreamNews {
  readonly now: Micros
  /** When the oldest transaction began that was open at that moment, after the statement itself began. */
  readonly oldest: Micros
  /** The keys among those asked about that are still good. */
  readonly goodKeys: ReadonlyArray<string>
  /** The organizations among those asked about that have events from `since` on. */
  readonly active: ReadonlyArray<OrganizationId>
  /** The days before yesterday that were used within the time for which a stream is resumed. */
  readonly usedDays: ReadonlyArray<UsedDay>
}

/** The SQL of event streams; nobody outside the slice imports this. */
export const makeStreamRepo = Effect.map(SqlClient.SqlClient, (sql) => {
  const micros = (time: string) => sql.literal(`floor(extract(epoch FROM ${time}) * 1000000)::float8`)
  const time = (value: Micros) => sql`(timestamptz 'epoch' + ${value}::float8 * interval '1 microsecond')`
  const publicId = sql.literal("e.public_id")
  /**
   * From this time on; the second condition, by a process's clock, spares the tables of earlier days, but for these. They
   * are named, since PostgreSQL opens all tables if it has to find out which.
   */
  const since = (value: Micros, days: ReadonlyArray<string>) =>
    sql`e.created_at >= ${time(value)} AND ${sql.or([
      sql`e.id >= payments.first_id_of((${time(value)} AT TIME ZONE 'UTC')::date - 1)`,
      ...days.map(
        (day) => sql`(e.id >= payments.first_id_of(${day}::date) AND e.id < payments.first_id_of(${day}::date + 1))`
      )
    ])}`
  return {
    /**
     * The state of the database for all streams at once. Sessions of roles that this one may not look at are not seen;
     * those of the service are its own.
     */
    news: (of: {
      /** The ids of keys of the sandbox, by organization. */
      readonly keys: ReadonlyArray<readonly [id: string, organizationId: OrganizationId]>
      readonly organizations: ReadonlyArray<OrganizationId>
      readonly since: Micros
      /** The days in which their events are looked for, as in `ReadStream`. */
      readonly days: ReadonlyArray<string>
    }): Effect.Effect<StreamNews, SqlError.SqlError> =>
      Effect.map(
        sql<StreamNews>`
          SELECT ${micros("clock_timestamp()")} AS now, ${micros(`COALESCE((
              SELECT min(xact_start) FROM pg_stat_activity
              WHERE datname = current_database() AND backend_type = 'client backend'
            ), clock_timestamp())`)} AS oldest,
            ARRAY(
              SELECT k.id::text
              FROM unnest(${of.keys.map(([id]) => id)}::uuid[], ${of.keys.map(([, id]) => id)}::uuid[]) AS c (id, organization_id)
              JOIN payments.api_keys k
                ON k.organization_id = c.organization_id AND k.environment = 'sandbox' AND k.id = c.id
              WHERE k.revoked_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > now())
            ) AS "goodKeys",
            ARRAY(
              SELECT o.id::text FROM unnest(${of.organizations}::uuid[]) AS o (id)
              WHERE EXISTS (
                SELECT 1 FROM payments.events e
                WHERE e.organization_id = o.id AND e.environment = 'sandbox' AND ${since(of.since, of.days)}
              )
            ) AS active,
            COALESCE((
              SELECT json_agg(json_build_object('day', d.day, 'usedAt', ${micros("d.used_at")})) FROM payments.days d
              WHERE d.used_at >= now() - ${lookBack + noteDelay}::float8 * interval '1 microsecond'
                AND d.day < (now() AT TIME ZONE 'UTC')::date - 1
            ), '[]') AS "usedDays"`,
        ([row]) => {
          if (row === undefined) throw new Error("A SELECT without FROM has one row")
          return row
        }
      ),

    /** The next events, in the order of their creation. */
    read: ({ days, except, from, limit, organizationId, types }: ReadStream) =>
      sql<StreamedRow>`
        SELECT ${publicId} AS id, ${micros("e.created_at")} AS "createdAt", e.payload FROM payments.events e
        WHERE e.organization_id = ${organizationId} AND e.environment = 'sandbox' AND ${since(from, days)}
          AND (cardinality(${types}::text[]) = 0 OR e.type = ANY (${types}::text[]))
          AND ${publicId} NOT IN (SELECT unnest(${except}::text[]))
        ORDER BY e.created_at, id LIMIT ${limit}`,

    /** The ids of what is there already, the newest first. */
    ids: ({ days, from, limit, organizationId }: Pick<ReadStream, "organizationId" | "from" | "days" | "limit">) =>
      sql<Pick<StreamedRow, "id" | "createdAt">>`
        SELECT ${publicId} AS id, ${micros("e.created_at")} AS "createdAt" FROM payments.events e
        WHERE e.organization_id = ${organizationId} AND e.environment = 'sandbox' AND ${since(from, days)}
        ORDER BY e.created_at DESC LIMIT ${limit}`
  }
})
