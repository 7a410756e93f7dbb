import { newId } from "./Ids.ts"
import { present, unexpanded } from "./Presentation.ts"
import type { Event, EventRequest } from "./Records.ts"
import type { Shape } from "./Shapes.ts"
import type { Scoped } from "./Store.ts"

/** The API version that the emulator speaks: that of the installed `stripe` package. */
export const apiVersion = "2026-10-28.endive"

/** What has happened, to be told as an event. */
export interface Happening {
  readonly type: Event["type"]
  readonly shape: Shape
  /** The object as it is now. */
  readonly object: object
  /** The object as it was, for an event of type `*.updated`: the fields that differ become `previous_attributes`. */
  readonly previous?: object
}

/** Whose event it is and what caused it. */
export interface EventOrigin {
  /** The account in whose scope the object lives. */
  readonly account: string
  /** Whether that is a connected account: then its event is sent to the platform. */
  readonly connected: boolean
  /** Unix seconds. */
  readonly now: number
  readonly request: EventRequest
}

const differences = (before: Readonly<Record<string, unknown>>, after: Readonly<Record<string, unknown>>) =>
  Object.fromEntries(
    Object.entries(before).filter(([name, value]) => JSON.stringify(value) !== JSON.stringify(after[name]))
  )

/** Records an event with the snapshot of its object and, on a connected account, that its notification is to be sent. */
export const emit = (objects: Scoped, origin: EventOrigin, happening: Happening): void => {
  const object = present(objects, happening.shape, happening.object, unexpanded)
  const previous =
    happening.previous === undefined
      ? undefined
      : differences(present(objects, happening.shape, happening.previous, unexpanded), object)
  const id = newId("evt_")
  objects.put("event", id, {
    id,
    object: "event",
    ...(origin.connected ? { account: origin.account, context: origin.account } : {}),
    api_version: apiVersion,
    created: origin.now,
    data: previous === undefined ? { object } : { object, previous_attributes: previous },
    livemode: false,
    pending_webhooks: origin.connected ? 1 : 0,
    request: origin.request,
    type: happening.type
  })
  if (origin.connected) {
    objects.put("delivery", id, { event: id, state: "pending", attempts: 0, lastStatus: null, lastError: null })
  }
}

/** An event as it is shown: `pending_webhooks` counts what has not been delivered yet. */
export const currentEvent = (objects: Scoped, event: Event): Event => ({
  ...event,
  pending_webhooks: objects.get("delivery", event.id)?.state === "pending" ? 1 : 0
})
