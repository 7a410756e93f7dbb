import { HttpClient, HttpClientError, type HttpClientRequest, HttpClientResponse } from "@effect/platform"
import { Clock, Duration, Effect, Either, Random } from "effect"

/** The options for repeating temporary failures. */
export interface RetryOptions {
  /** Repeats after the first try. Default 4; 0 turns them off. */
  readonly times?: number
  /** The first wait, doubled with each repeat, ±20 %. Default 250 ms. */
  readonly delay?: Duration.DurationInput
  /**
   * The longest wait. Default 20 s. If the service asks for a longer one (`Retry-After`), the caller gets its answer at
   * once.
   */
  readonly maxDelay?: Duration.DurationInput
  /** The longest time for one try, including its whole answer. Default 30 s. */
  readonly timeout?: Duration.DurationInput
}

const passing = new Set([500, 502, 503, 504])

/**
 * Whether the same request can be sent again: a read, or a mutation under an idempotency key, which is the same for all
 * of its tries (contract 3.6).
 */
const repeatable = ({ headers, method }: HttpClientRequest.HttpClientRequest): boolean =>
  method === "GET" || method === "HEAD" || headers["idempotency-key"] !== undefined

type Outcome = Either.Either<HttpClientResponse.HttpClientResponse, HttpClientError.HttpClientError>

const isWorthRepeating = (request: HttpClientRequest.HttpClientRequest, outcome: Outcome): boolean => {
  if (Either.isLeft(outcome)) {
    // An answer that was cut off is as uncertain as none
    return repeatable(request) && (outcome.left._tag === "ResponseError" || outcome.left.reason === "Transport")
  }
  const { headers, status } = outcome.right
  // 429 is answered before an operation begins; 409 with a Retry-After means that the first try is still under way
  return (
    status === 429 ||
    (repeatable(request) && (passing.has(status) || (status === 409 && headers["retry-after"] !== undefined)))
  )
}

/** `Retry-After` in milliseconds, from seconds or an HTTP date; 0 if it is missing or can't be read. */
const askedToWait = (outcome: Outcome, now: number): number => {
  const text = Either.isRight(outcome) ? (outcome.right.headers["retry-after"] ?? "") : ""
  const millis = /^\d+$/.test(text) ? Number(text) * 1000 : Date.parse(text) - now
  return Number.isFinite(millis) ? Math.max(0, millis) : 0
}

/**
 * Repeats requests if that is safe and may help: no connection, timeouts, 429, 500, 502, 503, 504, and 409 while the
 * first try is under way. Waits as long as the service asks, and at least an exponential backoff with jitter.
 */
export const withRetries = (
  client: HttpClient.HttpClient,
  { delay = "250 millis", maxDelay = "20 seconds", timeout = "30 seconds", times = 4 }: RetryOptions = {}
): HttpClient.HttpClient => {
  const first = Duration.toMillis(delay)
  const longest = Duration.toMillis(maxDelay)

  /** How long to wait before the next try; undefined if the caller gets this outcome. */
  const nextWait = Effect.fnUntraced(function* (
    request: HttpClientRequest.HttpClientRequest,
    outcome: Outcome,
    done: number
  ) {
    if (done >= times || !isWorthRepeating(request, outcome)) {
      return undefined
    }
    const jitter = yield* Random.nextRange(0.8, 1.2)
    const backoff = Math.min(longest, first * 2 ** done * jitter)
    const asked = askedToWait(outcome, yield* Clock.currentTimeMillis)
    return asked > longest ? undefined : Math.max(backoff, asked)
  })

  return HttpClient.transform(client, (attempt, request) => {
    const whole = Effect.flatMap(attempt, (response) => readWhole(request, response))
    const bounded = Effect.timeoutFail(whole, { duration: timeout, onTimeout: () => tookTooLong(request) })
    const tryAfter = (
      done: number
    ): Effect.Effect<HttpClientResponse.HttpClientResponse, HttpClientError.HttpClientError> =>
      Effect.gen(function* () {
        const outcome = yield* Effect.either(bounded)
        const wait = yield* nextWait(request, outcome, done)
        if (wait === undefined) {
          return yield* outcome
        }
        yield* Effect.sleep(wait)
        return yield* tryAfter(done + 1)
      })
    return tryAfter(0)
  })
}

/** The response with its whole body in memory: if the body is cut off, the try fails, not whoever reads it later. */
const readWhole = (
  request: HttpClientRequest.HttpClientRequest,
  { arrayBuffer, headers, status }: HttpClientResponse.HttpClientResponse
) =>
  Effect.map(arrayBuffer, (bytes) =>
    HttpClientResponse.fromWeb(request, new Response(bytes.byteLength === 0 ? null : bytes, { headers, status }))
  )

const tookTooLong = (request: HttpClientRequest.HttpClientRequest) =>
  new HttpClientError.RequestError({ request, reason: "Transport", description: "The service took too long to answer" })
