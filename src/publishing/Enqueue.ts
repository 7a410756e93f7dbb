import type { SqlClient, Statement } from "@effect/sql"

/** Who asked for an attempt. */
export type AttemptTrigger = "automatic" | "manual"

/**
 * The part of a statement that puts deliveries in the queue, due at once. Every statement that stores deliveries, or
 * queues them again, has it: none may be without its place there.
 *
 * @param deliveries names the part of the statement that wrote them and returns their rows
 * @param trigger who asks for the attempt
 */
export const enqueue = (
  sql: SqlClient.SqlClient,
  deliveries: string,
  trigger: AttemptTrigger = "automatic"
): Statement.Fragment =>
  sql.literal(`
    INSERT INTO payments.delivery_queue (organization_id, environment, id, endpoint_id, event_id, secret_ids,
      attempt_count, next_trigger, traceparent, created_at)
    SELECT organization_id, environment, id, endpoint_id, event_id, secret_ids,
      attempt_count, '${trigger}', traceparent, created_at
    FROM ${deliveries}`)
