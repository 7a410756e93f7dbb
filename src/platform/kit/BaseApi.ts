import { HttpApi } from "@effect/platform"
import {
  errorSchemas,
  HeadersTooLarge,
  InternalError,
  MethodNotAllowed,
  PayloadTooLarge,
  RequestTimeout,
  UnsupportedMediaType,
  ValidationFailed
} from "../errors/Errors.ts"

/**
 * The contract without its groups: its name, and the errors that any operation can return. The whole contract adds
 * every group; a slice adds only its own, and so serves it without importing the others.
 */
export const BaseApi = HttpApi.make("connected-payments").addError(
  errorSchemas(
    ValidationFailed,
    MethodNotAllowed,
    RequestTimeout,
    PayloadTooLarge,
    UnsupportedMediaType,
    HeadersTooLarge,
    InternalError
  )
)
