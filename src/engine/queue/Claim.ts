import type { SqlClient, SqlError, Statement } from "@effect/sql"
import { Duration, Effect } from "effect"
import { v7 } from "uuid"
import type { Encrypted } from "../../platform/kit/crypto/Cipher.ts"
import type { DeliveryId, EndpointId } from "../../platform/kit/Ids.ts"
import type { Tenant } from "../../platform/kit/Tenant.ts"
import type { RunStatement } from "../../platform/storage/Statements.ts"
import { automaticDelays, jitter, maxAbandoned, maxAttempts } from "../attempts/Outcome.ts"
import type { AttemptTrigger, LeasedDelivery } from "./Enqueue.ts"

/** A claimed delivery, with everything its attempt needs except the data shared by endpoint: see `Destination`. */
export interface ClaimedDelivery extends Tenant {
  readonly id: DeliveryId
  readonly lease: string
  /**
   * The place of its row in the queue when it was leased: PostgreSQL's `ctid`. It is valid unless the table is
   * rewritten.
   */
  readonly ctid: string
  /** The number of the attempt to make, from 1. */
  readonly attempt: number
  /** How many attempts before it were interrupted since it was queued. */
  readonly interrupted: number
  readonly trigger: AttemptTrigger
  readonly endpointId: EndpointId
  readonly eventId: string
  /** The secrets that are bound to it, newest first. */
  readonly secretIds: ReadonlyArray<string>
  /** When it was queued and when it was claimed, in Unix milliseconds by the database's clock. */
  readonly createdAt: number
  readonly claimedAt: number
  /** The exact text to sign and send. */
  readonly payload: string
  readonly traceparent: string | null
}

export interface Destination {
  readonly url: string
  /** Deleted: its secrets are erased, and nothing more is sent to it. */
  readonly isDeleted: boolean
  readonly secrets: ReadonlyArray<StoredSecret>
}

export interface StoredSecret {
  readonly id: string
  readonly encrypted: Encrypted
  /** When a rotation replaced it, in Unix milliseconds; null while it is the current one. */
  readonly retiredAt: number | null
}

export interface Claim {
  readonly deliveries: ReadonlyArray<ClaimedDelivery>
  /** Milliseconds until the next delivery comes due that is not due yet; null if there is none. */
  readonly nextDueInMillis: number | null
  /** Whether more was due than the claim looked at. The next claim, with these attempts in flight, sees others. */
  readonly more: boolean
  /** Everything due before this place belongs to endpoints that were left out or asked for. */
  readonly place: QueuePlace
  /** For each endpoint asked for that has due deliveries: where they begin. */
  readonly askedFor: ReadonlyMap<EndpointId, QueuePlace>
}

/** A time, as the database writes it. */
export type QueuePlace = string

export const queueStart: QueuePlace = "-infinity"

/** A request to claim one endpoint's deliveries, besides those next in the queue. */
export interface AskedFor {
  readonly endpointId: EndpointId
  /** Where to start the search: none of its due deliveries is before that. */
  readonly from: QueuePlace
  readonly room: number
}

export interface ClaimOptions {
  readonly limit: number
  readonly lease: Duration.Duration
  /** Attempts in flight per endpoint, including those of `inFlight`. */
  readonly perEndpoint: number
  readonly inFlight: ReadonlyMap<EndpointId, number>
  /** For endpoints of `inFlight` that are allowed less than `perEndpoint`. */
  readonly caps?: ReadonlyMap<EndpointId, number>
  /** For endpoints that are not in `inFlight`. Default `perEndpoint`. */
  readonly perNewcomer?: number
  /**
   * Which deliveries to look at besides those asked for: those due, the longest due first (the default); those that
   * came due in the last few seconds, the newest first; or none.
   */
  readonly look?: "oldest" | "newest" | "asked"
  /** Where to start the search for the oldest. Default `queueStart`. */
  readonly from?: QueuePlace
  readonly leftOut?: ReadonlyArray<EndpointId>
  /** Whether it steps over endpoints at their cap that are not left out: then it looks at a bounded number of rows. */
  readonly hides?: boolean
  /** Endpoints among those left out that are looked up separately. */
  readonly askedFor?: ReadonlyArray<AskedFor>
}

