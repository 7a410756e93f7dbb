import { SqlClient, type SqlError } from "@effect/sql"
import { Effect } from "effect"
import type { OrganizationId } from "../../platform/kit/Ids.ts"

/** In microseconds since 1970: PostgreSQL's own precision, so no event falls between two values. */
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
 * A day before yesterday whose tables are in use again. Rows are stored in the table of their receipt's day, so a
 * replay of an old receipt stores into an old table and notes its day: see `add_day`.
 */
export interface UsedDay {
  /** As `2026-08-04`. */
  readonly day: string
  readonly usedAt: Micros
}

/**
 * How much earlier than an event its day may have been noted, in microseconds: of two concurrent transactions, the
 * later note may belong to the one that began first. Far longer than any transaction lasts.
 */
const noteDelay = 3_600_000_000

/** The days that may hold events since this time, apart from its own day, the one before, and later ones. */
export const usedSince = (days: ReadonlyArray<UsedDay>, from: Micros): ReadonlyArray<string> => [
  ...new Set(days.filter(({ usedAt }) => usedAt >= from - noteDelay).map(({ day }) => day))
]

export interface ReadStream {
  readonly organizationId: OrganizationId
  readonly from: Micros
  readonly days: ReadonlyArray<string>
  readonly types: ReadonlyArray<string>
  readonly except: ReadonlyArray<string>
  readonly limit: number
}

/** The question of a poll, which asks for all streams of a process. */
export interface PollQuestion {
  readonly keys: ReadonlyArray<readonly [id: string, organizationId: OrganizationId]>
  readonly organizations: ReadonlyArray<OrganizationId>
  readonly since: Micros
  readonly days: ReadonlyArray<string>
}

export interface PollAnswer {
  readonly now: Micros
  /** When the oldest open transaction began, as seen after the statement itself began. */
  readonly oldest: Micros
  /** The requested keys that are still valid. */
  readonly goodKeys: ReadonlyArray<string>
  /** The requested organizations that have events from `since` on. */
  readonly active: ReadonlyArray<OrganizationId>
  /** The days before yesterday that were used within the time for which a stream can be resumed. */
  readonly usedDays: ReadonlyArray<UsedDay>
}

const makeParts = (sql: SqlClient.SqlClient) => {
  const micros = (time: string) => sql.literal(`floor(extract(epoch FROM ${time}) * 1000000)::float8`)
  const time = (value: Micros) => sql`(timestamptz 'epoch' + ${value}::float8 * interval '1 microsecond')`
  const publicId = sql.literal("e.public_id")
  /**
   * Events since this time. The second condition, by a process's clock, excludes the tables of earlier days except
   * `days`. These are listed, since PostgreSQL would open all tables to find out which.
   */
  const since = (value: Micros, days: ReadonlyArray<string>) =>
    sql`e.created_at >= ${time(value)} AND ${sql.or([
      sql`e.id >= payments.first_id_of((${time(value)} AT TIME ZONE 'UTC')::date - 1)`,
      ...days.map(
        (day) => sql`(e.id >= payments.first_id_of(${day}::date) AND e.id < payments.first_id_of(${day}::date + 1))`
      )
    ])}`
  /** Not `ofTenant`: generic plans use the index of sandbox events only if the environment is no parameter. */
  const ofSandbox = (organizationId: OrganizationId) =>
    sql`e.organization_id = ${organizationId} AND e.environment = 'sandbox'`
  return { sql, micros, publicId, since, ofSandbox }
}

type Parts = ReturnType<typeof makeParts>

const polling = ({ micros, since, sql }: Parts) => ({
  /** For all streams at once. Misses sessions of roles that this one may not inspect. */
  poll: (of: PollQuestion): Effect.Effect<PollAnswer, SqlError.SqlError> =>
    Effect.map(
      sql<PollAnswer>`
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
    )
})

const reads = ({ micros, ofSandbox, publicId, since, sql }: Parts) => ({
  /** The next events, in order of creation. */
  read: ({ days, except, from, limit, organizationId, types }: ReadStream) =>
    sql<StreamedRow>`
        SELECT ${publicId} AS id, ${micros("e.created_at")} AS "createdAt", e.payload FROM payments.events e
        WHERE ${ofSandbox(organizationId)} AND ${since(from, days)}
          AND (cardinality(${types}::text[]) = 0 OR e.type = ANY (${types}::text[]))
          AND ${publicId} NOT IN (SELECT unnest(${except}::text[]))
        ORDER BY e.created_at, id LIMIT ${limit}`,

  /** The ids of existing events, newest first. */
  ids: ({ days, from, limit, organizationId }: Pick<ReadStream, "organizationId" | "from" | "days" | "limit">) =>
    sql<Pick<StreamedRow, "id" | "createdAt">>`
        SELECT ${publicId} AS id, ${micros("e.created_at")} AS "createdAt" FROM payments.events e
        WHERE ${ofSandbox(organizationId)} AND ${since(from, days)}
        ORDER BY e.created_at DESC LIMIT ${limit}`
})

export const makeEventStreamsRepo = Effect.map(SqlClient.SqlClient, (sql) => {
  const parts = makeParts(sql)
  return { ...polling(parts), ...reads(parts) }
})
