import type { IncomingMessage, ServerResponse } from "node:http"
import { HttpApiBuilder, HttpServerResponse } from "@effect/platform"
import { Context, Effect, FiberRef, FiberRefs, HashMap, Layer, Option, Runtime, Struct } from "effect"
import { entryPaths, InboundApi } from "../../inbound/Api.ts"
import { Inbound } from "../../inbound/Inbound.ts"
import type { ServiceUnavailable, SignatureInvalid, UnsupportedMediaType } from "../../platform/errors/Errors.ts"
import { BaseApi } from "../../platform/kit/BaseApi.ts"
import { newRequestId, RequestId } from "../../platform/kit/Request.ts"
import { RequestFacts } from "../../platform/telemetry/Spans.ts"
import { messageOf, readMessage, type UnreadableRequest } from "../../server/Body.ts"
import { headerOf } from "../../server/Connections.ts"
import { type DirectListener, DirectListeners } from "../../server/DirectListeners.ts"
import { answering, clientGone, documented, type ObservingOptions, observing, type RequestHead } from "./Answers.ts"

const maxNotificationBytes = 1024 * 1024

const received = HttpServerResponse.unsafeJson({ received: true })

type Entry = (
  message: IncomingMessage
) => Effect.Effect<
  HttpServerResponse.HttpServerResponse,
  UnreadableRequest | UnsupportedMediaType | SignatureInvalid | ServiceUnavailable
>

/** Handles an entry's request with its exact bytes. The body is not read if the header shows that it is not signed. */
const serving =
  ({ examine, signatureHeader: name }: Inbound["Type"], receive: Inbound["Type"]["receive"]): Entry =>
  (message) => {
    // Node joins repeated headers of this name
    const signatureHeader = headerOf(message, name)
    return Effect.zipRight(
      examine(signatureHeader),
      Effect.matchEffect(readMessage(message, maxNotificationBytes), {
        // A sender that disconnected is not a defect: the HTTP server ends the request
        onFailure: (error) => (error._tag === "BodyLost" ? Effect.die(error) : Effect.fail(error)),
        onSuccess: (body) => Effect.as(receive(body, signatureHeader), received)
      })
    )
  }

const inboundEntries = Effect.map(
  Inbound,
  (inbound): Readonly<Record<keyof typeof entryPaths, Entry>> => ({
    receive: serving(inbound, inbound.receive),
    receiveThin: serving(inbound, inbound.receiveThin)
  })
)

/** Serves `InboundApi` through the API router, for paths in another spelling than those the server handles directly. */
export const inboundHttp = HttpApiBuilder.group(BaseApi.add(InboundApi), "inbound", (handlers) =>
  Effect.map(inboundEntries, ({ receive, receiveThin }) =>
    handlers
      .handleRaw("receive", ({ request }) => receive(messageOf(request)))
      .handleRaw("receiveThin", ({ request }) => receiveThin(messageOf(request)))
  )
)

/**
 * Serves the provider's entries directly, with the same telemetry and the same answers as everything else. The provider
 * sends more than all integrators together, and the platform and the router cost as much per request as accepting a
 * notification. If the sender disconnects before the answer, its notification is still stored. On a server other than
 * ours, the router serves the entries.
 */
export const entriesLayer = (options: ObservingOptions) =>
  Layer.effectDiscard(
    Effect.gen(function* () {
      const listeners = Option.getOrNull(yield* Effect.serviceOption(DirectListeners))
      if (listeners === null) return
      const observed = yield* observing(options)
      const entries = yield* inboundEntries
      for (const name of Struct.keys(entryPaths)) listeners.set(entryPaths[name], listenerOf(entries[name], observed))
    })
  )

const listenerOf =
  (entry: Entry, observed: Effect.Effect.Success<ReturnType<typeof observing>>): DirectListener =>
  (runtime, message, response) => {
    const requestId = newRequestId()
    const facts: RequestFacts["Type"] = { span: null, attributes: {} }
    const request = headOf(message)
    const answered = answering(entry(message), {
      url: request.url,
      requestId,
      complete: (answer) => answer,
      errorOf: (failure) => Effect.succeed(documented(failure))
    })
    const served = observed(
      { request, requestId, facts, routeOf: () => request.url },
      // Inside `observed`, so that the log line says 499 if the sender has left
      Effect.flatMap(answered, (answer) => (response.closed ? Effect.failCause(clientGone) : Effect.succeed(answer)))
    )
    Runtime.runFork(
      runtimeOf(runtime, requestId, facts),
      Effect.matchCause(served, {
        onFailure: () => {},
        onSuccess: (answer) => write(response, requestId, answer)
      }),
      {
        updateRefs: (refs, fiberId) =>
          FiberRefs.updateAs(refs, {
            fiberId,
            fiberRef: FiberRef.currentLogAnnotations,
            value: HashMap.make(["requestId", requestId])
          })
      }
    )
  }

const headOf = ({ headers, socket, url = "" }: IncomingMessage): RequestHead => ({
  method: "POST",
  url,
  headers,
  remoteAddress: Option.fromNullable(socket.remoteAddress)
})

const runtimeOf = (
  { context, fiberRefs, runtimeFlags }: Runtime.Runtime<never>,
  requestId: string,
  facts: RequestFacts["Type"]
): Runtime.Runtime<never> =>
  Runtime.make({
    context: Context.unsafeMake(
      new Map<string, unknown>(context.unsafeMap).set(RequestId.key, requestId).set(RequestFacts.key, facts)
    ),
    fiberRefs,
    runtimeFlags
  })

const utf8 = new TextDecoder()

const write = (
  response: ServerResponse,
  requestId: string,
  { body, headers, status }: HttpServerResponse.HttpServerResponse
): void => {
  // A refusal may have ended it already
  if (response.writableEnded) return
  response.writeHead(status, { ...headers, "request-id": requestId })
  // As text, which Node writes in one piece with the head
  response.end(body._tag === "Uint8Array" ? utf8.decode(body.body) : undefined)
}
