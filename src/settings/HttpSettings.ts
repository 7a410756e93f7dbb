import { Config, type Duration } from "effect"
import { durationAbove, intBetween } from "./Forms.ts"

/** What clients can make one process hold, and for how long. */
export interface HttpSettings {
  /** Open connections of clients; one address, unless a trusted proxy's, has half of them at most. */
  readonly connectionLimit: number
  /** How long a client may take to send a request. */
  readonly requestTimeout: Duration.Duration
  /** How long a client may take to read an answer. */
  readonly answerTimeout: Duration.Duration
  /** How long a connection stays open without a request. */
  readonly keepAliveTimeout: Duration.Duration
  /** How long a shutdown goes on serving, not ready any more, before it takes no more connections. */
  readonly shutdownDelay: Duration.Duration
  /** Public images on their way to clients at once; one client address has a quarter of them at most. */
  readonly imageConcurrency: number
}

/** These settings, from their variables. */
export const httpSettings: Config.Config<HttpSettings> = Config.all({
  connectionLimit: intBetween("CONNECTION_LIMIT", 16, 100_000, 2000),
  requestTimeout: durationAbove("REQUEST_TIMEOUT", "1 second", "1 minute"),
  answerTimeout: durationAbove("ANSWER_TIMEOUT", "1 second", "2 minutes"),
  keepAliveTimeout: durationAbove("KEEP_ALIVE_TIMEOUT", "1 second", "5 seconds"),
  shutdownDelay: durationAbove("SHUTDOWN_DELAY", 0, "0 millis"),
  imageConcurrency: intBetween("PUBLIC_IMAGE_CONCURRENCY", 1, 10_000, 64)
})
