import { SqlClient } from "@effect/sql"
import { Context, Effect, Layer, Option, Schedule } from "effect"
import { entersEverything, Members } from "../../identity/members/Members.ts"
import type { ServiceUnavailable } from "../../platform/errors/Errors.ts"
import type { EndpointId, OrganizationId } from "../../platform/kit/Ids.ts"
import { Mailer, sendToSeveral } from "../../platform/kit/Mailer.ts"
import { mostCounted } from "../../platform/kit/Request.ts"
import type { Tenant } from "../../platform/kit/Tenant.ts"
import { orUnavailable } from "../../platform/storage/Database.ts"
import { type EndpointFailures, warningMail } from "./WarningMail.ts"

/** How many definitive failures within 24 hours cause a warning (contract 9.7). */
export const warningThreshold = 3

/** How often the process looks for failures. */
const interval = "1 minute"

/** The most reasons that a mail names. */
const maxReasons = 5

/** How long a process may take from claiming a warning to handing it over, before another process may claim it. */
const claimedFor = "5 minutes"

/** A round ends after this many consecutive warnings that the mail server did not accept: it may accept none at all. */
const mostFailuresInARow = 5

/** How long to wait after the mail server permanently refused a warning: an operator has to fix something first. */
const refusedFor = "1 hour"

/**
 * The advisory lock that keeps processes from scanning at the same time; any number that no other lock is likely to
 * have.
 */
const scanLock = 5_190_277_302

interface FailingEndpoint extends Tenant {
  readonly endpointId: EndpointId
}

export interface WarningsOptions {
  /** The URL at which integrators reach the service, without a trailing slash. */
  readonly publicUrl: string
}

/** Warnings to owners and admins that deliveries to an endpoint fail (contract 9.7). */
export class Warnings extends Context.Tag("connected-payments/destinations/Warnings")<
  Warnings,
  {
    /**
     * Warns about every endpoint with three or more definitive failures in the last 24 hours, not counting synthetic
     * tests, and no warning in the last day. Any number of processes may do it: one of them claims each warning for a
     * while. A warning that the mail server temporarily refuses is retried in the next round, after all others; five of
     * those in a row end the round.
     *
     * At most one warning per day and endpoint, whatever happens (contract 9.7): it counts as sent from just before it
     * is handed over. So if a process dies before that, nothing is lost; if it dies during the hand-over, or the mail
     * server does not confirm in time, the warning is not sent again that day, and may be lost.
     */
    readonly scan: Effect.Effect<void, ServiceUnavailable>
  }
>() {
  static readonly layer = (
    options: WarningsOptions
  ): Layer.Layer<Warnings, never, SqlClient.SqlClient | Mailer | Members> => Layer.effect(Warnings, make(options))
}

/** A change of a warning's state: how long no other is sent, if that changes, and whether it was sent. */
interface Rest {
  readonly after?: string
  readonly sent?: boolean
}

/**
 * The endpoints to warn about. Skips from tenant to tenant through the index of failed deliveries, and counts no
 * further than necessary: the cost depends on the number of tenants with failures, each of which has few endpoints, but
 * not on the number of failures or of a tenant's deleted endpoints. No other index has the order used here.
 *
 * Endpoints that were not tried come first, then those tried longest ago, so that an unreachable mailbox does not delay
 * other warnings.
 */
export const failingEndpoints = (sql: SqlClient.SqlClient) => sql<FailingEndpoint>`
  WITH RECURSIVE turn AS MATERIALIZED (
    SELECT pg_try_advisory_xact_lock(${scanLock}) AS mine
  ), failing AS (
    (SELECT d.organization_id, d.environment FROM payments.deliveries d
     WHERE d.failed_at IS NOT NULL AND (SELECT mine FROM turn)
     ORDER BY d.organization_id, d.environment, d.endpoint_id, d.failed_at LIMIT 1)
    UNION ALL
    SELECT n.* FROM failing f CROSS JOIN LATERAL (
      SELECT d.organization_id, d.environment FROM payments.deliveries d
      WHERE d.failed_at IS NOT NULL AND (d.organization_id, d.environment) > (f.organization_id, f.environment)
      ORDER BY d.organization_id, d.environment, d.endpoint_id, d.failed_at LIMIT 1
    ) n
  )
  SELECT p.organization_id AS "organizationId", p.environment, p.id AS "endpointId"
  FROM failing f
  JOIN payments.endpoints p ON p.organization_id = f.organization_id AND p.environment = f.environment
  LEFT JOIN payments.failure_warnings w
    ON w.organization_id = p.organization_id AND w.environment = p.environment AND w.endpoint_id = p.id
  WHERE p.deleted_at IS NULL AND (w.quiet_until IS NULL OR w.quiet_until <= now()) AND EXISTS (
    SELECT 1 FROM payments.deliveries d
    WHERE d.organization_id = p.organization_id AND d.environment = p.environment AND d.endpoint_id = p.id
      AND NOT d.test AND d.failed_at > now() - interval '24 hours'
    OFFSET ${warningThreshold - 1}
  )
  ORDER BY w.quiet_until NULLS FIRST`

