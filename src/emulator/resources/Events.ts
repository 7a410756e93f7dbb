import { Effect } from "effect"
import * as Params from "../api/Params.ts"
import type { RequestContext, Route } from "../api/Route.ts"
import { currentEvent } from "../events/Events.ts"
import { type Check, invalid } from "../ProviderError.ts"
import type { Event } from "../Records.ts"
import { resource } from "./Resource.ts"

const filters = Params.optionals({
  created: Params.range,
  delivery_success: Params.boolean,
  type: Params.text(),
  types: Params.listOf(Params.text(), 20)
})

/** Whether an event is of a type, such as `charge.succeeded`, or in a group of types, such as `charge.*`. */
const isOfType = (event: Event, type: string): boolean =>
  type.endsWith(".*") ? event.type.startsWith(type.slice(0, -1)) : event.type === type

const checkTypes = (_: RequestContext, { type, types }: typeof filters.Type): Check =>
  type === undefined || types === undefined
    ? Effect.void
    : invalid("types", "You may only specify one of these parameters: type, types.", "parameters_exclusive")

const events = resource("/v1/events", "event", ({ objects }, event) => currentEvent(objects, event))

export const eventRoutes: ReadonlyArray<Route> = [
  events.list(filters, {
    check: checkTypes,
    matches: {
      delivery_success: ({ pending_webhooks }, asked) => asked === undefined || asked === (pending_webhooks === 0),
      type: (event, asked = event.type) => isOfType(event, asked),
      types: (event, asked = [event.type]) => asked.some((type) => isOfType(event, type))
    }
  }),
  events.get
]
