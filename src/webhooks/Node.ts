import type { IncomingMessage, ServerResponse } from "node:http"
import type { WebhookEvent } from "./Events.ts"
import {
  answerNotProcessed,
  checkOptions,
  defaultMaxBodyBytes,
  receiveWebhook,
  type WebhookAnswer,
  type WebhookHandlerOptions,
  writeReportFailure
} from "./Receive.ts"
import { verifyWebhook, type WebhookExpectations, WebhookVerificationError } from "./Verify.ts"

/** A request of Node's `http` server, or of a framework on top of it that may have read its body already. */
export type NodeWebhookRequest = IncomingMessage & {
  readonly body?: unknown
  /** The bytes as they arrived, kept by platforms and body parsers: Cloud Functions, Firebase, Nest, koa-bodyparser. */
  readonly rawBody?: unknown
}

/** The body as a parser may have left it on Node's request, or on a framework's around it. */
type ParsedBody = Pick<NodeWebhookRequest, "body" | "rawBody">

const consumed = () =>
  new TypeError(
    "The request's body was read before its signature was checked, by a parser such as express.json() or koa-body, or " +
      "by other code. Register the webhook's route before that parser, or give this route express.raw({ type: " +
      '"application/json" }): the signature is over the exact bytes. If a platform reads the body, and keeps its bytes in ' +
      "another place than request.rawBody, pass them to verifyWebhook({ body })."
  )

/** How many bytes beyond the limit are read and discarded, so that a sender that is still sending gets the response. */
const maxDiscardedBytes = 1024 * 1024

/** The raw body if it was read already: in `rawBody`, or in a `body` that a parser left as bytes or text. */
const bytesRead = ({ body, rawBody }: ParsedBody): Uint8Array | undefined => {
  const read = [rawBody, body].find((one) => typeof one === "string" || ArrayBuffer.isView(one))
  if (typeof read === "string") return new TextEncoder().encode(read)
  return read && new Uint8Array(read.buffer, read.byteOffset, read.byteLength)
}

/** Returns the raw body. Rejects if it exceeds `maxBytes`, was already consumed, or the connection is lost. */
const bytesOf = (request: IncomingMessage, parsed: ParsedBody, maxBytes: number): Promise<Uint8Array> => {
  const read = bytesRead(parsed)
  if (read !== undefined) {
    return read.byteLength > maxBytes
      ? Promise.reject(new WebhookVerificationError("body_too_large"))
      : Promise.resolve(read)
  }
  if (request.readableDidRead || request.readableEnded || request.destroyed) return Promise.reject(consumed())
  return new Promise((resolve, reject) => {
    const chunks: Array<Uint8Array> = []
    let length = 0
    const onData = (chunk: Uint8Array) => {
      length += chunk.byteLength
      if (length <= maxBytes) chunks.push(chunk)
      else if (length > maxBytes + maxDiscardedBytes) settle(tooLarge)
    }
    const tooLarge = () => reject(new WebhookVerificationError("body_too_large"))
    const onEnd = () => settle(length > maxBytes ? tooLarge : () => resolve(Buffer.concat(chunks)))
    const onLost = (cause?: Error) =>
      settle(() => reject(new Error("The request ended before its body was complete", { cause })))
    const settle = (outcome: () => void) => {
      request.off("data", onData).off("end", onEnd).off("close", onLost)
      outcome()
    }
    // The `error` listener stays: a connection that is lost later must not end the process
    request.on("data", onData).on("end", onEnd).on("close", onLost).on("error", onLost)
  })
}

const headerOf = (request: IncomingMessage, name: string): string | undefined => {
  const value = request.headers[name]
  return Array.isArray(value) ? value.join(",") : value
}

const send = (response: ServerResponse, { body, headers, status }: WebhookAnswer): void => {
  // The sender may be gone, or something else may have answered in the meantime
  if (response.headersSent || response.destroyed) return
  response.writeHead(status, headers).end(body)
}

/**
 * Verifies a request of Node's `http` server and returns its event, for handlers that write the response themselves.
 * Rejects with the errors of `verifyWebhook`, and with a `TypeError` if the body was already consumed.
 *
 * @param options.maxBodyBytes the maximum size of a body in bytes; default `defaultMaxBodyBytes`
 */
export const verifyNodeWebhook = async <Own>(
  request: NodeWebhookRequest,
  options: WebhookExpectations & { readonly maxBodyBytes?: number }
): Promise<WebhookEvent<Own>> =>
  verifyWebhook({
    ...options,
    body: await bytesOf(request, request, options.maxBodyBytes ?? defaultMaxBodyBytes),
    header: headerOf(request, "service-signature")
  })

/** Receives a delivery by Node's request. `parsed` is the request that a framework's parsers write their results to. */
export const receive = <Own>(
  request: IncomingMessage,
  parsed: ParsedBody,
  options: WebhookHandlerOptions<Own>
): Promise<WebhookAnswer> =>
  receiveWebhook(
    {
      method: request.method,
      header: (name) => headerOf(request, name),
      body: (maxBytes) => bytesOf(request, parsed, maxBytes)
    },
    options
  )

/**
 * A webhook endpoint for Node's `http` server. Responds as described in `WebhookAnswer`. Never rejects: if `onRefused`
 * or `onError` throws, the error is logged with `console.error` and the response is 500.
 *
 * ```ts
 * const receive = nodeWebhookHandler({
 *   secret: process.env.WEBHOOK_SECRET ?? "",
 *   organizationId: "0198c3a2-5c4e-7b1f-9d3a-2f6e8b7c1d40",
 *   livemode: false, // the sandbox; true in production
 *   onEvent: async (event) => {
 *     if (event.test === true) return
 *     if (event.type === "payment.succeeded") {
 *       // In one transaction: insert event.id (stop if known), check the order, amount and currency, mark it paid
 *       await orders.markPaid(event.id, event.data)
 *     }
 *   }
 * })
 * createServer((request, response) =>
 *   request.url === "/webhooks" ? receive(request, response) : response.writeHead(404).end()
 * ).listen(8080)
 * ```
 *
 * Throws a `TypeError` on creation if the options are invalid, e.g. if a secret is empty.
 */
export const nodeWebhookHandler = <Own>(
  options: WebhookHandlerOptions<Own>
): ((request: NodeWebhookRequest, response: ServerResponse) => Promise<void>) => {
  checkOptions(options)
  return async (request, response) => {
    const answer = await receive(request, request, options).catch((error: unknown) => {
      writeReportFailure(error)
      return answerNotProcessed
    })
    send(response, answer)
  }
}

/**
 * A webhook endpoint for Express (4 and 5), and for frameworks with the same handler signature. It reads the raw body
 * itself, so register it before `express.json()`; it also works after `express.raw()`, and on platforms that parse the
 * body and keep its bytes in `request.rawBody`.
 *
 * ```ts
 * app.post("/webhooks", expressWebhookHandler({ secret, organizationId, livemode: false, onEvent }))
 * app.use(express.json())
 * ```
 *
 * If a JSON parser has already read the body, the signature can't be checked: `onError` gets a `TypeError` that says
 * so, and the response is 500, so that the event is sent again and succeeds once the middleware order is fixed. Errors
 * thrown by `onRefused` or `onError` go to Express's own error handler.
 */
export const expressWebhookHandler = <Own>(
  options: WebhookHandlerOptions<Own>
): ((request: NodeWebhookRequest, response: ServerResponse, next: (error?: unknown) => void) => void) => {
  checkOptions(options)
  return (request, response, next) =>
    void receive(request, request, options)
      .then((answer) => send(response, answer))
      .catch(next)
}
