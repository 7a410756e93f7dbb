import type { SqlClient, Statement } from "@effect/sql"
import { Effect } from "effect"
import { type DeliveryId, deliveryId, type EndpointId } from "../../platform/kit/Ids.ts"
import { service } from "../../platform/kit/Service.ts"
import type { Tenant } from "../../platform/kit/Tenant.ts"

/** What triggered an attempt: the service, or a re-send. */
export type AttemptTrigger = "automatic" | "manual"

/** A lease under which deliveries are put in the queue: SQL fragments for its id and its length in milliseconds. */
export interface EnqueueLease {
  readonly id: Statement.Fragment
  readonly millis: Statement.Fragment
}

/**
 * The part of a statement that puts new deliveries in the queue. Each is due at once, or is leased with its first
 * attempt already in progress. `deliveries` is as for `enqueue`; `leased` names the part whose column `leased` tells,
 * by `id`, which deliveries are leased. Returns `id`, `leased`, and the row's place, for `leasedRows`.
 */
export const enqueueLeased = (
  sql: SqlClient.SqlClient,
  deliveries: string,
  leased: string,
  lease: EnqueueLease
): Statement.Fragment => sql`
    INSERT INTO payments.delivery_queue (organization_id, environment, id, endpoint_id, event_id, secret_ids,
      attempt_count, traceparent, created_at, lease, claimed_at, leased_until)
    SELECT d.organization_id, d.environment, d.id, d.endpoint_id, d.event_id, d.secret_ids,
      CASE WHEN d.leased THEN 1 ELSE 0 END, d.traceparent, d.created_at,
      CASE WHEN d.leased THEN ${lease.id}::uuid END, CASE WHEN d.leased THEN now() END,
      CASE WHEN d.leased THEN now() + ${lease.millis}::float8 * interval '1 millisecond' END
    -- Not a join, see isAmong; asks once for each
    FROM (
      SELECT d.*, d.id IN (SELECT l.id FROM ${sql.literal(leased)} l WHERE l.leased) AS leased
      FROM ${sql.literal(deliveries)} d OFFSET 0
    ) d
    RETURNING id, lease IS NOT NULL AS leased, ctid AS tid`

/** The leased deliveries among rows `q` of that part, each with its place, as JSON. Null if there are none. */
export const leasedRows = "json_agg(json_build_array(q.id, q.tid)) FILTER (WHERE q.leased)"

/**
 * The part of a statement that puts deliveries in the queue, due at once. Every statement that stores deliveries, or
 * queues them again, must include it: no waiting delivery may be missing from the queue.
 *
 * @param deliveries names the part of the statement that wrote the deliveries and returns their rows
 * @param trigger what triggers the attempt
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

export interface Subscriber {
  readonly endpointId: EndpointId
  /** The secrets that will sign, the current one first. */
  readonly secretIds: ReadonlyArray<string>
}

export interface NewDelivery {
  readonly id: DeliveryId
  readonly endpointId: EndpointId
  readonly eventId: string
  readonly secretIds: ReadonlyArray<string>
}

/** The deliveries of an event. The same event and endpoint always get the same id. */
export const newDeliveries = (
  event: { readonly id: string; readonly receivedAt: Date },
  subscribers: ReadonlyArray<Subscriber>
): ReadonlyArray<NewDelivery> =>
  subscribers.map(({ endpointId, secretIds }) => ({
    id: deliveryId({ eventId: event.id, endpointId, receivedAt: event.receivedAt }),
    endpointId,
    eventId: event.id,
    secretIds
  }))

/** A new delivery that is stored under a lease of this process's own worker, so that no worker has to claim it. */
export interface HandedDelivery extends Tenant {
  readonly id: DeliveryId
  readonly endpointId: EndpointId
  readonly eventId: string
  readonly secretIds: ReadonlyArray<string>
  readonly payload: string
  readonly traceparent: string | null
}

/** The part of a delivery that is the same for all of one publication. */
export interface HandedPublication extends Tenant {
  readonly traceparent: string | null
}