interface ClaimSummary {
  readonly claimedAt: number
  /** Of today's table of deliveries. */
  readonly pages: number
  /** Of the queue. */
  readonly queuePages: number
  readonly interrupted: number
  readonly more: boolean
  readonly place: QueuePlace
  readonly askedFor: ReadonlyArray<readonly [EndpointId, QueuePlace]> | null
  readonly nextDueInMillis: number | null
}

/** The tables' sizes in pages at a claim. */
type TableSizes = Pick<ClaimSummary, "claimedAt" | "pages" | "queuePages">

interface ClaimedRow extends Omit<ClaimedDelivery, "lease" | "claimedAt" | "secretIds"> {
  readonly claim: null
  readonly secretIds: string
}

/** A row of a claim: the first is about the claim itself, then there is one for each delivery. */
export type ClaimRow = ClaimedRow | { readonly claim: ClaimSummary }

/** A class rather than an object literal, for V8: see `Exchange`. */
export class DeliveryUnderLease implements ClaimedDelivery {
  readonly organizationId
  readonly environment
  readonly id
  readonly lease
  readonly ctid
  readonly attempt
  readonly interrupted
  readonly trigger
  readonly endpointId
  readonly eventId
  readonly secretIds
  readonly createdAt
  readonly claimedAt
  readonly payload
  readonly traceparent

  constructor(
    of: Omit<LeasedDelivery, "secretIds">,
    secretIds: ReadonlyArray<string>,
    {
      attempt,
      createdAt,
      interrupted,
      trigger
    }: Pick<ClaimedDelivery, "attempt" | "createdAt" | "interrupted" | "trigger">,
    { claimedAt, lease }: Pick<ClaimedDelivery, "claimedAt" | "lease">
  ) {
    this.organizationId = of.organizationId
    this.environment = of.environment
    this.id = of.id
    this.lease = lease
    this.ctid = of.ctid
    this.attempt = attempt
    this.interrupted = interrupted
    this.trigger = trigger
    this.endpointId = of.endpointId
    this.eventId = of.eventId
    this.secretIds = secretIds
    this.createdAt = createdAt
    this.claimedAt = claimedAt
    this.payload = of.payload
    this.traceparent = of.traceparent
  }
}

/** Reads the rows of a claim; `pages` and `queuePages` are the tables' sizes at `claimedAt`. */
export const toClaim = (rows: ReadonlyArray<ClaimRow>, lease: string): Claim & TableSizes => {
  const summary = rows[0]?.claim
  if (summary === undefined || summary === null) throw new Error("A claim does not begin with its summary")
  const deliveries: Array<ClaimedDelivery> = []
  const claim = { lease, claimedAt: summary.claimedAt }
  for (const row of rows) {
    if (row.claim !== null) continue
    deliveries.push(new DeliveryUnderLease(row, row.secretIds.split(","), row, claim))
  }
  return {
    deliveries,
    claimedAt: summary.claimedAt,
    pages: summary.pages,
    queuePages: summary.queuePages,
    nextDueInMillis: summary.nextDueInMillis,
    more: summary.more,
    place: summary.place,
    askedFor: new Map(summary.askedFor)
  }
}

/**
 * A PostgreSQL array as text, of values that need no quotes: numbers, ids, names of ours. Far cheaper than the client's
 * own conversion, which inspects the type of each value.
 */
export const arrayOf = <A>(rows: ReadonlyArray<A>, value: (row: A) => string | number | null): string => {
  let text = "{"
  for (const row of rows) {
    const item = value(row)
    text += text.length > 1 ? `,${item === null ? "NULL" : item}` : item === null ? "NULL" : item
  }
  return `${text}}`
}

/** An endpoint as read from its row. */
export interface StoredDestination {
  readonly endpointId: EndpointId
  readonly url: string
  readonly isDeleted: boolean
  readonly secrets: ReadonlyArray<{
    readonly id: string
    readonly masterKeyId: string
    readonly ciphertext: string
    readonly retiredAt: number | null
  }> | null
}

