import { type ApiError, type ErrorBody, errorBody, ResourceNotFound, retrySeconds } from "../platform/errors/Errors.ts"
import { pathOf } from "../platform/kit/Request.ts"
import { MalformedJson } from "./Body.ts"

export const mcpPath = "/mcp"

/** Whether a request line's target is the tool server, whose failures are answered in its protocol. */
export const isToolServer = (target: string): boolean => pathOf(target).replace(/\/$/, "") === mcpPath

export type MessageId = string | number

export interface RpcError {
  readonly jsonrpc: "2.0"
  /** Null before a message is known. */
  readonly id: MessageId | null
  readonly error: {
    readonly code: number
    readonly message: string
    /** The error's body, with the seconds of `Retry-After` if there is one. */
    readonly data: ErrorBody & { readonly retryAfterSeconds?: number }
  }
}

const codes = { parseError: -32_700, invalidRequest: -32_600, invalidParams: -32_602, internalError: -32_603 }

/** The first of the codes that the protocol leaves to servers: for authentication, rate limits and availability. */
const serverError = -32_000

const codeOf = (error: ApiError): number => {
  if (error instanceof MalformedJson) return codes.parseError
  switch (error._tag) {
    case "ValidationFailed":
    case "MethodNotAllowed":
    case "UnsupportedMediaType":
    case "PayloadTooLarge":
    case "RequestTimeout":
    case "HeadersTooLarge":
      return codes.invalidRequest
    case "InternalError":
      return codes.internalError
    default:
      return serverError
  }
}

const refusal = (error: ApiError, requestId: string, id: MessageId | null, code: number): RpcError => {
  const data = errorBody(error, requestId)
  const wait = error.retryAfter === null ? {} : { retryAfterSeconds: retrySeconds(error.retryAfter) }
  return { jsonrpc: "2.0", id, error: { code, message: data.error, data: { ...data, ...wait } } }
}

/** A documented error in the protocol's form: the error's `data` is the body that every operation returns. */
export const rpcError = (error: ApiError, requestId: string): RpcError => refusal(error, requestId, null, codeOf(error))

const noSuchResource = -32_002

export const resourceNotFound = (requestId: string, id: MessageId): RpcError =>
  refusal(
    new ResourceNotFound({ message: "There is no such resource; resources/list lists the existing ones." }),
    requestId,
    id,
    noSuchResource
  )

/**
 * The challenge that HTTP requires of a 401, with the scheme that clients of the protocol send their keys in; with
 * `invalid_token` if there was a key.
 */
export const challengeOf = (error: ApiError): Record<string, string> =>
  error.status === 401
    ? {
        "www-authenticate": `Bearer realm="connected-payments"${error._tag === "AuthenticationRequired" ? "" : ', error="invalid_token"'}`
      }
    : {}

/** The answer to a message whose `params` don't fit its method. */
export const invalidParams = (error: ApiError, requestId: string, id: MessageId): RpcError =>
  refusal(error, requestId, id, codes.invalidParams)
