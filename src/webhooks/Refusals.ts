import type { WebhookVerificationError, WebhookVerificationReason } from "./Verify.ts"

/** How a refusal is reported: to the sender in a response header, and in the consumer's own log. */

/**
 * The header of a response that refuses a delivery. The service stores its value, one of a closed list, as the
 * attempt's error code (`consumer_refused_environment`), so that a delivery's history shows what is wrong at the
 * consumer.
 */
export const refusedHeaderName = "service-refused"

/** The header's value for each reason; null if the status alone is enough. */
const codes: { readonly [Reason in WebhookVerificationReason]: string | null } = {
  missing_header: "signature",
  malformed_header: "signature",
  signature_mismatch: "signature",
  timestamp_out_of_tolerance: "time",
  malformed_body: null,
  unsupported_version: "version",
  wrong_organization: "organization",
  wrong_environment: "environment",
  body_too_large: null
}

/** The header for a refusal; empty if its reason has no code. */
export const refusedHeader = (reason: WebhookVerificationReason): Readonly<Record<string, string>> => {
  const code = codes[reason]
  return code === null ? {} : { [refusedHeaderName]: code }
}

const advice: { readonly [Reason in WebhookVerificationReason]: string } = {
  missing_header: "Something other than the service called, or a proxy dropped the header.",
  malformed_header: "Something other than the service called, or a proxy changed the header.",
  signature_mismatch:
    "Check that `secret` is this endpoint's whole signing secret, and that no proxy or parser changes the body.",
  timestamp_out_of_tolerance: "Check this machine's clock.",
  malformed_body: "Update the kit if it is older than the service.",
  unsupported_version: "Update the kit: it is older than the service.",
  wrong_organization: "Check `organizationId`: the endpoint belongs to another organization.",
  wrong_environment: "Check `livemode`: true expects production, false the sandbox.",
  body_too_large: "Check `maxBodyBytes`; the service's events are far smaller than its default."
}

/** The minimum time between two log lines for the same reason. */
const quietMillis = 60_000

interface Written {
  readonly at: number
  unwritten: number
}

/** One entry per reason. Shared by the whole process, since `receiveWebhook` may get new options each time. */
const written = new Map<WebhookVerificationReason, Written>()

const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i

/**
 * Logs a refusal with `console.error`: the reason and what to check, but nothing from the request except a well-formed
 * delivery id. Anybody can send a bad signature, so each reason is logged at most once a minute; the next line gives
 * the number of refusals not logged.
 */
export const writeRefusal = (
  { message, reason }: WebhookVerificationError,
  { id }: { readonly id: string | null }
): void => {
  const now = performance.now()
  const last = written.get(reason)
  if (last !== undefined && now - last.at < quietMillis) {
    last.unwritten += 1
    return
  }
  written.set(reason, { at: now, unwritten: 0 })
  const delivery = id !== null && uuid.test(id) ? ` ${id}` : ""
  const unwritten = last === undefined || last.unwritten === 0 ? "" : ` (and ${last.unwritten} more like it before)`
  console.error(
    `Webhook delivery${delivery} refused, ${reason}${unwritten}: ${message}. ${advice[reason]} ` +
      "A refused delivery is not retried automatically: have it re-sent once this is fixed."
  )
}