export const toSecret = ({
  ciphertext,
  id,
  masterKeyId,
  retiredAt
}: NonNullable<StoredDestination["secrets"]>[number]): StoredSecret => ({
  id,
  encrypted: { masterKeyId, ciphertext: Buffer.from(ciphertext, "base64") },
  retiredAt
})

const millisPerDay = 24 * 3600 * 1000

/**
 * Days repeat after this many: by then, every plan has been renewed anyway, since adding a day's tables invalidates all
 * plans that use them.
 */
const daysApart = 8

/**
 * Renews the queue's statement plans. PostgreSQL keeps the plan of a prepared statement, and a plan made while a table
 * was empty would read all of it every time. So each statement's text states how far the day's table of deliveries and
 * the queue have grown, and it is planned anew when that changes.
 */
export class Plans {
  readonly #sql: SqlClient.SqlClient
  #mark = "0"

  constructor(sql: SqlClient.SqlClient) {
    this.#sql = sql
  }

  /** A comment to include in each statement. */
  get mark(): Statement.Fragment {
    return this.#sql.literal(`/* ${this.#mark} */`)
  }

  /** Records the tables' sizes in pages at a claim. The mark counts how many times each has grown fourfold. */
  note({ claimedAt, pages, queuePages }: TableSizes): void {
    const day = Math.floor(claimedAt / millisPerDay) % daysApart
    this.#mark = `${day}.${fourfolds(pages)}.${fourfolds(queuePages)}`
  }
}

const fourfolds = (pages: number): number => Math.floor(Math.log2(pages + 1) / 2)

/** How many due rows a claim looks at, as a multiple of its limit, to pick fairly across endpoints. */
const windowFactor = 2

/**
 * How many rows a claim looks at, whatever its limit, that takes the newest, or steps over endpoints at their cap: all that
 * is due may be theirs. And the maximum age of the newest.
 */
const mostLooked = 1024
const newestAge = "5 seconds"

/**
 * How long, in milliseconds, a delivery waits after its claim was abandoned, for the first time, the second and so on,
 * and, if its endpoint was deleted, until the housekeeping ends it. Null if it does not wait.
 */
const abandonedFor = `CASE WHEN lease IS NOT NULL THEN ('{${automaticDelays.map(Duration.toMillis).join(",")}}'::float8[])[abandoned + 1] END`
const deletedFor = "CASE WHEN endpoint_id = ANY (ARRAY(SELECT id FROM deleted)) THEN 120000 END"
const jittered = `(${jitter.min} + random() * ${jitter.max - jitter.min})`

/** Whether a delivery's claim was abandoned after its confirmation, so that its attempt counts. */
const cutOff = "(lease IS NOT NULL AND lease <> ALL (ARRAY(SELECT lease FROM unconfirmed)))"

const itself = <A>(value: A): A => value

/** Due rows that may be claimed besides those of the endpoints asked for; at most `window` rows. */
const lookedAt = (sql: SqlClient.SqlClient, { look }: ClaimOptions, out: ReadonlyArray<EndpointId>, window: number) => {
  // Not `= ANY`, which compares one by one: there may be thousands
  const free = sql`CASE WHEN leased_until IS NULL OR leased_until <= now()
    THEN endpoint_id NOT IN (SELECT unnest(${arrayOf(out, itself)}::uuid[])) END`
  return look === "newest"
    ? sql`
        SELECT tid, endpoint_id, next_attempt_at FROM (
          SELECT ctid AS tid, endpoint_id, next_attempt_at, leased_until FROM payments.delivery_queue
          WHERE next_attempt_at >= ANY (ARRAY[now() - ${newestAge}::interval]) AND next_attempt_at <= now()
          ORDER BY next_attempt_at DESC LIMIT ${mostLooked}
        ) AS newest
        WHERE ${free}
        ORDER BY next_attempt_at DESC LIMIT ${window}`
    : sql`
        SELECT tid, endpoint_id, next_attempt_at FROM looked WHERE ${free} ORDER BY next_attempt_at LIMIT ${window}`
}