/** A `HandedDelivery` once it is stored. */
export interface LeasedDelivery extends HandedDelivery {
  /** The place of its row in the queue: PostgreSQL's `ctid`. */
  readonly ctid: string
}

/** A delivery that was stored under a lease, and its row's place in the queue. See `enqueueLeased`. */
export type LeasedRow = readonly [id: DeliveryId, ctid: string]

/** The deliveries that a statement stored under the lease. */
export interface StoredUnderLease {
  readonly rows: ReadonlyArray<LeasedRow>
  /** In Unix milliseconds, by the database's clock. */
  readonly storedAt: number
}

export interface Recipient {
  /** How long its leases last, in milliseconds. */
  readonly leaseMillis: number
  /** Reserves a place for a delivery; false if there is none. `take` or `release` must follow. */
  readonly reserve: (delivery: HandedDelivery) => boolean
  readonly release: (delivery: HandedDelivery) => void
  /**
   * Takes deliveries for which places were reserved. Their lease began at `storedAt` by the database's clock, and at
   * `leasedAt` or later by `performance.now()`.
   */
  readonly take: (
    deliveries: ReadonlyArray<LeasedDelivery>,
    lease: { readonly id: string; readonly leasedAt: number; readonly storedAt: number }
  ) => void
}

/**
 * Hands new deliveries to the worker of the same process as they are stored, while it has room for them. This saves the
 * wake-up and the claim, so the consumer gets the event one round trip sooner. Without such a worker, or without room,
 * they wait in the queue until any worker claims them.
 */
export class LocalHandOff extends service<LocalHandOff>()(
  "connected-payments/engine/LocalHandOff",
  Effect.sync(() => {
    const recipients: Array<Recipient> = []
    return {
      /** Registers a worker for new deliveries until the scope ends; the one registered last gets them. */
      register: (recipient: Recipient) =>
        Effect.acquireRelease(
          Effect.sync(() => void recipients.push(recipient)),
          () => Effect.sync(() => void recipients.splice(recipients.indexOf(recipient), 1))
        ),
      /** Must be called before each statement that stores deliveries. */
      begin: () => new HandOff(recipients.at(-1) ?? null)
    }
  })
) {}

/** The hand-over of one statement's deliveries, ended by `settle` or `cancel`. */
export class HandOff {
  readonly lease = crypto.randomUUID()
  readonly #recipient: Recipient | null
  readonly #leasedAt = performance.now()
  readonly #reserved = new Map<DeliveryId, HandedDelivery>()

  constructor(recipient: Recipient | null) {
    this.#recipient = recipient
  }

  get leaseMillis(): number {
    return this.#recipient?.leaseMillis ?? 0
  }

  /** Reserves a place for a delivery; returns whether it should be stored under the lease. */
  offer(delivery: HandedDelivery): boolean {
    if (this.#recipient === null || !this.#recipient.reserve(delivery)) return false
    this.#reserved.set(delivery.id, delivery)
    return true
  }

  /** `offer` for a delivery of an event, as `publicationValues` calls it. */
  offerDelivery(
    { endpointId, eventId, id, secretIds }: NewDelivery,
    { payload }: { readonly payload: string },
    of: HandedPublication
  ): boolean {
    const { environment, organizationId, traceparent } = of
    return this.offer({ organizationId, environment, id, endpointId, eventId, secretIds, payload, traceparent })
  }

  /** Hands over the deliveries stored under the lease. Call it after the commit. */
  settle({ rows, storedAt }: StoredUnderLease): void {
    const stored: Array<LeasedDelivery> = []
    for (const [id, ctid] of rows) {
      const delivery = this.#reserved.get(id)
      if (delivery !== undefined) stored.push({ ...delivery, ctid })
      this.#reserved.delete(id)
    }
    this.cancel()
    if (stored.length > 0) this.#recipient?.take(stored, { id: this.lease, leasedAt: this.#leasedAt, storedAt })
  }

  /** Ends the hand-over and releases its places. If the statement was committed after all, the lease will expire. */
  cancel(): void {
    for (const delivery of this.#reserved.values()) this.#recipient?.release(delivery)
    this.#reserved.clear()
  }
}
