/** The typed client of the HTTP API. Errors and schemas: `connected-payments/api`. */
export { type Client, type ClientFailure, type ClientOptions, ConnectedPayments, makeClient } from "./Client.ts"
export type { RetryOptions } from "./Retries.ts"
