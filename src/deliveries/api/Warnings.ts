import { SqlClient } from "@effect/sql"
import { Context, Effect, Layer, Option, Schedule } from "effect"
import type { ServiceUnavailable } from "../../errors/Errors.ts"
import { entersEverything, Members } from "../../identity/members/Members.ts"
import type { EndpointId, OrganizationId } from "../../kit/Ids.ts"
import { Mailer, type MailNotSent } from "../../kit/Mailer.ts"
import type { Tenant } from "../../kit/Tenant.ts"
import { orUnavailable } from "../../storage/Database.ts"
import { type EndpointFailures, warningMail } from "./WarningMail.ts"

/** How many definitive failures within 24 hours an endpoint's owners hear of (contract 9.7). */
export const warningThreshold = 3

/** How often failures are looked for. */
const interval = "1 minute"

/** How many reasons a mail names at most. */
const maxReasons = 5

/** How long a process has from claiming a warning to handing it over, before another one does it. */
const claimedFor = "5 minutes"

/** How long a warning rests that the mail server will not take: an operator has to mend something first. */
const refusedFor = "1 hour"

/** Keeps the processes from looking at the same time; any number that no other lock is likely to have. */
const scanLock = 5_190_277_302

interface FailingEndpoint extends Tenant {
  readonly endpointId: EndpointId
}

export interface WarningsOptions {
  /** Where integrators reach the service, without a trailing slash. */
  readonly publicUrl: string
}

/** Warnings to owners and admins that deliveries to an endpoint fail (contract 9.7). */
export class Warnings extends Context.Tag("connected-payments/deliveries/Warnings")<
  Warnings,
  {
    /**
     * Warns of every endpoint with three or more definitive failures in the last 24 hours, synthetic tests aside, that
     * was not warned about within a day. Any number of processes may do it: one of them claims each warning for a while.
     * A mail server that can't be reached ends the round; what it did not take is tried again.
     *
     * At most one warning per day and endpoint, whatever happens (contract 9.7): it counts as sent from just before it
     * is handed over, so a process that dies before that loses nothing, and one that dies within the hand-over, or whose
     * mail server takes a mail and does not say so in time, does not send it again that day. It may then be lost.
     */
    readonly scan: Effect.Effect<void, ServiceUnavailable>
  }
>() {
  static readonly layer = (
    options: WarningsOptions
  ): Layer.Layer<Warnings, never, SqlClient.SqlClient | Mailer | Members> =>
    Layer.effect(Warnings, makeWarnings(options))
}

/** How long a warning rests, where that changes; and whether it was sent. */
interface Rest {
  readonly after?: string
  readonly sent?: boolean
}

