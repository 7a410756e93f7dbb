/**
 * For consumers of the service's events: verify a delivery, read its event, answer it. Depends only on Node's own `crypto`
 * and `http` types.
 *
 * - In your own server: `nodeWebhookHandler`, `expressWebhookHandler`, `fetchWebhookHandler`. They read the raw body
 *   within a bound, verify it, call `onEvent`, and answer 204, 400, 413 or 503.
 * - To answer yourself: `verifyNodeWebhook`, `verifyFetchWebhook`.
 * - With only the bytes and the header: `verifyWebhook`.
 * - For a library of Standard Webhooks instead: `standardWebhooksSecret`.
 *
 * A verified event is genuine, but still only news: recognize `test`, deduplicate by `id`, and match the
 * payment with your own order, its amount and currency before any effect.
 */
export * from "./Events.ts"
export { fetchWebhookHandler, verifyFetchWebhook } from "./Fetch.ts"
export { expressWebhookHandler, type NodeWebhookRequest, nodeWebhookHandler, verifyNodeWebhook } from "./Node.ts"
export {
  answerReceived,
  answerRefused,
  answerRetry,
  defaultMaxBodyBytes,
  RetryWebhook,
  receiveWebhook,
  type WebhookAnswer,
  type WebhookDelivery,
  type WebhookHandlerOptions,
  type WebhookRequest
} from "./Receive.ts"
export { standardWebhooksSecret } from "./StandardWebhooks.ts"
export {
  type VerifyWebhookOptions,
  verifyWebhook,
  type WebhookExpectations,
  WebhookVerificationError,
  type WebhookVerificationReason
} from "./Verify.ts"
