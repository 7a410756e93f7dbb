import { Data } from "effect"
import type { EventType } from "../events/Catalog.ts"
import type { Environment } from "../platform/kit/Environment.ts"
import type { OrganizationId } from "../platform/kit/Ids.ts"

/** The records of the provider's notifications, for operators. */

/**
 * The possible outcomes of a verified notification:
 *
 * - `delivered`: it led to deliveries
 * - `no_subscriber`: it became events, but none matched an active endpoint
 * - `ignored`: nothing in it for integrators: a type outside the catalog, or an account whose status did not change
 * - `unlinked`: its account is not linked to any organization, or was disconnected
 * - `wrong_mode`: it belongs to the provider's other mode than its entry's environment
 * - `malformed`: its object lacks what its type promises; `reason` says which fields
 *
 * Copies of a known notification are counted in its receipt's `duplicates`.
 */
export const receiptOutcomes = ["delivered", "no_subscriber", "ignored", "unlinked", "wrong_mode", "malformed"] as const

export type ReceiptOutcome = (typeof receiptOutcomes)[number]

/** The malformed part of a signed notification; perhaps the provider's next API version has moved it. */
export interface MalformedPart {
  /**
   * - `event`: the notification itself; it is refused, and the provider sends it again
   * - `object`: its object, or the account that it is about: it led to nothing
   * - `account`: the account as returned by the provider: no change of its status was reported
   * - `filters`: fields that some endpoint filters by; endpoints without such filters got their deliveries
   */
  readonly part: "event" | "object" | "account" | "filters"
  readonly reason: string
}

export interface Receipt {
  readonly environment: Environment
  readonly providerEventId: string
  /** Null if the account was not linked to any organization. */
  readonly organizationId: OrganizationId | null
  readonly accountId: string | null
  readonly type: string
  readonly livemode: boolean
  readonly outcome: ReceiptOutcome
  /**
   * The malformed fields, as paths, never their values; null if there are none. With an outcome
   * other than `malformed`, some endpoints filter by them: those got nothing, the others did.
   */
  readonly reason: string | null
  /** How many further copies arrived. */
  readonly duplicates: number
  /** Whether it was stored from the provider's list of events, since no notification had come. */
  readonly reconciled: boolean
  readonly providerCreatedAt: Date
  readonly receivedAt: Date
}

/** An event that a notification became, with the state of its deliveries. */
export interface ReceiptEvent {
  readonly id: string
  readonly type: EventType
  readonly deliveries: { readonly queued: number; readonly delivered: number; readonly failed: number }
  /** Number of endpoints that matched but were paused when it arrived. */
  readonly skipped: number
}

export interface ReceiptDetail extends Receipt {
  readonly events: ReadonlyArray<ReceiptEvent>
}

export interface ListReceipts {
  readonly environment: Environment
  readonly organizationId?: OrganizationId
  readonly outcome?: ReceiptOutcome
  /** The provider's own event type, e.g. `payment_intent.succeeded`. */
  readonly type?: string
  readonly since?: Date
  /** Page size: 1 to 100, default 10. */
  readonly limit?: number
  /** `next` of the previous page, a provider event id. */
  readonly before?: string
}

export interface ReceiptPage {
  readonly data: ReadonlyArray<Receipt>
  /** Whether there may be more; if filtered by type or a common outcome, even after a page that is not full. */
  readonly has_more: boolean
  /** Cursor for `before` of the next page; null on the last. */
  readonly next: string | null
}

export interface ReceiptKey {
  readonly environment: Environment
  readonly providerEventId: string
}

export interface Replay {
  /** Whether anything was stored: deliveries, events, or a new outcome. */
  readonly changed: boolean
  readonly outcome: ReceiptOutcome
  /** How many deliveries were missing and are queued now. */
  readonly deliveriesMade: number
  /** The notification's events, including those without missing deliveries. */
  readonly events: ReadonlyArray<{ readonly id: string; readonly type: EventType; readonly deliveriesMade: number }>
}

export interface FindMissing {
  readonly environment: Environment
  /** If absent: the accounts of all organizations. */
  readonly organizationId?: OrganizationId
  /** Created at the provider at this time or later: at most 30 days ago. */
  readonly since: Date
  /** Created at the provider before this time. */
  readonly until?: Date
}

/** An event at the provider that left no receipt, of a type that can concern integrators. */
export interface MissingEvent {
  readonly organizationId: OrganizationId
  readonly providerEventId: string
  readonly type: string
  readonly providerCreatedAt: Date
}

export interface AccountNotAsked {
  readonly organizationId: OrganizationId
  /** `not_connected`: our access ended in the queried period or before the call, or there never was an account. */
  readonly reason: "not_connected" | "failed"
  readonly message: string
}

export interface FoundMissing {
  readonly events: ReadonlyArray<MissingEvent>
  readonly notAsked: ReadonlyArray<AccountNotAsked>
}

export class ReceiptNotFound extends Data.TaggedError("ReceiptNotFound")<
  ReceiptKey & {
    readonly message: string
  }
> {}

export class ReplayRefused extends Data.TaggedError("ReplayRefused")<{
  /**
   * `wrong_mode`: the event belongs to the provider's other mode. `account_not_linked`: its account is not linked and
   * connected. `another_organization`: its account now belongs to another organization, or its receipt to another one
   * than was named. `event_expired`: the provider no longer has the event, which it keeps for 30 days.
   * `deliveries_expired`: it was delivered, and its deliveries are no longer kept. `malformed`: this version can't read
   * it either; the message says which fields.
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
