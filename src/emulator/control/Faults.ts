import { Effect } from "effect"
import { errorReply, type HttpReply, type HttpRequest, jsonReply } from "../Http.ts"
import { internalError, refuse } from "../ProviderError.ts"

export const faultKinds = [
  "timeout",
  "reset",
  "drip",
  "html_502",
  "rate_limit",
  "no_error_key_404",
  "null_body",
  "lost_answer",
  "kept_500",
  "lock_timeout"
] as const

/**
 * How a call fails:
 *
 * - `timeout`: no answer ever comes; `reset`: the connection is reset; neither call has an effect
 * - `drip`: the answer comes a byte at a time and never ends; the call has no effect
 * - `html_502`: an HTML page from a proxy; `no_error_key_404`: JSON that is not one of the provider's errors;
 *   `null_body`: status 200 and `null`; none of these calls has an effect
 * - `rate_limit`, `lock_timeout`: status 429 with this code; the call has no effect
 * - `lost_answer`: the call has its effect, and the connection is reset before the answer
 * - `kept_500`: the call has its effect, and is answered 500; a repeat under its idempotency key gets that answer again
 */
export type FaultKind = (typeof faultKinds)[number]

export interface Fault {
  readonly fault: FaultKind
  /** The number of calls; default 1. The SDK's automatic retry after a reset counts as a call. */
  readonly times?: number
  /** The number of matching calls to let pass before the first failure; default 0. */
  readonly after?: number
  readonly account?: string
  readonly method?: string
  /** Only calls to this path; with a final star, to all with this prefix: `/v1/prices/*`. */
  readonly path?: string
}

export type Faults = ReturnType<typeof makeFaults>

const isPath = (pattern: string, path: string): boolean =>
  pattern.endsWith("*") ? path.startsWith(pattern.slice(0, -1)) : path === pattern

const concerns = ({ account, method, path }: Fault, request: HttpRequest): boolean =>
  (account === undefined || request.header("stripe-account") === account) &&
  (method === undefined || request.method === method.toUpperCase()) &&
  (path === undefined || isPath(path, request.path))

/** If several match a call, only the one added first takes effect or counts the call. */
export const makeFaults = () => {
  const waiting: Array<Fault> = []
  return {
    add: (fault: Fault): void => {
      waiting.push(fault)
    },
    clear: (): void => {
      waiting.length = 0
    },
    pending: (): ReadonlyArray<Fault> => [...waiting],
    take: (request: HttpRequest): FaultKind | undefined => {
      const index = waiting.findIndex((fault) => concerns(fault, request))
      const fault = waiting[index]
      if (fault === undefined) return undefined
      const { after = 0 } = fault
      if (after > 0) {
        waiting[index] = { ...fault, after: after - 1 }
        return undefined
      }
      const left = (fault.times ?? 1) - 1
      if (left > 0) waiting[index] = { ...fault, times: left }
      else waiting.splice(index, 1)
      return fault.fault
    }
  }
}

const nothing: HttpReply = { status: 200, headers: {}, body: "" }

const tooMany = (code: "rate_limit" | "lock_timeout", message: string): HttpReply =>
  errorReply(refuse({ status: 429, code, message }))

/** The answers to calls that have no effect. */
const answers: { readonly [F in Exclude<FaultKind, "kept_500" | "lost_answer">]: HttpReply } = {
  timeout: { ...nothing, manner: "silent" },
  reset: { ...nothing, manner: "reset" },
  drip: { ...nothing, headers: { "content-type": "application/json" }, manner: "dripping" },
  html_502: {
    status: 502,
    headers: { "content-type": "text/html" },
    body: "<html><head><title>502 Bad Gateway</title></head><body><center><h1>502 Bad Gateway</h1></center></body></html>"
  },
  rate_limit: tooMany("rate_limit", "Request rate limit exceeded."),
  lock_timeout: tooMany(
    "lock_timeout",
    "This object cannot be accessed right now because another API request or Stripe process is currently accessing it."
  ),
  no_error_key_404: jsonReply(404, JSON.stringify({ message: "Not found" })),
  null_body: jsonReply(200, "null")
}

/** Answers a call, with a fault if there is one. The call itself runs only if the fault lets it take effect. */
export const suffer = <E>(
  fault: FaultKind | undefined,
  call: Effect.Effect<HttpReply, E>
): Effect.Effect<HttpReply, E> => {
  switch (fault) {
    case undefined:
      return call
    case "kept_500":
      return Effect.as(call, errorReply(internalError))
    case "lost_answer":
      return Effect.map(call, (reply) => ({ ...reply, manner: "reset" }))
    default:
      return Effect.succeed(answers[fault])
  }
}
