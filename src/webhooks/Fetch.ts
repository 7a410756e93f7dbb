import type { WebhookEvent } from "./Events.ts"
import { checkOptions, defaultMaxBodyBytes, receiveWebhook, type WebhookHandlerOptions } from "./Receive.ts"
import { verifyWebhook, type WebhookExpectations, WebhookVerificationError } from "./Verify.ts"

const bytesOf = async (request: Request, maxBytes: number): Promise<Uint8Array> => {
  if (request.bodyUsed) {
    throw new TypeError(
      "The request's body was read before its signature was checked: pass the request on before request.json() or " +
        "request.text(), or give it a clone. The signature is over the exact bytes."
    )
  }
  const chunks: Array<Uint8Array> = []
  let length = 0
  const reader = request.body?.getReader()
  while (reader !== undefined) {
    const { done, value } = await reader.read()
    if (done) break
    length += value.byteLength
    if (length > maxBytes) {
      await reader.cancel()
      throw new WebhookVerificationError("body_too_large")
    }
    chunks.push(value)
  }
  const bytes = new Uint8Array(length)
  let offset = 0
  for (const chunk of chunks) {
    bytes.set(chunk, offset)
    offset += chunk.byteLength
  }
  return bytes
}

/**
 * Verifies a Fetch `Request` and returns its event, for handlers that create the response themselves. Rejects with the
 * errors of `verifyWebhook`, and with a `TypeError` if the body was already consumed.
 *
 * @param options.maxBodyBytes the maximum size of a body in bytes; default `defaultMaxBodyBytes`
 */
export const verifyFetchWebhook = async <Own>(
  request: Request,
  options: WebhookExpectations & { readonly maxBodyBytes?: number }
): Promise<WebhookEvent<Own>> =>
  verifyWebhook({
    ...options,
    body: await bytesOf(request, options.maxBodyBytes ?? defaultMaxBodyBytes),
    header: request.headers.get("service-signature")
  })

/**
 * A webhook endpoint for frameworks that turn a Fetch `Request` into a `Response`: Hono, Next.js route handlers,
 * Remix, Bun, Deno and workers with Node's `crypto`. Responds as described in `WebhookAnswer`.
 *
 * ```ts
 * export const POST = fetchWebhookHandler({
 *   secret: [process.env.WEBHOOK_SECRET ?? "", process.env.PREVIOUS_WEBHOOK_SECRET ?? ""].filter(Boolean),
 *   livemode: false,
 *   onEvent: async (event) => {
 *     if (!(await orders.known(event))) throw new RetryWebhook("The order is not stored yet", { afterSeconds: 60 })
 *     await orders.apply(event)
 *   }
 * })
 * ```
 *
 * Throws a `TypeError` on creation if the options are invalid, e.g. if a secret is empty.
 */
export const fetchWebhookHandler = <Own>(
  options: WebhookHandlerOptions<Own>
): ((request: Request) => Promise<Response>) => {
  checkOptions(options)
  return async (request) => {
    const { body, headers, status } = await receiveWebhook(
      {
        method: request.method,
        header: (name) => request.headers.get(name),
        body: (maxBytes) => bytesOf(request, maxBytes)
      },
      options
    )
    return new Response(body === "" ? null : body, { status, headers: { ...headers } })
  }
}
