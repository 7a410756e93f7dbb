import { Effect, Schema } from "effect"
import { currentEvent } from "../Events.ts"
import { newestFirst, page, pageParams } from "../Lists.ts"
import * as Params from "../Params.ts"
import { notFound, refuse } from "../ProviderError.ts"
import type { Event } from "../Records.ts"
import { noParams, type RequestContext, type Route, route } from "../Route.ts"

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

const list = (context: RequestContext, params: typeof listParams.Type) => {
  if (params.type !== undefined && params.types !== undefined) {
    return Effect.fail(
      refuse({
        code: "parameters_exclusive",
        param: "types",
        message: "You may only specify one of these parameters: type, types."
      })
    )
  }
  const types = params.type === undefined ? params.types : [params.type]
  return page(
    {
      items: newestFirst(context.objects.all("event")).map((event) => currentEvent(context.objects, event)),
      matches: (event) =>
        Params.inRange(event.created, params.created) &&
        (types === undefined || types.some((type) => isOfType(event, type))) &&
        (params.delivery_success === undefined || (event.pending_webhooks === 0) === params.delivery_success),
      noun: "event",
      url: "/v1/events"
    },
    params
  )
}

/** `/v1/events`: retrieve and list the account's events. */
export const eventRoutes: ReadonlyArray<Route> = [
  route({ method: "GET", path: "/v1/events", answers: { listOf: "event" }, params: listParams, run: list }),
  route({
    method: "GET",
    path: "/v1/events/:id",
    answers: { object: "event" },
    params: noParams,
    run: ({ objects }, _, id) => {
      const event = objects.get("event", id)
      return event === undefined ? Effect.fail(notFound("event", id)) : Effect.succeed(currentEvent(objects, event))
    }
  })
]
