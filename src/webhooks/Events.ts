/**
 * The events that a consumer receives, as plain types (contract 6). The modules in this directory have no dependencies,
 * so that a consumer can use them on their own.
 */
import { knownTypes, type WebhookEventData } from "./EventData.ts"

export type * from "./EventData.ts"

/** An event type of the catalog. */
export type WebhookEventType = keyof WebhookEventData

/** The fields of every event (contract 6.1). */
export interface WebhookEnvelope<Type extends string, Data> {
  /** The same on every attempt: use it to deduplicate, durably. */
  readonly id: string
  readonly type: Type
  readonly version: 1
  /** ISO 8601, UTC. Deliveries can arrive in any order: compare this instead. */
  readonly created_at: string
  /** False in the sandbox. */
  readonly livemode: boolean
  readonly organization_id: string
  readonly source: {
    /** `svc_test` on synthetic events, else the provider's name, such as `stripe`. */
    readonly provider: string
    /** The provider's event id. Several events can share it, and one payment can have several. */
    readonly event_id: string
  }
  readonly data: Data
  /** Present only on synthetic events, which prove nothing: check it before any business effect. */
  readonly test?: true
}

/** An event of one type of the catalog. */
export type WebhookEventOf<Type extends WebhookEventType> = WebhookEnvelope<Type, WebhookEventData[Type]>

/** An event of any type of the catalog: `switch` on `type` to reach its `data`. */
export type KnownWebhookEvent = { readonly [Type in WebhookEventType]: WebhookEventOf<Type> }[WebhookEventType]

/**
 * The name of a type that this version of the kit does not know. At run time it is the name as sent. For the compiler
 * it is a template that no name in the catalog matches, so that comparing `type` with a known name narrows to that
 * event. To compare it with a name that the kit lacks, assign it to a `string`.
 */
export type UnknownWebhookEventType = `(unknown) ${string}`

/** An event of a type added to the catalog after this version of the kit. Acknowledge it (2xx) if you don't use it. */
export type UnknownWebhookEvent = WebhookEnvelope<UnknownWebhookEventType, { readonly [field: string]: unknown }>

/**
 * Any event that a verified delivery can contain. `Own` has the type of `data` for each of the sender's own types, such
 * as `{ "order.shipped": { order_id: string } }`; those who publish by this service have it from their catalog, as
 * `OutboundEventData<typeof catalog>`.
 */
export type WebhookEvent<Own = unknown> =
  | KnownWebhookEvent
  | { readonly [Type in keyof Own & string]: WebhookEnvelope<Type, Own[Type]> }[keyof Own & string]
  | UnknownWebhookEvent

/** Whether the event is of the catalog, as this version of the kit knows it. */
export const isKnownWebhookEvent = (event: WebhookEnvelope<string, unknown>): event is KnownWebhookEvent =>
  Object.hasOwn(knownTypes, event.type)
