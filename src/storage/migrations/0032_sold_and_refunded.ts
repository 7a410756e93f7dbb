import { SqlClient } from "@effect/sql"
import { Effect } from "effect"

/**
 * What happens to a sale after it was offered: payers buy something else, refunds come in parts that lie far apart, and
 * refunds fail.
 */
export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  // What the lines of a session cost when it was created: if a payer's subtotal differs, they bought something else. Null
  // if equal subtotals would not prove that what is recorded was sold: for payment links and subscriptions, and for what
  // was recorded before
  yield* sql`ALTER TABLE payments.sold_items ADD COLUMN amount_subtotal bigint`

  // How much of a charge had been refunded by the last event that was counted for good, while some of it is left. A refund
  // event says how much was refunded so far, and the events before it may have been removed. The key is a hash of charge
  // and payment, since a team's own events may have ids of any form
  yield* sql`
    CREATE TABLE payments.refunded_in_part (
      organization_id uuid NOT NULL,
      environment text NOT NULL,
      charge_key uuid NOT NULL,
      event_id text NOT NULL,
      refunded numeric NOT NULL,
      counted_at timestamptz NOT NULL DEFAULT now(),
      PRIMARY KEY (organization_id, environment, charge_key)
    )`
  yield* sql`CREATE INDEX refunded_in_part_age ON payments.refunded_in_part (counted_at)`

  // Refunds that failed or were canceled, which may be days after they were made. Owners and admins get a mail about them
  yield* sql`
    CREATE TABLE payments.failed_refunds (
      organization_id uuid NOT NULL,
      environment text NOT NULL CHECK (environment IN ('sandbox', 'production')),
      refund_id text NOT NULL,
      charge_id text,
      payment_id text,
      amount bigint NOT NULL,
      currency text NOT NULL,
      status text NOT NULL CHECK (status IN ('failed', 'canceled')),
      failure_reason text,
      recorded_at timestamptz NOT NULL DEFAULT now(),
      -- When a mail about it is due; null once it was sent
      mail_at timestamptz DEFAULT now(),
      mailed_at timestamptz,
      PRIMARY KEY (organization_id, environment, refund_id)
    )`
  yield* sql`CREATE INDEX failed_refunds_mail ON payments.failed_refunds (mail_at) WHERE mail_at IS NOT NULL`
  yield* sql`CREATE INDEX failed_refunds_day ON payments.failed_refunds (organization_id, environment, recorded_at)`
  yield* sql`CREATE INDEX failed_refunds_age ON payments.failed_refunds (recorded_at)`
})
