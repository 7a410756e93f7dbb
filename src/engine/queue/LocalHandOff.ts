import { Context, Effect, Layer, type Scope } from "effect"
import type { DeliveryId, EndpointId } from "../../platform/kit/Ids.ts"
import type { Tenant } from "../../platform/kit/Tenant.ts"
import type { NewDelivery } from "./NewDelivery.ts"

/** A new delivery that is stored under a lease of this process's own worker, so that no worker has to claim it. */
export interface HandedDelivery extends Tenant {
  readonly id: DeliveryId
  readonly endpointId: EndpointId
  readonly eventId: string
  /** The secrets that are bound to it, newest first. */
  readonly secretIds: ReadonlyArray<string>
  /** The exact text to sign and send. */
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

/** A worker that can take over new deliveries. */
export interface Recipient {
  /** How long its leases last, in milliseconds. */
  readonly leaseMillis: number
  /** Reserves a place for one delivery to an endpoint; false if there is none. `take` or `release` must follow. */
  readonly reserve: (endpointId: EndpointId) => boolean
  /** Gives up the place that was reserved for one delivery to an endpoint. */
  readonly release: (endpointId: EndpointId) => void
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
export class LocalHandOff extends Context.Tag("connected-payments/engine/LocalHandOff")<
  LocalHandOff,
  {
    /** Registers a worker for new deliveries until the scope ends; the one registered last gets them. */
    readonly register: (recipient: Recipient) => Effect.Effect<void, never, Scope.Scope>
    /** Must be called before each statement that stores deliveries. */
    readonly begin: () => HandOff
  }
>() {
  static readonly layer: Layer.Layer<LocalHandOff> = Layer.sync(LocalHandOff, () => {
    const recipients: Array<Recipient> = []
    return {
      register: (recipient) =>
        Effect.acquireRelease(
          Effect.sync(() => void recipients.push(recipient)),
          () => Effect.sync(() => void recipients.splice(recipients.indexOf(recipient), 1))
        ),
      begin: () => new HandOff(recipients.at(-1) ?? null)
    }
  })
}

/** The hand-over of one statement's deliveries, ended by `settle` or `cancel`. */
export class HandOff {
  /** The lease under which its deliveries are stored. */
  readonly lease = crypto.randomUUID()
  readonly #recipient: Recipient | null
  readonly #leasedAt = performance.now()
  readonly #reserved = new Map<DeliveryId, HandedDelivery>()

  constructor(recipient: Recipient | null) {
    this.#recipient = recipient
  }

  /** How long the lease lasts, in milliseconds. */
  get leaseMillis(): number {
    return this.#recipient?.leaseMillis ?? 0
  }

  /** Reserves a place for a delivery; returns whether it should be stored under the lease. */
  offer(delivery: HandedDelivery): boolean {
    if (this.#recipient === null || !this.#recipient.reserve(delivery.endpointId)) return false
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
    for (const { endpointId } of this.#reserved.values()) this.#recipient?.release(endpointId)
    this.#reserved.clear()
  }
}
