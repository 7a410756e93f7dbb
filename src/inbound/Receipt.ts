import { Data } from "effect"
import type { EventType } from "../events/Catalog.ts"
import type { Environment } from "../events/Environment.ts"
import type { OrganizationId } from "../kit/Ids.ts"

/** What is on record about the provider's notifications, as operators see it. */

/**
 * What may have become of a verified notification:
 *
 * - `delivered`: deliveries were made of it
 * - `no_subscriber`: it became events, but none matched an active endpoint
 * - `ignored`: nothing in it for integrators: a type outside the catalog, or an account whose status did not change
 * - `unlinked`: its account is not linked to any organization, or was disconnected
 * - `wrong_mode`: it belongs to the provider's other mode, not to that of its entry's environment
 * - `malformed`: its object lacks what its type promises; `reason` says which fields
 *
 * Copies of a known notification are counted in its receipt's `duplicates`.
 */
export const receiptOutcomes = ["delivered", "no_subscriber", "ignored", "unlinked", "wrong_mode", "malformed"] as const

export type ReceiptOutcome = (typeof receiptOutcomes)[number]

/** The record of one verified notification (contract 11.3). */
export interface Receipt {
  readonly environment: Environment
  readonly providerEventId: string
  /** Null if the account was not linked to any organization. */
  readonly organizationId: OrganizationId | null
  readonly accountId: string | null
  /** The provider's own event type. */
  readonly type: string
  readonly livemode: boolean
  readonly outcome: ReceiptOutcome
  /**
   * What could not be read, as paths of fields, never their values; null if everything could. With an outcome other
   * than `malformed`, it is what some endpoints filter by: they got nothing, and others did.
   */
  readonly reason: string | null
  /** How many further copies arrived. */
  readonly duplicates: number
  readonly providerCreatedAt: Date
  readonly receivedAt: Date
}

/** An event that a notification became, with the state of its deliveries. */
export interface ReceiptEvent {
  readonly id: string
  readonly type: EventType
  readonly deliveries: { readonly queued: number; readonly delivered: number; readonly failed: number }
  /** Endpoints that were paused when it came. */
  readonly skipped: number
}

export interface ReceiptDetail extends Receipt {
  readonly events: ReadonlyArray<ReceiptEvent>
}

/** Which receipts to list; what is absent excludes nothing. */
export interface ListReceipts {
  readonly environment: Environment
  readonly organizationId?: OrganizationId
  readonly outcome?: ReceiptOutcome
  /** The provider's own event type, e.g. `payment_intent.succeeded`. */
  readonly type?: string
  /** Received at this time or later. */
  readonly since?: Date
  /** The most to list: 1 to 100, default 10. */
  readonly limit?: number
  /** `next` of the previous page, a provider event id. */
  readonly before?: string
}

export interface ReceiptPage {
  readonly data: ReadonlyArray<Receipt>
  /** Whether there may be more: with a type, or a common outcome, even after a page that is not full. */
  readonly has_more: boolean
  /** `before` of the next page; null if there is none. */
  readonly next: string | null
}

export interface ReceiptKey {
  readonly environment: Environment
  readonly providerEventId: string
}

export interface Replay {
  /** Whether anything was stored: deliveries, events, or what the receipt says. */
  readonly changed: boolean
  /** What the receipt says now. */
  readonly outcome: ReceiptOutcome
  /** How many deliveries were missing and are queued now. */
  readonly deliveriesMade: number
  /** The notification's events, including those of which nothing was missing. */
  readonly events: ReadonlyArray<{ readonly id: string; readonly type: EventType; readonly deliveriesMade: number }>
}

/** Where to look for events without a receipt. */
export interface FindMissing {
  readonly environment: Environment
  /** Absent: the accounts of all organizations. */
  readonly organizationId?: OrganizationId
  /** Created at the provider at this time or later: at most 30 days ago. */
  readonly since: Date
  /** Created at the provider before this time. */
  readonly until?: Date
}

/** An event of the provider's that left no receipt, of a type that integrators may be told of. */
export interface MissingEvent {
  readonly organizationId: OrganizationId
  readonly providerEventId: string
  /** The provider's own event type. */
  readonly type: string
  readonly providerCreatedAt: Date
}

/** An account whose events could not be asked for. */
export interface AccountNotAsked {
  readonly organizationId: OrganizationId
  /** `not_connected`: our access ended in that time, or before it was asked for; or there never was an account. */
  readonly reason: "not_connected" | "failed"
  readonly message: string
}

/** The events without a receipt, newest first, and whose could not be asked for. */
export interface FoundMissing {
  readonly events: ReadonlyArray<MissingEvent>
  readonly notAsked: ReadonlyArray<AccountNotAsked>
}

/** No receipt under this provider event id in this environment. For operators. */
export class ReceiptNotFound extends Data.TaggedError("ReceiptNotFound")<
  ReceiptKey & {
    readonly message: string
  }
> {}

/** A receipt can't be replayed in its present state; nothing was changed. For operators. */
export class ReplayRefused extends Data.TaggedError("ReplayRefused")<{
  /**
   * `wrong_mode`: the event belongs to the provider's other mode. `account_not_linked`: its account is not linked and
   * connected. `another_organization`: its account belongs to another organization by now, or its receipt to another one
   * than was named. `event_expired`: the provider no longer has the event, 30 days after it was made.
   * `deliveries_expired`: it was delivered, and to whom is not kept any more. `malformed`: this version can't read it
   * either; the message says which fields.
   */
  readonly reason:
    | "wrong_mode"
    | "account_not_linked"
    | "another_organization"
    | "event_expired"
    | "deliveries_expired"
    | "malformed"
  readonly message: string
  readonly cause?: unknown
}> {}
