import type { IncomingMessage, ServerResponse } from "node:http"
import { Context, type Runtime } from "effect"

/** Serves a request from Node's message to Node's response. Must not throw. */
export type DirectListener = (
  runtime: Runtime.Runtime<never>,
  request: IncomingMessage,
  response: ServerResponse
) => void

/**
 * Listeners for requests that skip the platform's handler: POST requests whose target is exactly a key of this map.
 * Filled by the layers that serve them, before the server begins to serve.
 */
export class DirectListeners extends Context.Tag("connected-payments/server/DirectListeners")<
  DirectListeners,
  Map<string, DirectListener>
>() {}
