import type { AnswerOf } from "../../api/Types.ts"

/** The meaning of each attempt error code, and what to do about it. Pure. */

export type AttemptErrorCode = NonNullable<AnswerOf<"deliveries", "get">["lastErrorCode"]>

interface ErrorMeaning {
  readonly label: string
  readonly meaning: string
  readonly remedy: string
}

const meanings: Readonly<Record<AttemptErrorCode, ErrorMeaning>> = {
  timeout: {
    label: "No answer in time",
    meaning: "There was no complete answer within the attempt's timeout of 10 seconds.",
    remedy: "Store the event, answer, and do slow work afterwards."
  },
  connection_refused: {
    label: "Connection refused",
    meaning: "Nothing listens at the destination's address.",
    remedy: "Start the receiver."
  },
  connection_reset: {
    label: "Connection broken off",
    meaning: "The connection was closed in the middle of the exchange.",
    remedy: "Check the receiver and the proxies in front of it."
  },
  dns_failure: {
    label: "Host name not found",
    meaning: "The host's name could not be resolved.",
    remedy: "Check its DNS records."
  },
  tls_failure: {
    label: "TLS failed",
    meaning: "The certificate or the handshake was not valid.",
    remedy: "Check the certificate's chain, its names and its dates."
  },
  destination_blocked: {
    label: "Address not public",
    meaning: "The host's name resolves to an address that is not public. Nothing was sent.",
    remedy: "Give it a public address, or create a destination with another URL."
  },
  redirect_refused: {
    label: "Redirect",
    meaning: "The answer was a redirect, which is never followed.",
    remedy: "Create a destination with the URL that it redirects to."
  },
  http_error: {
    label: "HTTP error",
    meaning: "The answer was an HTTP status outside 2xx.",
    remedy: "Look up the delivery's id in the receiver's log."
  },
  response_too_large: {
    label: "Answer too large",
    meaning: "The answer's headers were larger than 64 KiB.",
    remedy: "Answer with a status and as little else as possible."
  },
  network_error: {
    label: "Network error",
    meaning: "Something failed on the way, or the answer was not HTTP.",
    remedy: "Check which program listens at the address."
  },
  interrupted: {
    label: "Interrupted",
    meaning: "A process of the service ended during the attempt; the event may have arrived.",
    remedy: "Nothing: the event is sent again automatically."
  },
  endpoint_deleted: {
    label: "Destination deleted",
    meaning: "The destination was deleted while the delivery waited.",
    remedy: "Read the event below and process it yourself."
  },
  consumer_refused_signature: {
    label: "Signature refused",
    meaning: "The receiver found no valid signature.",
    remedy: "Give it this destination's whole signing secret, and the body as it arrived. Then re-send."
  },
  consumer_refused_time: {
    label: "Time refused",
    meaning: "The receiver found the signature's time more than five minutes off.",
    remedy: "Set the receiver's clock. Then re-send."
  },
  consumer_refused_version: {
    label: "Version refused",
    meaning: "The receiver does not know the event's version.",
    remedy: "Update the receiver's kit. Then re-send."
  },
  consumer_refused_organization: {
    label: "Organization refused",
    meaning: "The receiver expects events of another organization.",
    remedy: "Correct its organization id. Then re-send."
  },
  consumer_refused_environment: {
    label: "Environment refused",
    meaning: "The receiver expects events of the other environment.",
    remedy: "Correct its livemode: false for the sandbox, true for production. Then re-send."
  }
}

const statuses: Readonly<Record<number, Omit<ErrorMeaning, "label">>> = {
  400: {
    meaning: "The receiver refused the request as wrong, which is final.",
    remedy:
      "Look up the delivery's id in the receiver's log: often it is the signature, or a body parsed before it was verified."
  },
  401: {
    meaning: "The receiver asked for credentials, which deliveries don't carry.",
    remedy: "Open the path to the service: the signature proves who sent the event."
  },
  403: {
    meaning: "The receiver, or a firewall in front of it, refused the request.",
    remedy: "Open the path to the service: the signature proves who sent the event."
  },
  404: {
    meaning: "The receiver has nothing at this path.",
    remedy: "Check the path in the destination's URL. It can't be changed: create another destination if it is wrong."
  },
  405: {
    meaning: "The receiver does not take POST at this path.",
    remedy: "Let it take POST, or create a destination with the right path."
  },
  408: {
    meaning: "The receiver gave up waiting for the request.",
    remedy: "Nothing, unless it keeps happening: the event is sent again automatically."
  },
  410: {
    meaning: "The receiver says that the path is gone for good.",
    remedy: "Delete this destination, or bring the path back."
  },
  413: { meaning: "The receiver takes only smaller bodies.", remedy: "Let it take bodies of up to 256 KiB." },
  429: {
    meaning: "The receiver asked for fewer requests.",
    remedy:
      "Nothing, unless it keeps happening: the event is sent again automatically, after the Retry-After of the answer."
  },
  503: {
    meaning: "The receiver asked to be sent the event again later.",
    remedy: "If it keeps happening, look up the delivery's id in the receiver's log."
  }
}

const isKnown = (code: string): code is AttemptErrorCode => Object.hasOwn(meanings, code)

export const meaningOf = (code: string, httpStatus: number | null): ErrorMeaning => {
  // A newer service may have a code that these pages do not know
  const meaning: ErrorMeaning = isKnown(code)
    ? meanings[code]
    : { label: code, meaning: "The attempt failed.", remedy: "Look up the code in the guide to errors." }
  if (code !== "http_error" || httpStatus === null) return meaning
  const status = `HTTP ${httpStatus}`
  const exact = statuses[httpStatus]
  if (exact !== undefined) return { label: status, ...exact }
  return httpStatus >= 500
    ? {
        label: status,
        meaning: "The receiver failed while it handled the event.",
        remedy: "Look up the delivery's id in the receiver's log."
      }
    : { ...meaning, label: status, meaning: `The receiver answered ${httpStatus}, which is final.` }
}

/** A result in a few words: "HTTP 204", "HTTP 500", "No answer in time"; null before the first attempt. */
export const resultText = (errorCode: string | null, httpStatus: number | null): string | null => {
  if (errorCode !== null) return meaningOf(errorCode, httpStatus).label
  return httpStatus === null ? null : `HTTP ${httpStatus}`
}