const makeStatements = Effect.map(SqlClient.SqlClient, (sql) => ({
  due: failingEndpoints(sql),

  /**
   * Claims a warning for this process. Returns until when; none if another process has claimed it, or it was sent
   * within a day.
   */
  claim: ({ endpointId, environment, organizationId }: FailingEndpoint) =>
    Effect.map(
      sql<{ readonly until: string }>`
        INSERT INTO payments.failure_warnings AS w (organization_id, environment, endpoint_id, quiet_until)
        VALUES (${organizationId}, ${environment}, ${endpointId}, now() + ${claimedFor}::interval)
        ON CONFLICT (organization_id, environment, endpoint_id) DO UPDATE SET quiet_until = EXCLUDED.quiet_until
        WHERE w.quiet_until <= now()
        RETURNING quiet_until::text AS until`,
      ([row]) => Option.fromNullable(row?.until)
    ),

  /**
   * Changes a warning that this process still holds (its `until` is unchanged). Returns the new `until`; none if
   * another process has claimed it since. `sent`: the mail server accepted it.
   */
  rest: ({ endpointId, environment, organizationId }: FailingEndpoint, until: string, { after, sent = false }: Rest) =>
    Effect.map(
      sql<{ readonly until: string }>`
        UPDATE payments.failure_warnings SET
          quiet_until = CASE WHEN ${after ?? null}::text IS NULL THEN quiet_until ELSE now() + ${after ?? null}::interval END,
          sent_at = CASE WHEN ${sent}::boolean THEN now() ELSE sent_at END
        WHERE organization_id = ${organizationId} AND environment = ${environment} AND endpoint_id = ${endpointId}
          AND quiet_until = ${until}::timestamptz
        RETURNING quiet_until::text AS until`,
      ([row]) => Option.fromNullable(row?.until)
    ),

  /** The failures to report, the first of them and counted up to `mostCounted`; none if there are none left. */
  failures: ({ endpointId, environment, organizationId }: FailingEndpoint) =>
    Effect.map(
      sql<EndpointFailures>`
        WITH failed AS MATERIALIZED (
          SELECT d.failed_at, d.last_error_code, d.last_http_status FROM payments.deliveries d
          WHERE d.organization_id = ${organizationId} AND d.environment = ${environment}
            AND d.endpoint_id = ${endpointId} AND NOT d.test AND d.failed_at > now() - interval '24 hours'
          ORDER BY d.failed_at, d.id LIMIT ${mostCounted}
        )
        SELECT p.organization_id AS "organizationId", p.environment, p.id AS "endpointId", p.name, p.url, p.active,
          (SELECT count(*)::int FROM failed) AS count, (SELECT min(failed_at) FROM failed) AS since, (
            SELECT json_agg(reason) FROM (
              SELECT last_error_code AS "errorCode", last_http_status AS "httpStatus", count(*) AS count
              FROM failed GROUP BY 1, 2 ORDER BY 3 DESC, 1, 2 LIMIT ${maxReasons}
            ) AS reason
          ) AS reasons
        FROM payments.endpoints p
        WHERE p.organization_id = ${organizationId} AND p.environment = ${environment} AND p.id = ${endpointId}
          AND p.deleted_at IS NULL AND EXISTS (SELECT 1 FROM failed)`,
      ([row]) => Option.fromNullable(row)
    )
}))

const make = Effect.fnUntraced(function* (options: WarningsOptions) {
  const mailer = yield* Mailer
  const members = yield* Members
  const statements = yield* makeStatements

  const recipients = (organizationId: OrganizationId) =>
    Effect.map(members.list(organizationId), (all) =>
      all.filter(({ role }) => entersEverything(role)).map(({ email }) => email)
    )

  /** Sends one warning. Returns whether the mail server did not take it for now. */
  const warn = Effect.fnUntraced(function* (endpoint: FailingEndpoint) {
    const claim = yield* statements.claim(endpoint)
    if (Option.isNone(claim)) {
      return false
    }
    const failures = yield* statements.failures(endpoint)
    if (Option.isNone(failures)) {
      yield* statements.rest(endpoint, claim.value, { after: "0" })
      return false
    }
    const addresses = yield* recipients(endpoint.organizationId)
    // From here on the warning counts as sent, unless the mail server is known not to have accepted it
    const begun = yield* statements.rest(endpoint, claim.value, { after: "24 hours" })
    if (Option.isNone(begun)) {
      return false
    }
    const mails = addresses.map((to) => warningMail(failures.value, { to, publicUrl: options.publicUrl }))
    return yield* sendToSeveral(mailer, mails).pipe(
      Effect.tap((sent) => statements.rest(endpoint, begun.value, { sent })),
      Effect.as(false),
      Effect.catchTag("MailNotSent", (error) =>
        Effect.logWarning(`A warning of failed deliveries could not be sent: ${error.message}`).pipe(
          Effect.zipRight(statements.rest(endpoint, begun.value, { after: error.permanent ? refusedFor : "0" })),
          Effect.as(!error.permanent)
        )
      ),
      Effect.annotateLogs({ endpointId: endpoint.endpointId, organizationId: endpoint.organizationId })
    )
  })

  const scan = Effect.fn("Warnings.scan")(function* () {
    let failuresInARow = 0
    for (const endpoint of yield* statements.due) {
      failuresInARow = (yield* warn(endpoint)) ? failuresInARow + 1 : 0
      if (failuresInARow >= mostFailuresInARow) {
        return
      }
    }
  }, orUnavailable)

  return { scan: scan() }
})

/** Looks for failing endpoints every minute, in every process. */
export const warningsLayer: Layer.Layer<never, never, Warnings> = Layer.scopedDiscard(
  Effect.flatMap(Warnings, ({ scan }) =>
    scan.pipe(
      Effect.catchAllCause((cause) => Effect.logWarning("The search for failing endpoints failed", cause)),
      Effect.repeat(Schedule.spaced(interval).pipe(Schedule.jittered)),
      Effect.withTracerEnabled(false),
      Effect.forkScoped
    )
  )
)
