import { present, unexpanded } from "../api/Presentation.ts"
import type { Shape } from "../api/Shapes.ts"
import { newId } from "../Ids.ts"
import type { Delivery, Event, EventRequest, RelatedObject, ThinEvent } from "../Records.ts"
import type { Scoped } from "../store/Store.ts"
import { type ApiVersion, apiVersion } from "../Versions.ts"

export interface Happening {
  readonly type: Event["type"]
  readonly shape: Shape
  readonly object: object
  /** The previous object, for an event of type `*.updated`: the fields that differ become `previous_attributes`. */
  readonly previous?: object
}

export interface EventOrigin {
  readonly account: string
  /** Whether it is a connected account, whose events are sent to the platform. */
  readonly connected: boolean
  /** Unix seconds. */
  readonly now: number
  readonly request: EventRequest
  /** The version of the notifications; by default the target's. */
  readonly notifiedIn?: ApiVersion
  /** True to store the event without sending it, because the platform subscribes only to its thin form. */
  readonly unsent?: boolean
}

const differences = (before: Readonly<Record<string, unknown>>, after: Readonly<Record<string, unknown>>) =>
  Object.fromEntries(
    Object.entries(before).filter(([name, value]) => JSON.stringify(value) !== JSON.stringify(after[name]))
  )

const enqueue = (objects: Scoped, event: string, terms: Pick<Delivery, "entry" | "apiVersion">): void =>
  objects.put("delivery", event, {
    event,
    ...terms,
    state: "pending",
    attempts: 0,
    lastStatus: null,
    lastError: null
  })

/** Records an event with the snapshot of its object and, on a connected account, queues its notification. */
export const emit = (objects: Scoped, origin: EventOrigin, happening: Happening): Event => {
  const object = present(objects, happening.shape, happening.object, unexpanded)
  const previous =
    happening.previous === undefined
      ? undefined
      : differences(present(objects, happening.shape, happening.previous, unexpanded), object)
  const id = newId("evt_")
  const isSent = origin.connected && origin.unsent !== true
  const event: Event = {
    id,
    object: "event",
    ...(origin.connected ? { account: origin.account, context: origin.account } : {}),
    api_version: apiVersion,
    created: origin.now,
    data: previous === undefined ? { object } : { object, previous_attributes: previous },
    livemode: false,
    pending_webhooks: isSent ? 1 : 0,
    request: origin.request,
    type: happening.type
  }
  objects.put("event", id, event)
  if (isSent) {
    enqueue(objects, id, origin.notifiedIn === undefined ? {} : { apiVersion: origin.notifiedIn })
  }
  return event
}

export interface ThinHappening {
  readonly type: ThinEvent["type"]
  /** The account on which it happened; absent for the platform's own. */
  readonly context?: string
  readonly related?: RelatedObject
  /** The id of the event that reports the same with its object. */
  readonly snapshot?: string
}

export const emitThin = (
  objects: Scoped,
  now: number,
  { context, related, snapshot, type }: ThinHappening
): ThinEvent => {
  const event: ThinEvent = {
    id: newId("evt_test_"),
    object: "v2.core.event",
    type,
    created: new Date(now * 1_000).toISOString(),
    livemode: false,
    ...(context === undefined ? {} : { context }),
    ...(related === undefined ? {} : { related_object: related }),
    ...(snapshot === undefined ? {} : { snapshot_event: snapshot })
  }
  objects.put("thin_event", event.id, event)
  enqueue(objects, event.id, { entry: "thin" })
  return event
}

/** An event as the API shows it: `pending_webhooks` counts the notifications not yet delivered. */
export const currentEvent = (objects: Scoped, event: Event): Event => ({
  ...event,
  pending_webhooks: objects.get("delivery", event.id)?.state === "pending" ? 1 : 0
})
