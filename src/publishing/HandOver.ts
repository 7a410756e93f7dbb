import { Context, Effect, Layer, type Scope } from "effect"
import type { DeliveryId, EndpointId } from "../kit/Ids.ts"
import type { Tenant } from "../kit/Tenant.ts"

/** A new delivery that is stored under a lease of this process's own worker, so that nobody has to claim it. */
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

/** What the statement that stores deliveries returns about those stored under the lease. */
export interface StoredUnderLease {
  readonly ids: ReadonlyArray<DeliveryId>
  /** In Unix milliseconds, by the database's clock. */
  readonly storedAt: number
}

/** A worker that takes over new deliveries. */
export interface Recipient {
  /** How long its leases last, in milliseconds. */
  readonly leaseMillis: number
  /** Keeps a place for one delivery to an endpoint; false if there is none. `take` or `release` follows. */
  readonly reserve: (endpointId: EndpointId) => boolean
  /** Gives up the place that was kept for one delivery to an endpoint. */
  readonly release: (endpointId: EndpointId) => void
  /**
   * Takes deliveries for which places were kept. Their lease began at `storedAt` by the database's clock, and not
   * before `leasedAt` by `performance.now()`.
   */
  readonly take: (
    deliveries: ReadonlyArray<HandedDelivery>,
    lease: { readonly id: string; readonly leasedAt: number; readonly storedAt: number }
  ) => void
}

/**
 * Hands new deliveries to the worker of the same process as they are stored, while it has room for them: this saves the
 * wake-up and the claim, and the consumer has the event a round trip sooner. Without such a worker, or without room,
 * they wait in the queue for any worker's claim.
 */
export class HandOver extends Context.Tag("connected-payments/publishing/HandOver")<
  HandOver,
  {
    /** Has a worker take over new deliveries until the scope ends; the last one registered does so. */
    readonly register: (recipient: Recipient) => Effect.Effect<void, never, Scope.Scope>
    /** To be called before each statement that stores deliveries. */
    readonly begin: () => Handing
  }
>() {
  static readonly layer: Layer.Layer<HandOver> = Layer.sync(HandOver, () => {
    const recipients: Array<Recipient> = []
    return {
      register: (recipient) =>
        Effect.acquireRelease(
          Effect.sync(() => void recipients.push(recipient)),
          () => Effect.sync(() => void recipients.splice(recipients.indexOf(recipient), 1))
        ),
      begin: () => new Handing(recipients.at(-1) ?? null)
    }
  })
}

/** What one statement hands over. `settle` or `cancel` ends it. */
export class Handing {
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

  /** Whether a delivery is to be stored under the lease. */
  offer(delivery: HandedDelivery): boolean {
    if (this.#recipient === null || !this.#recipient.reserve(delivery.endpointId)) return false
    this.#reserved.set(delivery.id, delivery)
    return true
  }

  /** The statement is committed: hands over what it stored under the lease. */
  settle({ ids, storedAt }: StoredUnderLease): void {
    const stored: Array<HandedDelivery> = []
    for (const id of ids) {
      const delivery = this.#reserved.get(id)
      if (delivery !== undefined) stored.push(delivery)
      this.#reserved.delete(id)
    }
    this.cancel()
    if (stored.length > 0) this.#recipient?.take(stored, { id: this.lease, leasedAt: this.#leasedAt, storedAt })
  }

  /** Nothing more is handed over. If the statement was committed after all, the lease will run out. */
  cancel(): void {
    for (const { endpointId } of this.#reserved.values()) this.#recipient?.release(endpointId)
    this.#reserved.clear()
  }
}
