import { IncomingMessage } from "node:http"
import { Predicate } from "effect"
import Stripe from "stripe"
import { hasErrorCode } from "../../errors/ErrorCode.ts"

type HttpClient = NonNullable<Stripe.StripeConfig["httpClient"]>
type Answer = Awaited<ReturnType<HttpClient["makeRequest"]>>

/** The most that is read of an answer, in characters. A page of a hundred objects has a small part of that. */
const maxAnswer = 16 * 1024 * 1024

/**
 * Stripe's HTTP client without the package's own repeats, and with bounds for its answers.
 *
 * The package repeats a call whose connection was closed, whatever its settings, and recognizes that by the error's code.
 * Only `repeated` decides about repeats, so the code is hidden. And it gathers an answer as long as one comes, though
 * nobody may wait for it any longer: here, the connection is closed when the call's time is over, or when the answer is
 * longer than any that makes sense. And it takes every answer for a JSON object. It forgets the status of one that is no
 * JSON, and one that is `true` or a text makes it throw in a promise that nobody awaits, which ends the process. Proxies and
 * firewalls send such answers. Here, an answer that is no JSON object is read as an empty one, so that its status decides.
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
 * The idempotency key of a request, unless it is one that the package made up: no repeat has that one. Stripe's answers
 * echo the key, but for some failures.
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
        // Rejected before the connection's end is noticed, which would be worth a repeat
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
