import { createHash } from "node:crypto"
import { text } from "node:stream/consumers"
import { v7 } from "uuid"
import { pool, serve } from "../BareHttp.ts"
import type { Sample } from "./Inbound.ts"
import { paymentOf } from "./Notification.ts"

/**
 * The least that stores a notification: `node:http`, `pg` and one prepared statement that inserts the receipt, the event,
 * the deliveries and their places in the queue. No signature, no translation, no filters, no check of anything, no spans.
 *
 * Argument, as JSON: a `Sample`.
 */

// Written by the bench that starts this process, in this form
const sample: Sample = JSON.parse(process.argv[2] ?? "")

const insert = `
  WITH receipt AS (
    INSERT INTO payments.receipts (organization_id, environment, provider_event_id, account_id, type, livemode,
      outcome, provider_created_at, month)
    VALUES ($1, 'sandbox', $2, $3, 'payment_intent.succeeded', false, 'delivered', now(), payments.month_at(0))
  ), event AS (
    INSERT INTO payments.events (organization_id, environment, id, public_id, type, payload, provider_event_id)
    VALUES ($1, 'sandbox', $4, $9, 'payment.succeeded', $5, $2)
  ), delivery AS (
    INSERT INTO payments.deliveries (organization_id, environment, id, endpoint_id, event_id, secret_ids, attempts)
    SELECT $1, 'sandbox', id, endpoint_id, $4, ARRAY[secret_id], '{}'
    FROM unnest($6::uuid[], $7::uuid[], $8::uuid[]) AS d (id, endpoint_id, secret_id)
  )
  INSERT INTO payments.delivery_queue (organization_id, environment, id, endpoint_id, event_id, secret_ids, created_at)
  SELECT $1, 'sandbox', id, endpoint_id, $4, ARRAY[secret_id], now()
  FROM unnest($6::uuid[], $7::uuid[], $8::uuid[]) AS d (id, endpoint_id, secret_id)`

const endpointIds = sample.endpoints.map(({ id }) => id)
const secretIds = sample.endpoints.map(({ secretId }) => secretId)

const store = async (providerEventId: string): Promise<void> => {
  const eventId = `svc_evt_${createHash("sha256").update(providerEventId).digest("hex")}`
  const payload = sample.payload
    .replaceAll(sample.eventId, eventId)
    .replaceAll(sample.providerEventId, providerEventId)
    .replaceAll(sample.paymentId, paymentOf(providerEventId))
  await pool.query({
    name: "store",
    text: insert,
    values: [
      sample.organizationId,
      providerEventId,
      sample.account,
      v7(),
      payload,
      endpointIds.map(() => v7()),
      endpointIds,
      secretIds,
      eventId
    ]
  })
}

serve(async (request) => {
  await store(JSON.parse(await text(request)).id)
  return [200, '{"received":true}']
})