const makeStatements = Effect.map(SqlClient.SqlClient, (sql) => ({
  /**
   * The endpoints to be warned about. Goes from endpoint to endpoint through the index of failed deliveries, and counts
   * no further than it must: its cost is that of the number of endpoints with failures, however many each has.
   */
  due: sql<FailingEndpoint>`
    WITH RECURSIVE turn AS MATERIALIZED (
      SELECT pg_try_advisory_xact_lock(${scanLock}) AS mine
    ), failing AS (
      (SELECT d.organization_id, d.environment, d.endpoint_id FROM payments.deliveries d
       WHERE d.failed_at IS NOT NULL AND (SELECT mine FROM turn)
       ORDER BY d.organization_id, d.environment, d.endpoint_id LIMIT 1)
      UNION ALL
      SELECT n.* FROM failing f CROSS JOIN LATERAL (
        SELECT d.organization_id, d.environment, d.endpoint_id FROM payments.deliveries d
        WHERE d.failed_at IS NOT NULL
          AND (d.organization_id, d.environment, d.endpoint_id) > (f.organization_id, f.environment, f.endpoint_id)
        ORDER BY d.organization_id, d.environment, d.endpoint_id LIMIT 1
      ) n
    )
    SELECT f.organization_id AS "organizationId", f.environment, f.endpoint_id AS "endpointId"
    FROM failing f
    JOIN payments.endpoints p
      ON p.organization_id = f.organization_id AND p.environment = f.environment AND p.id = f.endpoint_id
    WHERE p.deleted_at IS NULL AND NOT EXISTS (
      SELECT 1 FROM payments.failure_warnings w
      WHERE w.organization_id = f.organization_id AND w.environment = f.environment AND w.endpoint_id = f.endpoint_id
        AND w.quiet_until > now()
    ) AND EXISTS (
      SELECT 1 FROM payments.deliveries d
      WHERE d.organization_id = f.organization_id AND d.environment = f.environment AND d.endpoint_id = f.endpoint_id
        AND NOT d.test AND d.failed_at > now() - interval '24 hours'
      OFFSET ${warningThreshold - 1}
    )`,

  /** Claims it for this process; answers until when, none where another one has it or it was sent within a day. */
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
   * Has the warning rest from now on, where it still rests until the time that this process gave it; answers until when.
   * None where another process has claimed it since. `sent`: the mail server took it.
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

  /** What there is to say; none where it has healed meanwhile. */
  failures: ({ endpointId, environment, organizationId }: FailingEndpoint) =>
    Effect.map(
      sql<EndpointFailures>`
        WITH failed AS MATERIALIZED (
          SELECT d.failed_at, d.last_error_code, d.last_http_status FROM payments.deliveries d
          WHERE d.organization_id = ${organizationId} AND d.environment = ${environment}
            AND d.endpoint_id = ${endpointId} AND NOT d.test AND d.failed_at > now() - interval '24 hours'
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

const makeWarnings = Effect.fnUntraced(function* (options: WarningsOptions) {
  const mailer = yield* Mailer
  const members = yield* Members
  const statements = yield* makeStatements

  const recipients = (organizationId: OrganizationId) =>
    Effect.map(members.list(organizationId), (all) =>
      all.filter(({ role }) => entersEverything(role)).map(({ email }) => email)
    )

  /**
   * Fails where nobody can have got it. Who did not get it where others may have has it sent again in the background.
   * Answers whether the mail server took one.
   */
  const send = Effect.fnUntraced(function* (failures: EndpointFailures, addresses: ReadonlyArray<string>) {
    const refused: Array<readonly [to: string, error: MailNotSent]> = []
    const taken: Array<boolean> = []
    for (const to of addresses) {
      yield* mailer.send(warningMail(failures, { to, publicUrl: options.publicUrl })).pipe(
        Effect.tap(() => Effect.sync(() => taken.push(true))),
        Effect.catchAll((error) =>
          Effect.sync(() => (error.maybeTaken === true ? taken.push(false) : refused.push([to, error])))
        )
      )
    }
    const [first] = refused
    if (first !== undefined && taken.length === 0) {
      return yield* refused.find(([, { permanent }]) => !permanent)?.[1] ?? first[1]
    }
    for (const [to] of refused) {
      yield* mailer.queue(warningMail(failures, { to, publicUrl: options.publicUrl }))
    }
    return taken.includes(true)
  })

  /** Answers whether the round goes on: not where the mail server is out of reach. */
  const warn = Effect.fnUntraced(function* (endpoint: FailingEndpoint) {
    const claim = yield* statements.claim(endpoint)
    if (Option.isNone(claim)) {
      return true
    }
    const failures = yield* statements.failures(endpoint)
    if (Option.isNone(failures)) {
      yield* statements.rest(endpoint, claim.value, { after: "0" })
      return true
    }
    const addresses = yield* recipients(endpoint.organizationId)
    // From here on it counts as sent, unless the mail server is known not to have taken it
    const begun = yield* statements.rest(endpoint, claim.value, { after: "24 hours" })
    if (Option.isNone(begun)) {
      return true
    }
    return yield* send(failures.value, addresses).pipe(
      Effect.tap((sent) => statements.rest(endpoint, begun.value, { sent })),
      Effect.as(true),
      Effect.catchTag("MailNotSent", (error) =>
        Effect.logWarning(`A warning of failed deliveries could not be sent: ${error.message}`).pipe(
          Effect.zipRight(statements.rest(endpoint, begun.value, { after: error.permanent ? refusedFor : "0" })),
          Effect.as(error.permanent)
        )
      ),
      Effect.annotateLogs({ endpointId: endpoint.endpointId, organizationId: endpoint.organizationId })
    )
  })

  const scan = Effect.fn("Warnings.scan")(function* () {
    for (const endpoint of yield* statements.due) {
      if (!(yield* warn(endpoint))) {
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
      Effect.catchAllCause((cause) => Effect.logWarning("Failing endpoints could not be looked for", cause)),
      Effect.repeat(Schedule.spaced(interval).pipe(Schedule.jittered)),
      Effect.withTracerEnabled(false),
      Effect.forkScoped
    )
  )
)
