import { documented } from "./DocumentedError.ts"

export class ServiceUnavailable extends documented("ServiceUnavailable", "open", {
  status: 503,
  message: "The service cannot process requests at the moment; try again shortly.",
  retryAfter: "2 seconds",
  why: "The service cannot reach its database, a search took too long, too many images, searches or bytes of request bodies are in progress at once, or the service is shutting down.",
  remedy: "Repeat after `Retry-After`, with the same `Idempotency-Key` if the request had one."
}) {}

export class InternalError extends documented("InternalError", "open", {
  status: 500,
  message: "Something went wrong inside the service; quote the request id when you report it.",
  why: "A bug in the service, logged with its cause under the request id.",
  remedy: "Quote `requestId` when you report it. Repeat with the same `Idempotency-Key`."
}) {}
