import { HttpServerRequest, HttpServerResponse } from "@effect/platform"
import { Effect, Schema, Stream } from "effect"
import { Principal } from "../../identity/Principal.ts"
import { takenBy } from "../../platform/bounds/Rules.ts"
import { ValidationFailed } from "../../platform/errors/Errors.ts"
import { serving } from "../../platform/kit/Handlers.ts"
import { Stopping } from "../../platform/kit/Request.ts"
import { EventStreamApi, eventStreamType, StreamCursor } from "./Api.ts"
import { EventStreams } from "./EventStreams.ts"

const isPlace = Schema.is(StreamCursor)

/** The place to resume at. A browser that reconnects sends the header with an unchanged URL. */
const placeOf = (after: string | undefined) =>
  Effect.flatMap(HttpServerRequest.HttpServerRequest, ({ headers }) => {
    const last = headers["last-event-id"]
    if (last === undefined || last === "") return Effect.succeed(after === undefined ? null : Number(after))
    return isPlace(last)
      ? Effect.succeed(Number(last))
      : new ValidationFailed({
          message: `last-event-id in the headers ${takenBy(StreamCursor.ast).words}.`,
          fields: ["last-event-id"]
        })
  })

export const eventStreamHttp = serving(EventStreamApi, Effect.all([EventStreams, Stopping]), ([streams, stopping]) => ({
  open: ({ urlParams: { after, follow = true, types } }) =>
    Effect.gen(function* () {
      const stream = yield* streams.open(yield* Principal, {
        types: types?.split(",") ?? [],
        after: yield* placeOf(after),
        follow,
        isStopping: () => stopping.begun
      })
      return HttpServerResponse.stream(Stream.encodeText(stream), {
        contentType: `${eventStreamType}; charset=utf-8`,
        // Proxies must neither store nor buffer it
        headers: { "cache-control": "no-store", "x-accel-buffering": "no" }
      })
    })
}))
