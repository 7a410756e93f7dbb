import type { WebhookEvent } from "./Events.ts"
import { refusedHeader, writeRefusal } from "./Refusals.ts"
import { bytesOf, secretsOf, verifyWebhook, type WebhookExpectations, WebhookVerificationError } from "./Verify.ts"

/** Framework-independent handling of a delivery (contract 9.2). The adapters are built on this. */

/** The adapters' default for the maximum size of a body: 256 KiB. Events are far smaller. */
export const defaultMaxBodyBytes = 256 * 1024

/**
 * Throw this in `onEvent` to have the event sent again, e.g. because its order is not stored yet. The response is 503,
 * and `onError` is not called. The service makes six attempts over about 16 hours.
 */
export class RetryWebhook extends Error {
  override readonly name = "RetryWebhook"
  /** The minimum wait in whole seconds; sent as `Retry-After`. */
  readonly afterSeconds: number | undefined

  constructor(message?: string, options: ErrorOptions & { readonly afterSeconds?: number } = {}) {
    super(message, options)
    this.afterSeconds = options.afterSeconds
  }
}

/** Information about a delivery besides its event. */
export interface WebhookDelivery {
  /**
   * `Service-Delivery-ID`, the same in each attempt. It is not signed: use it only in your logs, never to deduplicate.
   */
  readonly id: string | null
}

/** The options of a webhook endpoint; `Own` as in `WebhookEvent`. */
export interface WebhookHandlerOptions<Own = unknown> extends WebhookExpectations {
  /**
   * Stores the receipt and the effect of a verified event. The response is 204 if it succeeds, and 503 if it fails, so
   * that the event is sent again. Events arrive at least once and in any order: check `test`, deduplicate by `id` in
   * the transaction of the effect, and guard the effect by `payment_id`. The attempt times out after 10 seconds.
   */
  readonly onEvent: (event: WebhookEvent<Own>, delivery: WebhookDelivery) => unknown
  /**
   * Called for each delivery that is refused with a 400 or 413, and so is not retried automatically. By default the
   * reason is logged with `console.error`, each reason at most once a minute; `false` turns that off. Anybody can send
   * bad signatures, and a function given here is called for each of them.
   */
  readonly onRefused?: ((error: WebhookVerificationError, delivery: WebhookDelivery) => void) | false
  /**
   * Called with the error behind each 500 or 503 response, except `RetryWebhook`. Default: logs it with
   * `console.error`.
   */
  readonly onError?: (error: unknown, delivery: WebhookDelivery) => void
  /** The maximum size of a body in bytes. Default `defaultMaxBodyBytes`. */
  readonly maxBodyBytes?: number
}

/** A response, independent of the framework. */
export interface WebhookAnswer {
  /**
   * 204: the effect is stored. 400: not a genuine delivery, or not for this consumer. 405: not a POST. 413: too large.
   * 500: this endpoint is misconfigured. 503: send the event again. The service retries after a 5xx, never after one of
   * these 4xx.
   */
  readonly status: 204 | 400 | 405 | 413 | 500 | 503
  readonly headers: Readonly<Record<string, string>>
  /** JSON, or empty. */
  readonly body: string
}

const answer = (
  status: WebhookAnswer["status"],
  error: string,
  headers: Readonly<Record<string, string>> = {}
): WebhookAnswer => ({
  status,
  headers: { "content-type": "application/json", ...headers },
  body: JSON.stringify({ error })
})

/** The effect is stored: the service counts the event as delivered. */
export const answerReceived: WebhookAnswer = { status: 204, headers: {}, body: "" }

/** Asks the service to send the event again, after at least this many seconds. */
export const answerRetry = (afterSeconds?: number): WebhookAnswer =>
  answer(
    503,
    "retry",
    afterSeconds === undefined ? {} : { "retry-after": String(Math.max(0, Math.ceil(afterSeconds))) }
  )

/**
 * Refuses a delivery permanently, with the reason. The `Service-Refused` header also shows it in the delivery's
 * history. After a body that is too large the connection closes, so that the unread rest is not parsed as another
 * request.
 */
