/**
 * For consumers of the service's events: verify a delivery, read its event, respond to it. Depends only on Node's own
 * `crypto` and `http` types.
 *
 * - In your own server: `nodeWebhookHandler`, `expressWebhookHandler`, `fastifyWebhook`, `koaWebhookHandler`,
 *   `lambdaWebhookHandler`, `fetchWebhookHandler`. They read the raw body up to a size limit, verify it, call `onEvent`,
 *   and respond with 204, 400, 413 or 503.
 * - To respond yourself: `verifyNodeWebhook`, `verifyFetchWebhook`.
 * - If you have only the bytes and the header: `verifyWebhook`.
 * - To use a Standard Webhooks library instead: `standardWebhooksSecret`.
 *
 * A verified event is genuine, but may be a test or a repeat: check `test`, deduplicate by `id`, and compare the
 * payment with your own order, its amount and currency before any effect.
 */
export * from "./Events.ts"
export { fetchWebhookHandler, verifyFetchWebhook } from "./Fetch.ts"
export {
  type FastifyScope,
  type FastifyWebhookReply,
  type FastifyWebhookRequest,
  fastifyWebhook,
  type KoaWebhookContext,
  koaWebhookHandler,
  type LambdaWebhookEvent,
  lambdaWebhookHandler
} from "./Frameworks.ts"
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
export {
  standardWebhooksSecret,
  type VerifyWebhookOptions,
  verifyWebhook,
  type WebhookExpectations,
  WebhookVerificationError,
  type WebhookVerificationReason
} from "./Verify.ts"