/** The part `chosen` of a claim, and those before it: which due rows it takes, and what the summary tells of them. */
const chosenSql = (sql: SqlClient.SqlClient, options: ClaimOptions) => {
  const { askedFor = [], caps, leftOut = [], perEndpoint, perNewcomer = perEndpoint } = options
  const capOf = (id: EndpointId) => caps?.get(id) ?? perEndpoint
  const out = new Set(leftOut)
  for (const [id, count] of options.inFlight) if (count >= capOf(id)) out.add(id)
  // Endpoints left out and not asked for can't be found. There may be hundreds of them, and hundreds of claims a
  // second
  const asked = new Set(askedFor.map(({ endpointId }) => endpointId))
  const busy = Array.from(options.inFlight).filter(([id]) => !out.has(id) || asked.has(id))
  // Without a limit, the planner makes one of it and of what looks at it. Of rows under a lease there are few
  const [how, bound] = options.hides
    ? [
        "MATERIALIZED",
        `AND (leased_until IS NULL OR leased_until <= now()) ORDER BY next_attempt_at LIMIT ${mostLooked}`
      ]
    : ["NOT MATERIALIZED", ""]
  return sql`looked AS ${sql.literal(how)} (
        SELECT ctid AS tid, endpoint_id, next_attempt_at, leased_until FROM payments.delivery_queue
        WHERE next_attempt_at >= ANY (ARRAY[${options.from ?? queueStart}::timestamptz]) AND next_attempt_at <= now()
        ${sql.literal(bound)}
      ), next AS MATERIALIZED (${lookedAt(sql, options, [...out], windowOf(options))}
      ), asked AS MATERIALIZED (
        SELECT a.tid, w.endpoint_id, a.next_attempt_at
        FROM unnest(${arrayOf(askedFor, ({ endpointId }) => endpointId)}::uuid[],
          ${arrayOf(askedFor, ({ from }) => `"${from}"`)}::timestamptz[],
          ${arrayOf(askedFor, ({ room }) => room)}::int[]) AS w (endpoint_id, since, room)
        CROSS JOIN LATERAL (
          SELECT ctid AS tid, next_attempt_at FROM payments.delivery_queue
          WHERE (endpoint_id, next_attempt_at) >= (w.endpoint_id, w.since)
            AND (endpoint_id, next_attempt_at) <= (w.endpoint_id, now())
            AND (leased_until IS NULL OR leased_until <= now())
          ORDER BY endpoint_id, next_attempt_at LIMIT w.room
        ) AS a
      ), due AS (
        SELECT * FROM next UNION ALL SELECT * FROM asked
      ), chosen AS MATERIALIZED (
        SELECT tid FROM (
          SELECT due.tid, due.next_attempt_at, COALESCE(busy.cap, ${perNewcomer}) AS cap, COALESCE(busy.attempts, 0)
            + row_number() OVER (PARTITION BY due.endpoint_id ORDER BY due.next_attempt_at) AS turn
          FROM due LEFT JOIN unnest(${arrayOf(busy, ([id]) => id)}::uuid[], ${arrayOf(busy, ([, count]) => count)}::int[],
            ${arrayOf(busy, ([id]) => capOf(id))}::int[])
            AS busy (endpoint_id, attempts, cap) ON busy.endpoint_id = due.endpoint_id
        ) AS ranked
        WHERE turn <= cap
        ORDER BY turn, next_attempt_at ${sql.literal(options.look === "newest" ? "DESC" : "ASC")}
        LIMIT ${options.limit}
      )`
}

const windowOf = ({ limit, look }: ClaimOptions): number => (look === "asked" ? 0 : limit * windowFactor)

