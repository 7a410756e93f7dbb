import { SqlClient, type SqlError } from "@effect/sql"
import { Context, Effect, Either, Layer } from "effect"
import type { ProviderEvent } from "../events/stripe/Translate.ts"
import { entersEverything, Members } from "../identity/members/Members.ts"
import type { ServiceUnavailable } from "../platform/errors/Errors.ts"
import type { Environment } from "../platform/kit/Environment.ts"
import { housekeepingLayer } from "../platform/kit/Housekeeping.ts"
import { Mailer, sendToSeveral } from "../platform/kit/Mailer.ts"
import type { Tenant } from "../platform/kit/Tenant.ts"
import { removeOld } from "../platform/storage/Batches.ts"
import { orUnavailable } from "../platform/storage/Database.ts"
import type { InboundContext } from "./ContextStatement.ts"
import { type Decision, nothing, unreadable } from "./Decision.ts"
import { failedRefundsMail } from "./FailedRefundsMail.ts"
import { type FailedRefund, failedRefundOf } from "./RefundNews.ts"

/** How often to look for failed refunds to report. */
const interval = "1 minute"

/** How many organizations get their mail in a run, and the maximum number of refunds in one mail. */
const tenantsAtOnce = 50
const refundsAtOnce = 1000

/** Lease on a mail: how long a process may take to hand it over before another one tries. */
const claimedFor = "5 minutes"

/** Retry delays of a mail: if the mail server was unreachable, and if it refused the mail, which needs an operator. */
const unreachableFor = "5 minutes"
const refusedFor = "1 hour"

/**
 * Handles an event about a refund: records the refund if it failed, and returns the decision for the receipt. Several
 * notifications may be about one refund, in any order, and each may be repeated.
 */
export const makeTakeRefundNews = Effect.map(
  SqlClient.SqlClient,
  (sql) =>
    (
      environment: Environment,
      event: ProviderEvent,
      context: InboundContext
    ): Effect.Effect<Decision, SqlError.SqlError> =>
      Either.match(failedRefundOf(event), {
        onLeft: (malformed) => Effect.succeed(unreadable("object", malformed, context)),
        onRight: (refund) =>
          refund === null
            ? Effect.succeed(nothing("ignored", context))
            : sql`
                INSERT INTO payments.failed_refunds (organization_id, environment, refund_id, charge_id, payment_id,
                  amount, currency, status, failure_reason)
                VALUES (${context.organizationId}, ${environment}, ${refund.refundId}, ${refund.chargeId},
                  ${refund.paymentId}, ${refund.amount}, ${refund.currency}, ${refund.status}, ${refund.reason})
                ON CONFLICT (organization_id, environment, refund_id) DO NOTHING`.pipe(
                Effect.as(nothing("ignored", context))
              )
      })
)

export interface FailedRefundsOptions {
  /** The URL at which integrators reach the service, without a trailing slash. */
  readonly publicUrl: string
}

/** Refunds that failed after they were made: the organization has to know, since its payers wait for their money. */
export class FailedRefunds extends Context.Tag("connected-payments/inbound/FailedRefunds")<
  FailedRefunds,
  {
    /**
     * Mails owners and admins about failed refunds not reported yet: one mail per organization and environment, at most
     * one an hour. Any number of processes may run it. If a process dies while it hands a mail over, the mail is sent
     * again.
     */
    readonly tell: Effect.Effect<void, ServiceUnavailable>
    /** Removes failed refunds recorded more than 91 days ago, which statistics can't be queried for any more. */
    readonly clean: Effect.Effect<void, ServiceUnavailable>
  }
>() {
  static readonly layer = (
    options: FailedRefundsOptions
  ): Layer.Layer<FailedRefunds, never, SqlClient.SqlClient | Mailer | Members> =>
    Layer.effect(FailedRefunds, make(options))
}

/** A claimed refund to report; `amount` is text. */
type Claimed = Omit<FailedRefund, "amount"> & { readonly amount: string }

