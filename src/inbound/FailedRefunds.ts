import type { SqlClient, SqlError } from "@effect/sql"
import { Effect, Either, type Layer } from "effect"
import type { ProviderEvent } from "../events/stripe/ProviderEvent.ts"
import { entersEverything, Members } from "../identity/members/Members.ts"
import { formatAmount } from "../platform/kit/Amounts.ts"
import type { Environment } from "../platform/kit/Environment.ts"
import { housekeepingLayer } from "../platform/kit/Housekeeping.ts"
import { type Mail, Mailer, sendToSeveral } from "../platform/kit/Mailer.ts"
import { serviceWith } from "../platform/kit/Service.ts"
import type { Tenant } from "../platform/kit/Tenant.ts"
import { orUnavailable } from "../platform/storage/Database.ts"
import type { InboundContext } from "./ContextStatement.ts"
import { type Decision, type FailedRefund, failedRefundOf, malformedDecision, nothing } from "./Decision.ts"
import { makeFailedRefundsRepo } from "./FailedRefundsRepo.ts"

const interval = "1 minute"

/** Retry delays of a mail: if the mail server was unreachable, and if it refused the mail, which needs an operator. */
const unreachableFor = "5 minutes"
const refusedFor = "1 hour"

/** Several notifications may be about one refund, in any order, and each may be repeated. */
export const makeRecordFailedRefund = Effect.map(
  makeFailedRefundsRepo,
  (repo) =>
    (
      environment: Environment,
      event: ProviderEvent,
      context: InboundContext
    ): Effect.Effect<Decision, SqlError.SqlError> =>
      Either.match(failedRefundOf(event), {
        onLeft: (malformed) => Effect.succeed(malformedDecision("object", malformed, context)),
        onRight: (refund) =>
          refund === null
            ? Effect.succeed(nothing("ignored", context))
            : Effect.as(
                repo.insert({ organizationId: context.organizationId, environment }, refund),
                nothing("ignored", context)
              )
      })
)

const make = Effect.fnUntraced(function* ({ publicUrl }: { readonly publicUrl: string }) {
  const repo = yield* makeFailedRefundsRepo
  const mailer = yield* Mailer
  const members = yield* Members

  const tellOne = Effect.fnUntraced(function* (tenant: Tenant) {
    const refunds = yield* repo.claim(tenant)
    if (refunds.length === 0) return
    const people = yield* members.list(tenant.organizationId)
    const addresses = people.filter(({ role }) => entersEverything(role)).map(({ email }) => email)
    const mails = addresses.map((to) => failedRefundsMail({ ...tenant, refunds }, { to, publicUrl }))
    yield* sendToSeveral(mailer, mails).pipe(
      Effect.as(null),
      Effect.catchTag("MailNotSent", (error) =>
        Effect.as(
          Effect.logWarning(`A mail about failed refunds could not be sent: ${error.message}`),
          error.permanent ? refusedFor : unreachableFor
        )
      ),
      Effect.flatMap((wait) => repo.settle(tenant, refunds, wait)),
      Effect.annotateLogs({ ...tenant })
    )
  })

  return {
    /**
     * Mails owners and admins about failed refunds not reported yet: one mail per organization and environment, at most
     * one an hour. Any number of processes may run it. If a process dies while it hands a mail over, the mail is sent
     * again.
     */
    tell: Effect.flatMap(repo.due, (tenants) => Effect.forEach(tenants, tellOne, { discard: true })).pipe(
      orUnavailable,
      Effect.withSpan("FailedRefunds.tell")
    ),
    /** Removes failed refunds recorded more than 91 days ago, which statistics can't be queried for any more. */
    clean: orUnavailable(repo.removeOld)
  }
})

/** Refunds that failed after their creation: the organization has to know, since its payers wait for their money. */
export class FailedRefunds extends serviceWith<FailedRefunds>()("connected-payments/inbound/FailedRefunds", make) {}

export const failedRefundsLayer: Layer.Layer<never, never, FailedRefunds | SqlClient.SqlClient> = housekeepingLayer(
  "failed refunds",
  Effect.map(FailedRefunds, ({ clean, tell }) => ({ "mails about failed refunds": tell, "failed refunds": clean })),
  interval
)

const listed = 20

const lineOf = ({ amount, chargeId, currency, paymentId, reason, refundId, status }: FailedRefund): string =>
  `- ${refundId}: ${formatAmount(amount, currency)} of ${paymentId ?? chargeId ?? "an unknown payment"}, ${status}${
    reason === null ? "" : ` (${reason})`
  }`

export const failedRefundsMail = (
  { environment, organizationId, refunds }: Tenant & { readonly refunds: ReadonlyArray<FailedRefund> },
  { publicUrl, to }: { readonly to: string; readonly publicUrl: string }
): Mail => {
  const some = refunds.length === 1 ? "A refund" : `${refunds.length} refunds`
  const lines = refunds.slice(0, listed).map(lineOf)
  const more = refunds.length > listed ? [`- and ${refunds.length - listed} more`] : []
  return {
    to,
    sender: organizationId,
    subject: `${some} failed in ${environment}`,
    text: `${some} of your organization did not reach the payer. The money is back in your balance at the payment provider.

Environment: ${environment}

${[...lines, ...more].join("\n")}

What to do:
1. Give the money back in another way: the payer may not know that it has not arrived.
2. Correct your own records: the event payment.refunded was sent when the refund was created, and no event follows it.
3. Read a refund with its status and reason:
   ${publicUrl}/v2/organizations/${organizationId}/provider/refunds/${refunds[0]?.refundId ?? ""}

This mail is sent at most once an hour for each environment.
`
  }
}
