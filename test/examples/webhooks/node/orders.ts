import type { WebhookEvent } from "connected-payments-webhooks"
import type { Pool, PoolClient } from "pg"

/** Applies an event in one transaction, whatever came before it and however often it comes. For `onEvent`. */
export const applyEvent = async (pool: Pool, event: WebhookEvent): Promise<void> => {
  if (event.test === true) return
  const client = await pool.connect()
  try {
    await client.query("BEGIN")
    const { rowCount } = await client.query("INSERT INTO received_events (id) VALUES ($1) ON CONFLICT DO NOTHING", [
      event.id
    ])
    if (rowCount === 1) await apply(client, event)
    await client.query("COMMIT")
  } catch (error) {
    await client.query("ROLLBACK")
    throw error // answered 503: the event is sent again
  } finally {
    client.release()
  }
}

const apply = async (client: PoolClient, event: WebhookEvent) => {
  if (event.type === "payment.succeeded") {
    const { amount_received, currency, payment_id } = event.data
    await settle(client, payment_id, null, amount_received, currency)
  } else if (event.type === "checkout.completed" || event.type === "checkout.payment_succeeded") {
    // Says which session the payment is for, and no more: payment.succeeded says that the money was received
    const { payment_id, session_id } = event.data
    if (payment_id !== null) await settle(client, payment_id, session_id, null, null)
  }
}

/** Adds what one event says of a payment; the row's lock makes events of the same payment wait for each other. */
const settle = async (
  client: PoolClient,
  paymentId: string,
  session: string | null,
  amount: number | null,
  currency: string | null
) => {
  const { rows } = await client.query(
    `INSERT INTO payments (id, session_id, amount, currency) VALUES ($1, $2, $3, $4)
     ON CONFLICT (id) DO UPDATE SET
       session_id = COALESCE(payments.session_id, EXCLUDED.session_id),
       amount = COALESCE(payments.amount, EXCLUDED.amount),
       currency = COALESCE(payments.currency, EXCLUDED.currency)
     RETURNING session_id, amount, currency`,
    [paymentId, session, amount, currency]
  )
  const [payment] = rows
  if (payment.session_id === null || payment.amount === null) return // the other event is still to come
  const paid = await client.query(
    `UPDATE orders SET payment_id = $1, state = CASE WHEN amount = $3 AND currency = $4 THEN 'paid' ELSE 'mismatch' END
     WHERE session_id = $2 AND payment_id IS NULL RETURNING id, state`,
    [paymentId, payment.session_id, payment.amount, payment.currency]
  )
  // No row: it was settled before, or the session is not one of this shop's orders
  for (const { id, state } of paid.rows) {
    if (state === "paid") await client.query("INSERT INTO shipments (order_id) VALUES ($1)", [id])
  }
}
