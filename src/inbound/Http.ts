import type { IncomingMessage } from "node:http"
import { HttpApiBuilder, HttpServerResponse } from "@effect/platform"
import { NodeHttpServerRequest } from "@effect/platform-node"
import { Effect } from "effect"
import type { ServiceUnavailable, SignatureInvalid, UnsupportedMediaType } from "../errors/Errors.ts"
import { BaseApi } from "../kit/BaseApi.ts"
import { readMessage, type UnreadableRequest } from "../kit/Body.ts"
import { headerOf } from "../kit/ClientAddress.ts"
import { type entryPaths, InboundApi } from "./Api.ts"
import { Inbound } from "./Inbound.ts"

/** The largest notification that is read: 1 MiB. */
const maxNotificationBytes = 1024 * 1024

/** The answer to every notification that is stored. */
const received = HttpServerResponse.unsafeJson({ received: true })

/** Serves a notification. */
export type Entry = (
  message: IncomingMessage
) => Effect.Effect<
  HttpServerResponse.HttpServerResponse,
  UnreadableRequest | UnsupportedMediaType | SignatureInvalid | ServiceUnavailable
>

/** Serves an entry with the exact bytes that arrive; they are not read if the header shows that they aren't signed. */
const serving =
  (examine: Inbound["Type"]["examine"], receive: Inbound["Type"]["receive"]): Entry =>
  (message) => {
    // Node joins what a request repeats of this header
    const signatureHeader = headerOf(message, "stripe-signature")
    return Effect.zipRight(
      examine(signatureHeader),
      Effect.matchEffect(readMessage(message, maxNotificationBytes), {
        // A sender that went away is nobody's defect: the edge ends the request
        onFailure: (error) => (error._tag === "BodyLost" ? Effect.die(error) : Effect.fail(error)),
        onSuccess: (body) => Effect.as(receive(body, signatureHeader), received)
      })
    )
  }

/** The entries, both for POST. */
export const inboundEntries = Effect.map(
  Inbound,
  ({ examine, receive, receiveThin }): Readonly<Record<keyof typeof entryPaths, Entry>> => ({
    receive: serving(examine, receive),
    receiveThin: serving(examine, receiveThin)
  })
)

/** Serves `InboundApi` where the server does not serve it directly: for paths that are spelled differently. */
export const inboundHttp = HttpApiBuilder.group(BaseApi.add(InboundApi), "inbound", (handlers) =>
  Effect.map(inboundEntries, ({ receive, receiveThin }) =>
    handlers
      .handleRaw("receive", ({ request }) => receive(NodeHttpServerRequest.toIncomingMessage(request)))
      .handleRaw("receiveThin", ({ request }) => receiveThin(NodeHttpServerRequest.toIncomingMessage(request)))
  )
)
