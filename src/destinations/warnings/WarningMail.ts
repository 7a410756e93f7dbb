import type { AttemptErrorCode } from "../../engine/attempts/Outcome.ts"
import type { Mail } from "../../platform/kit/Mailer.ts"
import { mostCounted } from "../../platform/kit/Request.ts"
import type { Tenant } from "../../platform/kit/Tenant.ts"

/** Why deliveries failed, and how many of them. */
export interface FailureReason {
  readonly errorCode: AttemptErrorCode | null
  readonly httpStatus: number | null
  readonly count: number
}

export interface EndpointFailures extends Tenant {
  readonly endpointId: string
  readonly name: string
  readonly url: string
  readonly active: boolean
  /** Within the last 24 hours; `mostCounted` means that or more. */
  readonly count: number
  readonly since: Date
  /** The most frequent first. */
  readonly reasons: ReadonlyArray<FailureReason>
}

const words: Record<AttemptErrorCode, string> = {
  timeout: "it did not answer in time",
  connection_refused: "it refused the connection",
  connection_reset: "it closed the connection early",
  dns_failure: "its host name could not be resolved",
  tls_failure: "its TLS certificate or handshake was not valid",
  network_error: "it could not be reached over the network",
  destination_blocked: "its address is not a public one",
  redirect_refused: "it answered with a redirect, which is not followed",
  http_error: "it answered with an error",
  response_too_large: "its answer's headers were too large",
  interrupted: "the attempt was interrupted on our side",
  endpoint_deleted: "it was deleted",
  consumer_refused_signature:
    "it found no valid signature: it has another signing secret, or something changes the body",
  consumer_refused_time: "it found the signature's time too far off: its clock may be wrong",
  consumer_refused_version: "it does not know the event's version",
  consumer_refused_organization: "it expects events of another organization",
  consumer_refused_environment: "it expects events of the other environment"
}

const reasonLine = ({ count, errorCode, httpStatus }: FailureReason): string => {
  const what = errorCode === null ? "reason unknown" : words[errorCode]
  return `- ${count} ${count === 1 ? "time" : "times"}: ${what}${httpStatus === null ? "" : ` (HTTP ${httpStatus})`}`
}

const minute = (at: Date): string => `${at.toISOString().slice(0, 16).replace("T", " ")} UTC`

/** The warning that deliveries to an endpoint fail (contract 9.7). It names only the host: the path may be secret. */
export const warningMail = (
  failures: EndpointFailures,
  options: { readonly to: string; readonly publicUrl: string }
): Mail => {
  const { count, endpointId, environment, name, organizationId, reasons, since, url } = failures
  const history = `${options.publicUrl}/v2/organizations/${organizationId}/integrations/endpoints/${endpointId}/deliveries?state=failed`
  return {
    to: options.to,
    once: true,
    subject: `Webhook endpoint failing in ${environment}: ${name}`,
    text: `Deliveries to a webhook endpoint of your organization have failed for good.

Endpoint:    ${name}
Host:        ${new URL(url).host}
Environment: ${environment}
Endpoint id: ${endpointId}
Failed:      ${count}${count < mostCounted ? "" : " or more"} deliveries since ${minute(since)}

Why:
${reasons.map(reasonLine).join("\n")}

What to do:
1. Check that the endpoint is up, and that it answers with HTTP 2xx in time.
2. Look at the failed deliveries and their attempts:
   ${history}
3. Then re-send them, one by one or all since a time with "recover". That is possible within 72 hours of a delivery's creation.

The endpoint is ${failures.active ? "not paused: new events are still sent to it" : "paused: no new events are sent to it"}. This warning is sent at most once a day for each endpoint.
`
  }
}
