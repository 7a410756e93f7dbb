import { type ApiError, type ErrorBody, errorBody } from "../Errors.ts"
import { MalformedJson } from "../kit/Body.ts"

/** Where the tool server is. */
export const mcpPath = "/mcp"

/** Whether a request line's target is the tool server, which is answered in its protocol whatever goes wrong. */
export const isToolServer = (target: string): boolean => /^\/mcp\/?(?:[?;#]|$)/.test(target)

/** A refusal of the tool server before a message is known: JSON-RPC 2.0's error object, which answers no id. */
export interface RpcError {
  readonly jsonrpc: "2.0"
  readonly id: null
  readonly error: { readonly code: number; readonly message: string; readonly data: ErrorBody }
}

/** The protocol's own codes. */
const codes = { parseError: -32_700, invalidRequest: -32_600, internalError: -32_603 }

/** The first of those that the protocol leaves to servers: who calls, how often, and whether we can serve. */
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

/** A documented error as the protocol says it: its body, as every operation answers it, is the error's `data`. */
export const rpcError = (error: ApiError, requestId: string): RpcError => ({
  jsonrpc: "2.0",
  id: null,
  error: { code: codeOf(error), message: error.message, data: errorBody(error, requestId) }
})
