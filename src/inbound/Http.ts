import type { IncomingMessage } from "node:http"
import { HttpApiBuilder, HttpServerResponse } from "@effect/platform"
import { NodeHttpServerRequest } from "@effect/platform-node"
import { Effect } from "effect"
import type { ServiceUnavailable, SignatureInvalid, UnsupportedMediaType } from "../platform/errors/Errors.ts"
import { BaseApi } from "../platform/kit/BaseApi.ts"
import { headerOf } from "../platform/kit/ClientAddress.ts"
import { readMessage, type UnreadableRequest } from "../server/Body.ts"
import { type entryPaths, InboundApi } from "./Api.ts"
import { Inbound } from "./Inbound.ts"

/** Maximum size of a notification: 1 MiB. */
const maxNotificationBytes = 1024 * 1024

/** The response to every notification that is stored. */
const received = HttpServerResponse.unsafeJson({ received: true })

export type Entry = (
  message: IncomingMessage
) => Effect.Effect<
  HttpServerResponse.HttpServerResponse,
  UnreadableRequest | UnsupportedMediaType | SignatureInvalid | ServiceUnavailable
>

/** Handles an entry's request with its exact bytes. The body is not read if the header shows that it is not signed. */
const serving =
  (examine: Inbound["Type"]["examine"], receive: Inbound["Type"]["receive"]): Entry =>
  (message) => {
    // Node joins repeated headers of this name
    const signatureHeader = headerOf(message, "stripe-signature")
    return Effect.zipRight(
      examine(signatureHeader),
      Effect.matchEffect(readMessage(message, maxNotificationBytes), {
        // A sender that disconnected is not a defect: the HTTP server ends the request
        onFailure: (error) => (error._tag === "BodyLost" ? Effect.die(error) : Effect.fail(error)),
        onSuccess: (body) => Effect.as(receive(body, signatureHeader), received)
      })
    )
  }

/** The handlers of both entries, for POST. */
export const inboundEntries = Effect.map(
  Inbound,
  ({ examine, receive, receiveThin }): Readonly<Record<keyof typeof entryPaths, Entry>> => ({
    receive: serving(examine, receive),
    receiveThin: serving(examine, receiveThin)
  })
)

/** Serves `InboundApi` through the API router, for paths in another spelling than those the server handles directly. */
export const inboundHttp = HttpApiBuilder.group(BaseApi.add(InboundApi), "inbound", (handlers) =>
  Effect.map(inboundEntries, ({ receive, receiveThin }) =>
    handlers
      .handleRaw("receive", ({ request }) => receive(NodeHttpServerRequest.toIncomingMessage(request)))
      .handleRaw("receiveThin", ({ request }) => receiveThin(NodeHttpServerRequest.toIncomingMessage(request)))
  )
)
