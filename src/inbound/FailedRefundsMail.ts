import { formatAmount } from "../platform/kit/Amounts.ts"
import type { Mail } from "../platform/kit/Mailer.ts"
import type { Tenant } from "../platform/kit/Tenant.ts"
import type { FailedRefund } from "./RefundNews.ts"

/** The refunds that a mail is about, at least one. */
export interface FailedRefundsTold extends Tenant {
  readonly refunds: ReadonlyArray<FailedRefund>
}

/** Maximum number of refunds listed in the mail. */
const listed = 20

const lineOf = ({ amount, chargeId, currency, paymentId, reason, refundId, status }: FailedRefund): string =>
  `- ${refundId}: ${formatAmount(amount, currency)} of ${paymentId ?? chargeId ?? "an unknown payment"}, ${status}${
    reason === null ? "" : ` (${reason})`
  }`

/** The mail to owners and admins about failed refunds, and what to do about them. */
export const failedRefundsMail = (
  { environment, organizationId, refunds }: FailedRefundsTold,
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