/** The parts of a claim that lock the chosen rows and lease them, and end what was abandoned too often. */
const takenSql = (sql: SqlClient.SqlClient, options: ClaimOptions, lease: string) => {
  const interrupted = sql.literal(cutOff)
  const usedUp = sql.literal(
    `(lease IS NOT NULL AND (abandoned >= ${maxAbandoned - 1} OR attempt_count >= ${maxAttempts} AND ${cutOff}))`
  )
  const rests = sql.literal(`GREATEST(${abandonedFor}, ${deletedFor}) > 0`)
  return sql`locked AS MATERIALIZED (
        -- Rows are named by their place, and through an array: with a join here, a stale plan exceeds the limit
        SELECT ctid AS tid, organization_id, environment, id, endpoint_id, lease, attempt_count, next_trigger, claimed_at,
          abandoned
        FROM payments.delivery_queue
        WHERE ctid = ANY (ARRAY(SELECT tid FROM chosen))
          -- Again, of the row as it is once it is locked; in a form that no index serves: without statistics yet,
          -- one would be read from end to end for it
          AND CASE WHEN leased_until IS NULL OR leased_until <= now() THEN next_attempt_at <= now() END
        FOR UPDATE SKIP LOCKED
      ), deleted AS MATERIALIZED (
        SELECT e.id FROM (SELECT DISTINCT organization_id, environment, endpoint_id FROM locked) l
        CROSS JOIN LATERAL (
          SELECT e.id FROM payments.endpoints e WHERE e.organization_id = l.organization_id
            AND e.environment = l.environment AND e.id = l.endpoint_id AND e.deleted_at IS NOT NULL OFFSET 0
        ) e
      ), unconfirmed AS MATERIALIZED (
        SELECT lease FROM payments.unconfirmed_claims WHERE lease = ANY (ARRAY(SELECT lease FROM locked))
      ), given_up AS (
        DELETE FROM payments.delivery_queue WHERE ctid = ANY (ARRAY(SELECT tid FROM locked WHERE ${usedUp}))
      ), interrupted AS MATERIALIZED (
        SELECT payments.record_interrupted(organization_id, environment, id, attempt_count, next_trigger, claimed_at,
          ${usedUp})
        FROM locked WHERE ${interrupted} OR ${usedUp}
      ), claimed AS (
        -- In one update with those that rest: another one would read the whole table while its plan is stale
        UPDATE payments.delivery_queue SET
          lease = CASE WHEN ${rests} THEN NULL ELSE ${lease}::uuid END, claimed_at = now(),
          attempt_count = attempt_count + CASE WHEN ${rests} THEN 0 ELSE 1 END
            - CASE WHEN lease IS NULL OR ${interrupted} THEN 0 ELSE 1 END,
          abandoned = abandoned + CASE WHEN lease IS NULL THEN 0 ELSE 1 END,
          interrupted = interrupted + ${interrupted}::int,
          leased_until = CASE WHEN ${rests} THEN NULL
            ELSE now() + ${Duration.toMillis(options.lease)} * interval '1 millisecond' END,
          next_attempt_at = CASE WHEN ${rests}
            THEN now() + ${sql.literal(`GREATEST(${abandonedFor} * ${jittered}, ${deletedFor})`)} * interval '1 millisecond'
            ELSE next_attempt_at END
        WHERE ctid = ANY (ARRAY(SELECT tid FROM locked WHERE NOT ${usedUp}))
        RETURNING ctid AS tid, organization_id, environment, id, attempt_count, interrupted, next_trigger, endpoint_id,
          event_id, secret_ids, created_at, traceparent, lease
      ), unconfirmed_itself AS (
        INSERT INTO payments.unconfirmed_claims
        SELECT ${lease}::uuid WHERE EXISTS (SELECT FROM claimed WHERE lease IS NOT NULL)
      )`
}

