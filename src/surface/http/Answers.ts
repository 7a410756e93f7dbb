import { HttpServerError, HttpServerResponse } from "@effect/platform"
import { Cause, Effect, HashSet } from "effect"
import {
  type ApiError,
  errorBody,
  InternalError,
  isApiError,
  retrySeconds,
  ServiceUnavailable
} from "../../platform/errors/Errors.ts"
import { errorAttributes } from "../../platform/errors/ProviderAnswer.ts"
import { errorLink } from "../../platform/kit/ErrorLink.ts"
import { annotateSpan } from "../../platform/telemetry/Spans.ts"
import { BodyDropped, isIncompleteBody } from "../../server/Body.ts"
import { challengeOf, isToolServer, rpcError } from "../../server/RpcError.ts"

/** The one place where a failure becomes a response (contract 12.1). */

/** The response form of errors: the tool server's protocol, or the API's form everywhere else. */
const responseTo = (url: string) => (isToolServer(url) ? rpcErrorResponse : errorResponse)

const errorResponse = (error: ApiError, requestId: string): HttpServerResponse.HttpServerResponse =>
  HttpServerResponse.unsafeJson(errorBody(error, requestId), { status: error.status, headers: headersOf(error) })

const rpcErrorResponse = (error: ApiError, requestId: string): HttpServerResponse.HttpServerResponse =>
  HttpServerResponse.unsafeJson(rpcError(error, requestId), {
    status: error.status,
    headers: { ...headersOf(error), ...challengeOf(error) }
  })

const headersOf = (error: ApiError): Record<string, string> => ({
  ...(error.retryAfter === null ? {} : { "retry-after": String(retrySeconds(error.retryAfter)) }),
  ...(error.allow.length === 0 ? {} : { allow: error.allow.join(", ") }),
  link: errorLink(error),
  // The unread rest of a body would be taken for the next request
  ...(error.status === 413 ? { connection: "close" } : {})
})

/** The end of a request whose client went away: there is nobody to answer, and the service has not failed. */
export const clientGone = Cause.interrupt(HttpServerError.clientAbortFiberId)

/** Whether a request failed because its client went away; other failures are then only consequences. */
const isGone = (cause: Cause.Cause<unknown>): boolean =>
  HashSet.has(Cause.interruptors(cause), HttpServerError.clientAbortFiberId) || isIncompleteBody(Cause.squash(cause))

const report = (error: ApiError, cause: Cause.Cause<unknown>) => {
  if (error.status < 500 || error instanceof BodyDropped) {
    return Effect.void
  }
  return error._tag === "InternalError"
    ? Effect.logError("A request failed by a defect", cause)
    : Effect.logWarning(`A request was answered ${error.code}`, error.cause)
}

/** The context in which a request is answered. */
export interface Answering {
  readonly url: string
  readonly requestId: string
  /** Adds the parts that every answer has, such as headers. */
  readonly complete: (response: HttpServerResponse.HttpServerResponse) => HttpServerResponse.HttpServerResponse
  /** The documented error for a failure or a defect. */
  readonly errorOf: (failure: unknown) => Effect.Effect<ApiError>
}

/** Returns a documented error as it is; any other failure, or a defect, becomes an `InternalError`. */
export const documented = (failure: unknown): ApiError =>
  isApiError(failure) ? failure : new InternalError({ cause: failure })

/**
 * Runs a request's handler, and answers each of its failures in the documented form. Fails only with `clientGone`, if
 * there is nobody to answer.
 */
export const answering = <E, R>(
  served: Effect.Effect<HttpServerResponse.HttpServerResponse, E, R>,
  { complete, errorOf, requestId, url }: Answering
): Effect.Effect<HttpServerResponse.HttpServerResponse, never, R> =>
  Effect.matchCauseEffect(served, {
    onFailure: (cause) =>
      isGone(cause)
        ? Effect.failCause(clientGone)
        : Effect.gen(function* () {
            const error = Cause.isInterruptedOnly(cause)
              ? new ServiceUnavailable({ cause: "The request was interrupted" })
              : yield* errorOf(Cause.squash(cause))
            yield* report(error, cause)
            yield* annotateSpan(errorAttributes(error))
            return complete(responseTo(url)(error, requestId))
          }),
    onSuccess: (response) => Effect.succeed(complete(response))
  })