export const answerRefused = ({ reason }: WebhookVerificationError): WebhookAnswer =>
  reason === "body_too_large"
    ? answer(413, reason, { connection: "close" })
    : answer(400, reason, refusedHeader(reason))

/** This endpoint is misconfigured: the service sends the event again. */
export const answerNotProcessed: WebhookAnswer = answer(500, "not_processed")

const answerMethod: WebhookAnswer = answer(405, "method_not_allowed", { allow: "POST" })

/** A request of any framework: its method, its headers as they arrived, and a way to read its bytes. */
export interface WebhookRequest {
  readonly method: string | undefined
  readonly header: (name: "service-signature" | "service-delivery-id") => string | null | undefined
  readonly body: (maxBytes: number) => Promise<string | Uint8Array>
}

/** Validates the options once, when the handler is created, rather than on each delivery. Throws a `TypeError`. */
export const checkOptions = <Own>(options: WebhookHandlerOptions<Own>): void => {
  secretsOf(options.secret)
  if (typeof options.onEvent !== "function") throw new TypeError("A webhook handler needs `onEvent`")
  const { onRefused = false } = options
  if (onRefused !== false && typeof onRefused !== "function") {
    throw new TypeError("`onRefused` must be a function, or `false`")
  }
  const { maxBodyBytes = defaultMaxBodyBytes } = options
  if (!(maxBodyBytes > 0)) throw new TypeError("`maxBodyBytes` must be a positive number")
}

/** Logs a failure of `onRefused` or `onError`. */
export const writeReportFailure = (error: unknown): void =>
  console.error("The webhook handler's `onRefused` or `onError` failed", error)

/**
 * Does not await the result of a consumer's callback. If it is a promise that rejects, the failure is logged: an
 * unhandled rejection would end the process, and anybody can send a request that is refused.
 */
const unwaited = (returned: unknown): void => void Promise.resolve(returned).catch(writeReportFailure)

const reportRefused = (
  { onRefused }: Pick<WebhookHandlerOptions, "onRefused">,
  error: WebhookVerificationError,
  delivery: WebhookDelivery
): void => {
  if (onRefused !== false) unwaited((onRefused ?? writeRefusal)(error, delivery))
}

const reportError = (
  options: Pick<WebhookHandlerOptions, "onError">,
  error: unknown,
  delivery: WebhookDelivery
): void =>
  options.onError === undefined
    ? console.error("A webhook was not processed", error)
    : unwaited(options.onError(error, delivery))

/**
 * Verifies a request, passes its event to `onEvent`, and returns the response. For frameworks without an adapter:
 *
 * ```ts
 * const { body, headers, status } = await receiveWebhook(
 *   {
 *     method: request.method,
 *     header: (name) => request.headers[name],
 *     body: async () => request.rawBody
 *   },
 *   options
 * )
 * ```
 *
 * Rejects only if `onRefused` or `onError` throws. A promise that they return is not awaited; if it rejects, the error
 * is logged with `console.error`.
 */
export const receiveWebhook = async <Own>(
  request: WebhookRequest,
  options: WebhookHandlerOptions<Own>
): Promise<WebhookAnswer> => {
  if (request.method !== "POST") return answerMethod
  const delivery = { id: request.header("service-delivery-id") ?? null }
  let event: WebhookEvent<Own>
  try {
    const maxBodyBytes = options.maxBodyBytes ?? defaultMaxBodyBytes
    const body = bytesOf(await request.body(maxBodyBytes))
    // A framework may have read it already, with a larger limit of its own
    if (body.byteLength > maxBodyBytes) throw new WebhookVerificationError("body_too_large")
    event = verifyWebhook({ ...options, body, header: request.header("service-signature") })
  } catch (error) {
    if (error instanceof WebhookVerificationError) {
      reportRefused(options, error, delivery)
      return answerRefused(error)
    }
    reportError(options, error, delivery)
    return answerNotProcessed
  }
  try {
    await options.onEvent(event, delivery)
    return answerReceived
  } catch (error) {
    if (error instanceof RetryWebhook) return answerRetry(error.afterSeconds)
    reportError(options, error, delivery)
    return answerRetry()
  }
}