const make = Effect.fnUntraced(function* ({ publicUrl }: FailedRefundsOptions) {
  const sql = yield* SqlClient.SqlClient
  const mailer = yield* Mailer
  const members = yield* Members

  const due = sql<Tenant>`
    SELECT f.organization_id AS "organizationId", f.environment FROM payments.failed_refunds f
    WHERE f.mail_at <= now() AND NOT EXISTS (
      SELECT 1 FROM payments.failed_refunds t
      WHERE t.organization_id = f.organization_id AND t.environment = f.environment
        AND t.mailed_at > now() - interval '1 hour'
    )
    GROUP BY f.organization_id, f.environment ORDER BY min(f.mail_at) LIMIT ${tenantsAtOnce}`

  const claim = ({ environment, organizationId }: Tenant) => sql<Claimed>`
    WITH due AS MATERIALIZED (
      SELECT refund_id FROM payments.failed_refunds
      WHERE organization_id = ${organizationId} AND environment = ${environment} AND mail_at <= now()
      ORDER BY recorded_at LIMIT ${refundsAtOnce} FOR UPDATE SKIP LOCKED
    )
    UPDATE payments.failed_refunds f SET mail_at = now() + ${claimedFor}::interval FROM due
    WHERE f.organization_id = ${organizationId} AND f.environment = ${environment} AND f.refund_id = due.refund_id
    RETURNING f.refund_id AS "refundId", f.charge_id AS "chargeId", f.payment_id AS "paymentId", f.amount, f.currency,
      f.status, f.failure_reason AS reason`

  /** @param wait time until the next try; null if the refunds were reported */
  const settle = ({ environment, organizationId }: Tenant, refunds: ReadonlyArray<Claimed>, wait: string | null) => sql`
    UPDATE payments.failed_refunds SET mail_at = now() + ${wait}::interval,
      mailed_at = CASE WHEN ${wait}::text IS NULL THEN now() END
    WHERE organization_id = ${organizationId} AND environment = ${environment}
      AND refund_id = ANY (${refunds.map(({ refundId }) => refundId)}::text[])`

  const tellOne = Effect.fnUntraced(function* (tenant: Tenant) {
    const claimed = yield* claim(tenant)
    if (claimed.length === 0) return
    const people = yield* members.list(tenant.organizationId)
    const addresses = people.filter(({ role }) => entersEverything(role)).map(({ email }) => email)
    const refunds = claimed.map((refund) => ({ ...refund, amount: Number(refund.amount) }))
    const mails = addresses.map((to) => failedRefundsMail({ ...tenant, refunds }, { to, publicUrl }))
    yield* sendToSeveral(mailer, mails).pipe(
      Effect.as(null),
      Effect.catchTag("MailNotSent", (error) =>
        Effect.as(
          Effect.logWarning(`A mail about failed refunds could not be sent: ${error.message}`),
          error.permanent ? refusedFor : unreachableFor
        )
      ),
      Effect.flatMap((wait) => settle(tenant, claimed, wait)),
      Effect.annotateLogs({ ...tenant })
    )
  })

  return {
    tell: Effect.flatMap(due, (tenants) => Effect.forEach(tenants, tellOne, { discard: true })).pipe(
      orUnavailable,
      Effect.withSpan("FailedRefunds.tell")
    ),
    clean: removeOld(sql, {
      table: "failed_refunds",
      key: ["organization_id", "environment", "refund_id"],
      old: sql`r.recorded_at < now() - interval '91 days'`,
      by: "recorded_at"
    }).pipe(orUnavailable)
  }
})

/** Reports failed refunds in the background, and removes old ones. */
export const failedRefundsLayer: Layer.Layer<never, never, FailedRefunds | SqlClient.SqlClient> = housekeepingLayer(
  "failed refunds",
  Effect.map(FailedRefunds, ({ clean, tell }) => ({ "mails about failed refunds": tell, "failed refunds": clean })),
  interval
)