const answerSql = (sql: SqlClient.SqlClient, options: ClaimOptions) => sql`
      -- About the claim, in one row; then the deliveries, without it
      SELECT json_build_object(
          'claimedAt', date_part('epoch', now()) * 1000,
          'pages', COALESCE(
            pg_relation_size(to_regclass('payments.deliveries_' || to_char(now() AT TIME ZONE 'UTC', 'YYYYMMDD'))), 0
          ) / 8192,
          'queuePages', pg_relation_size('payments.delivery_queue') / 8192,
          -- Are read, so that they happen. The commit need not wait for the disk: see makeClaim
          'interrupted', (SELECT count(*) FROM interrupted),
          'synchronousCommit', set_config('synchronous_commit', 'off', true),
          'more', (SELECT count(*) FROM next) >= ${windowOf(options)}${sql.literal(
            options.hides === true ? ` OR (SELECT count(*) FROM looked) >= ${mostLooked}` : ""
          )},
          -- A row that is stored late has the time when its transaction began: look back a little
          'place', LEAST((SELECT min(next_attempt_at) FROM next), now() - interval '2 seconds')::text,
          'askedFor', (SELECT json_agg(json_build_array(endpoint_id, first)) FROM (
            SELECT endpoint_id, min(next_attempt_at)::text AS first FROM asked GROUP BY endpoint_id
          ) AS a),
          'nextDueInMillis', date_part('epoch', (
            SELECT next_attempt_at FROM payments.delivery_queue
            WHERE next_attempt_at > now() ORDER BY next_attempt_at LIMIT 1
          ) - now()) * 1000
        ) AS claim, NULL::uuid AS "organizationId", NULL::text AS environment, NULL::uuid AS id, NULL::smallint AS attempt,
        NULL::smallint AS interrupted, NULL::text AS trigger, NULL::uuid AS "endpointId", NULL::text AS "eventId", NULL::text AS traceparent,
        NULL::text AS payload, NULL::text AS "secretIds", NULL::float8 AS "createdAt", NULL::tid AS ctid
      UNION ALL
      SELECT NULL, d.organization_id, d.environment, d.id, d.attempt_count, d.interrupted, d.next_trigger, d.endpoint_id, e.public_id,
        d.traceparent, e.payload, array_to_string(d.secret_ids, ','), date_part('epoch', d.created_at) * 1000, d.tid
      -- Not a join, for which a plan may read every day's table
      FROM claimed d CROSS JOIN LATERAL (
        SELECT e.public_id, e.payload FROM payments.events e
        WHERE e.organization_id = d.organization_id AND e.environment = d.environment AND e.id = d.event_id LIMIT 1
      ) e WHERE d.lease IS NOT NULL`

/**
 * The claim: a statement that leases due deliveries and returns everything their attempts need, then one that confirms
 * that this arrived. Attempts begin after that, so a claim that was abandoned unconfirmed has sent nothing, and takes no
 * attempt. One abandoned later takes an attempt, `interrupted`.
 *
 * Deliveries of dead workers are claimed again, delayed as long as before the automatic attempt of the same number, or
 * given up after `maxAbandoned` abandoned claims, confirmed or not, the last of which is listed as `interrupted`.
 * Abandoned claims use up none of the automatic attempts, and don't end a manual one. Deliveries of deleted endpoints
 * are not claimed.
 *
 * Neither statement waits for the disk: if the database crashes, claims of its last 0.6 seconds may be lost, and those
 * deliveries are claimed again, as the same attempt. Records wait for the disk, and claims made before them are on it, too.
 *
 * Conditions are written so that the planner has no choice but to follow the index in its order and stop at the limit:
 * it knows little about a table that is empty one minute and full the next. It expects a range written as `>=` and `<=`
 * to hold few rows, and would read them all and then sort; `>= ANY` of one value means the same and avoids that. With a
 * range of whole rows and the matching order, only the index of that order is used.
 */
export const makeClaim =
  (sql: SqlClient.SqlClient, run: RunStatement, plans: Plans) =>
  (options: ClaimOptions): Effect.Effect<Claim, SqlError.SqlError> =>
    Effect.suspend(() => {
      const lease = v7()
      const claim = Effect.map(
        run(
          sql<ClaimRow>`
      ${plans.mark} WITH ${chosenSql(sql, options)}, ${takenSql(sql, options, lease)}
      ${answerSql(sql, options)}`
        ),
        (rows) => {
          const claimed = toClaim(rows, lease)
          plans.note(claimed)
          return claimed
        }
      )
      const confirm = run(sql`
        DELETE FROM payments.unconfirmed_claims
        WHERE lease = ${lease} AND set_config('synchronous_commit', 'off', true) = 'off'`)
      return Effect.tap(claim, ({ deliveries }) => (deliveries.length === 0 ? Effect.void : confirm))
    })
