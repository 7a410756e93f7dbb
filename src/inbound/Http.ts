import { HttpApiBuilder, type HttpServerRequest, HttpServerResponse } from "@effect/platform"
import { Effect } from "effect"
import { Api } from "../Api.ts"
import { readBytes } from "../kit/Body.ts"
import { Inbound } from "./Inbound.ts"

/** The largest notification that is read: 1 MiB. */
const maxNotificationBytes = 1024 * 1024

/** Serves `InboundApi` on the exact bytes that arrive. */
export const inboundHttp = HttpApiBuilder.group(Api, "inbound", (handlers) =>
  Effect.gen(function* () {
    const inbound = yield* Inbound
    const serving =
      (receive: Inbound["Type"]["receive"]) =>
      ({ request }: { readonly request: HttpServerRequest.HttpServerRequest }) =>
        readBytes(request, maxNotificationBytes).pipe(
          // A sender that went away is a defect to nobody: the edge ends the request
          Effect.catchTag("RequestError", Effect.die),
          Effect.flatMap((body) => receive(body, request.headers["stripe-signature"])),
          Effect.as(HttpServerResponse.unsafeJson({ received: true }))
        )
    return handlers
      .handleRaw("receive", serving(inbound.receive))
      .handleRaw("receiveThin", serving(inbound.receiveThin))
  })
)
