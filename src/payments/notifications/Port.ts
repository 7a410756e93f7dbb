import type { Effect } from "effect"
import type { EventReader } from "../../events/EventReader.ts"
import type { SignatureInvalid } from "../../platform/errors/Errors.ts"
import type { Environment } from "../../platform/kit/Environment.ts"
import type { ConnectedAccount, ProviderCall } from "../ProviderCall.ts"
import type { ProviderObject } from "../Schemas.ts"

/** A notification with a valid signature and time, under a secret of this environment. */
export interface VerifiedNotification {
  readonly environment: Environment
  /** In the form of `ProviderEvent`, not examined yet; undefined if the body is not JSON. */
  readonly event: unknown
}

/** The time range in which events were created, `until` excluded. */
export interface TimeOfEvents {
  readonly since: Date
  readonly until?: Date | undefined
}

/** An event as it was sent, with the fields that every event has. */
export interface ListedEvent extends ProviderObject {
  readonly id: string
  readonly type: string
  /** Unix seconds. */
  readonly created: number
}

export interface NotificationsPort {
  /** The request header with a notification's signature, in lower case. */
  readonly signatureHeader: string
  /** Translates verified notifications into events. */
  readonly reader: EventReader
  /** Refuses a header that is missing, malformed or more than 5 minutes off, so that the body need not be read. */
  readonly checkSignatureHeader: (header: string | undefined) => Effect.Effect<void, SignatureInvalid>
  /** Verifies the signature over the exact bytes, and the time: at most 5 minutes off in either direction. */
  readonly verifyNotification: (
    body: Uint8Array,
    signatureHeader: string | undefined
  ) => Effect.Effect<VerifiedNotification, SignatureInvalid>
  /** Like `verifyNotification`, for a thin notification, which names an event and carries no object. */
  readonly verifyThinNotification: (
    body: Uint8Array,
    signatureHeader: string | undefined
  ) => Effect.Effect<VerifiedNotification, SignatureInvalid>

  /** A snapshot event as it was sent; the provider keeps it for 30 days. */
  readonly retrieveEvent: (account: ConnectedAccount, id: string) => ProviderCall<ProviderObject>
  /**
   * Hands over the account's snapshot events of a time range, newest first, page by page, until `take` answers that it
   * wants no more; the provider keeps them for 30 days. Fails if there are more than 100,000.
   */
  readonly listEvents: (
    account: ConnectedAccount,
    within: TimeOfEvents,
    take: (page: ReadonlyArray<ListedEvent>) => Effect.Effect<boolean>
  ) => ProviderCall<void>
  /** All items of a subscription; the subscription in an event may list only some of them. */
  readonly listSubscriptionItems: (
    account: ConnectedAccount,
    subscriptionId: string
  ) => ProviderCall<ReadonlyArray<ProviderObject>>
  /** All lines of an invoice; the invoice in an event may list only some of them. */
  readonly listInvoiceLines: (
    account: ConnectedAccount,
    invoiceId: string
  ) => ProviderCall<ReadonlyArray<ProviderObject>>
}
