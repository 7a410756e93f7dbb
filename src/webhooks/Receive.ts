import type { WebhookEvent } from "./Events.ts"
import { refusedHeader, writeRefusal } from "./Refusals.ts"
import { secretsOf, verifyWebhook, type WebhookExpectations, WebhookVerificationError } from "./Verify.ts"

/** What to answer to a delivery, whatever the framework (contract 9.2): the adapters stand on this. */

/** The most bytes of a body that the adapters read unless told otherwise: 256 KiB. Events are far smaller. */
export const defaultMaxBodyBytes = 256 * 1024

/**
 * Thrown by `onEvent` to have the event sent again, e.g. since the order that it belongs to is not there yet: answered
 * 503, and not reported to `onError`. The service makes six attempts over about 16 hours.
 */
export class RetryWebhook extends Error {
  override readonly name = "RetryWebhook"
  /** How long to wait at least, in whole seconds; sent as `Retry-After`. */
  readonly afterSeconds: number | undefined

  constructor(message?: string, options: ErrorOptions & { readonly afterSeconds?: number } = {}) {
    super(message, options)
    this.afterSeconds = options.afterSeconds
  }
}

/** What is known of a delivery beside its event. */
export interface WebhookDelivery {
  /** `Service-Delivery-ID`, the same in each attempt. It is not signed: for your logs alone, never for deduplication. */
  readonly id: string | null
}

/** How a receiving endpoint works. */
export interface WebhookHandlerOptions extends WebhookExpectations {
  /**
   * Stores the receipt and the effect of a verified event. Its success is answered 204; any failure is answered 503, so
   * that the event comes again. Events come at least once and in any order: recognize `test`, deduplicate by `id` in the
   * transaction of the effect, and guard the effect by `payment_id`. Answer within 10 seconds, or the attempt is given up.
   */
  readonly onEvent: (event: WebhookEvent, delivery: WebhookDelivery) => unknown
  /**
   * Called for each delivery that is refused with a 4xx, and so not sent again by itself. Unless given, the reason is
   * written with `console.error`, each reason once a minute at most; `false` turns that off. Anybody can send a bad
   * signature: a function given here is called as often as they do.
   */
  readonly onRefused?: ((error: WebhookVerificationError, delivery: WebhookDelivery) => void) | false
  /** Told why a delivery was answered 500 or 503. Unless given, it is written with `console.error`. */
  readonly onError?: (error: unknown, delivery: WebhookDelivery) => void
  /** The most bytes of a body that are read; `defaultMaxBodyBytes` unless given. */
  readonly maxBodyBytes?: number
}

/** A response in plain parts. */
export interface WebhookAnswer {
  /**
   * 204 the effect is stored; 400 not a genuine delivery, or not for this consumer; 405 not a POST; 413 too large;
   * 500 this endpoint is set up wrongly; 503 send it again. The service repeats after a 5xx, and never after a 4xx of these.
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

/** Send it again, after these seconds at least. */
export const answerRetry = (afterSeconds?: number): WebhookAnswer =>
  answer(
    503,
    "retry",
    afterSeconds === undefined ? {} : { "retry-after": String(Math.max(0, Math.ceil(afterSeconds))) }
  )

/**
 * Refused for good, with the reason. The header `Service-Refused` has it in the delivery's history as well. What was not
 * read of too large a body must not be taken for another request.
 */
export const answerRefused = ({ reason }: WebhookVerificationError): WebhookAnswer =>
  reason === "body_too_large"
    ? answer(413, reason, { connection: "close" })
    : answer(400, reason, refusedHeader(reason))

const answerMethod: WebhookAnswer = answer(405, "method_not_allowed", { allow: "POST" })

/** A request of any framework: its method, its headers as they arrived, and how its bytes are read. */
export interface WebhookRequest {
  readonly method: string | undefined
  readonly header: (name: "service-signature" | "service-delivery-id") => string | null | undefined
  readonly body: (maxBytes: number) => Promise<string | Uint8Array>
}

/** Checks once, when the handler is made, what would otherwise fail with each delivery: throws a `TypeError`. */
export const checkOptions = (options: WebhookHandlerOptions): void => {
  secretsOf(options.secret)
  if (typeof options.onEvent !== "function") throw new TypeError("A webhook handler needs `onEvent`")
  const { onRefused = false } = options
  if (onRefused !== false && typeof onRefused !== "function") {
    throw new TypeError("`onRefused` must be a function, or `false`")
  }
  const { maxBodyBytes = defaultMaxBodyBytes } = options
  if (!(maxBodyBytes > 0)) throw new TypeError("`maxBodyBytes` must be a positive number")
}

const reportRefused = (
  { onRefused }: WebhookHandlerOptions,
  error: WebhookVerificationError,
  delivery: WebhookDelivery
): void => {
  if (onRefused !== false) (onRefused ?? writeRefusal)(error, delivery)
}

const reportError = (options: WebhookHandlerOptions, error: unknown, delivery: WebhookDelivery): void =>
  options.onError === undefined ? console.error("A webhook was not processed", error) : options.onError(error, delivery)

/**
 * Verifies a request, has its event stored, and says what to answer. For frameworks without an adapter of their own:
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
 * Never rejects, but where `onRefused` or `onError` throw.
 */
export const receiveWebhook = async (
  request: WebhookRequest,
  options: WebhookHandlerOptions
): Promise<WebhookAnswer> => {
  if (request.method !== "POST") return answerMethod
  const delivery = { id: request.header("service-delivery-id") ?? null }
  let event: WebhookEvent
  try {
    const body = await request.body(options.maxBodyBytes ?? defaultMaxBodyBytes)
    event = verifyWebhook({ ...options, body, header: request.header("service-signature") })
  } catch (error) {
    if (error instanceof WebhookVerificationError) {
      reportRefused(options, error, delivery)
      return answerRefused(error)
    }
    reportError(options, error, delivery)
    return answer(500, "not_processed")
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
