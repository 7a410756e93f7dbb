import { randomUUID } from "node:crypto"
import { Effect, type Redacted } from "effect"
import { refusedCode } from "../deliveries/Attempt.ts"
import { signatureHeaders } from "../deliveries/sending/Signature.ts"
import { hasErrorCode } from "../errors/ErrorCode.ts"
import { deliveryIdHeaderName, refusedHeaderName } from "../events/DeliveryHeaders.ts"
import { version } from "../settings/Version.ts"

/** How long the local program may take to answer: as long as an endpoint. */
const timeoutMillis = 10_000

/** The target of events on the developer's machine. */
export interface ForwardTo {
  readonly url: URL
  /** The signing secret. */
  readonly secret: Redacted.Redacted
}

/** The local program's answer. */
export interface Forwarded {
  /** Null if there was no answer. */
  readonly status: number | null
  /** In words: the status with the kit's reason for a refusal, or why there is no status. */
  readonly answer: string
  readonly millis: number
}

const reasonOf = (error: unknown): string => {
  if (error instanceof DOMException && error.name === "TimeoutError") {
    return `no answer within ${timeoutMillis / 1000} seconds`
  }
  const cause = error instanceof Error ? error.cause : undefined
  if (hasErrorCode(cause, "ECONNREFUSED")) return "nothing listens there"
  return cause instanceof Error && cause.message !== "" ? cause.message : String(error)
}

/** The status, with the error code that a delivery's history would show for the kit's refusal. */
const answerOf = ({ headers, status }: Response): string => {
  const code = status >= 400 && status < 500 ? refusedCode(headers.get(refusedHeaderName)) : undefined
  return code === undefined ? String(status) : `${status} ${code}`
}

/** Posts an event like a delivery: the same body and headers, signed with another secret. Never fails. */
export const forward = (
  { secret, url }: ForwardTo,
  event: { readonly id: string; readonly text: string }
): Effect.Effect<Forwarded> =>
  Effect.suspend(() => {
    const startedAt = performance.now()
    const headers = {
      "content-type": "application/json",
      "user-agent": `connected-payments/${version}`,
      [deliveryIdHeaderName]: randomUUID(),
      ...signatureHeaders({
        eventId: event.id,
        timestamp: Math.floor(Date.now() / 1000),
        body: event.text,
        secrets: [secret]
      })
    }
    const took = () => Math.round(performance.now() - startedAt)
    return Effect.tryPromise(async (signal) => {
      const response = await fetch(url, {
        method: "POST",
        body: event.text,
        headers,
        // Redirects are not followed, as for endpoints
        redirect: "manual",
        signal: AbortSignal.any([signal, AbortSignal.timeout(timeoutMillis)])
      })
      await response.body?.cancel()
      return { status: response.status, answer: answerOf(response) }
    }).pipe(
      Effect.map(({ answer, status }): Forwarded => ({ status, answer, millis: took() })),
      Effect.catchAll(({ error }) =>
        Effect.succeed<Forwarded>({ status: null, answer: reasonOf(error), millis: took() })
      )
    )
  })
