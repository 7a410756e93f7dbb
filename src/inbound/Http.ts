import { HttpApiBuilder, type HttpServerRequest, HttpServerResponse } from "@effect/platform"
import { Effect } from "effect"
import { BaseApi } from "../kit/BaseApi.ts"
import { readBytes } from "../kit/Body.ts"
import { entryPaths, InboundApi } from "./Api.ts"
import { Inbound } from "./Inbound.ts"

/** The largest notification that is read: 1 MiB. */
const maxNotificationBytes = 1024 * 1024

/** The answer to every notification that is stored. */
const received = HttpServerResponse.unsafeJson({ received: true })

/** Serves an entry with the exact bytes that arrive. */
const serving = (receive: Inbound["Type"]["receive"]) => (request: HttpServerRequest.HttpServerRequest) =>
  readBytes(request, maxNotificationBytes).pipe(
    // A sender that went away is nobody's defect: the edge ends the request
    Effect.catchTag("RequestError", Effect.die),
    Effect.flatMap((body) => receive(body, request.headers["stripe-signature"])),
    Effect.as(received)
  )

/**
 * The entries by their paths, all of them for POST, as the edge serves them: the provider sends more than all
 * integrators together, and the work of the router and the platform on a request costs as much as a statement.
 */
export const inboundEntries = Effect.map(
  Inbound,
  ({ receive, receiveThin }): ReadonlyMap<string, ReturnType<typeof serving>> =>
    new Map([
      [entryPaths.receive, serving(receive)],
      [entryPaths.receiveThin, serving(receiveThin)]
    ])
)

/** Serves `InboundApi` where the edge does not: for paths that are spelled differently. */
export const inboundHttp = HttpApiBuilder.group(BaseApi.add(InboundApi), "inbound", (handlers) =>
  Effect.map(Inbound, ({ receive, receiveThin }) => {
    const [snapshots, thin] = [serving(receive), serving(receiveThin)]
    return handlers
      .handleRaw("receive", ({ request }) => snapshots(request))
      .handleRaw("receiveThin", ({ request }) => thin(request))
  })
)
