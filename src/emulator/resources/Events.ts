import { Effect, Schema } from "effect"
import { pageParams } from "../api/Lists.ts"
import * as Params from "../api/Params.ts"
import type { RequestContext, Route } from "../api/Route.ts"
import { currentEvent } from "../events/Events.ts"
import { invalid, type ProviderError } from "../ProviderError.ts"
import type { Event } from "../Records.ts"
import { resource } from "./Resource.ts"

const listParams = Schema.Struct({
  ...pageParams,
  created: Params.optional(Params.range),
  delivery_success: Params.optional(Params.boolean),
  type: Params.optional(Params.text()),
  types: Params.optional(Params.listOf(Params.text(), 20))
})

/** Whether an event is of a type, such as `charge.succeeded`, or in a group of types, such as `charge.*`. */
const isOfType = (event: Event, type: string): boolean =>
  type.endsWith(".*") ? event.type.startsWith(type.slice(0, -1)) : event.type === type

const checkTypes = (_: RequestContext, { type, types }: typeof listParams.Type): Effect.Effect<void, ProviderError> =>
  type === undefined || types === undefined
    ? Effect.void
    : invalid("types", "You may only specify one of these parameters: type, types.", "parameters_exclusive")

const isListed = (event: Event, { delivery_success, type, types }: typeof listParams.Type): boolean =>
  (types ?? [type ?? event.type]).some((asked) => isOfType(event, asked)) &&
  (delivery_success === undefined || (event.pending_webhooks === 0) === delivery_success)

const events = resource("/v1/events", "event", ({ objects }, event) => currentEvent(objects, event))

export const eventRoutes: ReadonlyArray<Route> = [
  events.list(listParams, { check: checkTypes, fields: ["created"], matches: isListed }),
  events.get
]
