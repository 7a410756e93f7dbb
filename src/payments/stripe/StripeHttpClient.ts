import { IncomingMessage } from "node:http"
import { Predicate } from "effect"
import Stripe from "stripe"
import { hasErrorCode } from "../../platform/errors/ErrorCode.ts"

type HttpClient = NonNullable<Stripe.StripeConfig["httpClient"]>
type Answer = Awaited<ReturnType<HttpClient["makeRequest"]>>

/** The maximum length of an answer, in characters; a page of a hundred objects is far below it. */
const maxAnswer = 16 * 1024 * 1024

/**
 * Stripe's HTTP client without the package's own retries, and with bounded answers.
 *
 * The package retries a call whose connection was closed, whatever its settings, and recognizes that by the error's
 * code. Only `repeated` decides about retries, so the code is hidden. The package also reads an answer for as long as
 * data arrives, even if no caller waits any more; here, the connection is closed when the call's time is over, or when
 * the answer exceeds `maxAnswer`. Finally, it treats every answer as a JSON object: it loses the status of an answer
 * that is not JSON, and `true` or a string makes it throw in a promise that nobody awaits, which ends the process.
 * Proxies and firewalls send such answers. Here, an answer that is not a JSON object is read as an empty one, so that
 * its status decides.
 */
export const stripeHttpClient = (): HttpClient => {
  const client: HttpClient = Stripe.createNodeHttpClient()
  return {
    getClientName: () => client.getClientName(),
    makeRequest: async (...request) => {
      const timeoutMillis = request[7]
      try {
        return bounded(await client.makeRequest(...request), timeoutMillis, keyOf(request))
      } catch (cause) {
        throw hasErrorCode(cause, "ECONNRESET", "EPIPE") ? new Error("The connection was closed", { cause }) : cause
      }
    }
  }
}

/**
 * The idempotency key of a request, unless the package generated it: no repeat reuses such a key. Stripe's answers echo
 * the key, except for some failures.
 */
const keyOf = ([, , , , headers]: Parameters<HttpClient["makeRequest"]>): Readonly<Record<string, string>> => {
  const key = Object.entries(headers).find(([name]) => name.toLowerCase() === "idempotency-key")?.[1]
  return typeof key === "string" && !key.startsWith("stripe-node-retry-") ? { "idempotency-key": key } : {}
}

const bounded = (answer: Answer, timeoutMillis: number, key: Readonly<Record<string, string>>): Answer => ({
  getStatusCode: () => answer.getStatusCode(),
  getHeaders: () => ({ ...answer.getHeaders(), ...key }),
  getRawResponse: () => answer.getRawResponse(),
  toStream: (onComplete) => answer.toStream(onComplete),
  toJSON: () => {
    const message = answer.getRawResponse()
    if (!(message instanceof IncomingMessage)) throw new Error("Stripe's Node client answers with Node's own messages")
    return new Promise((resolve, reject) => {
      answer.toJSON().then(
        (json) => resolve(Predicate.isRecord(json) ? json : {}),
        (error: unknown) => (error instanceof SyntaxError ? resolve({}) : reject(error))
      )
      const giveUp = (reason: string) => {
        // Reject before the closed connection is noticed, which would count as worth a retry
        reject(new Error(reason))
        message.destroy()
      }
      const timer = setTimeout(() => giveUp("The answer takes too long"), timeoutMillis)
      let length = 0
      message.on("data", (text: string) => {
        length += text.length
        if (length > maxAnswer) giveUp("The answer is too long")
      })
      message.once("close", () => clearTimeout(timer))
    })
  }
})
