import { itemsAt, textAt } from "./Reading.ts"

export class ApiError extends Error {
  /** The HTTP status; 0 if the service could not be reached. */
  readonly status: number
  /** The contract's error code, such as `validation_failed`; `unreachable` if there was no response. */
  readonly code: string
  /** The refused fields as dotted paths. */
  readonly fields: ReadonlyArray<string>
  /** The id to quote to support; null if the request never arrived. */
  readonly requestId: string | null
  readonly retryAfterSeconds: number | null

  constructor(details: Pick<ApiError, "message" | "status" | "code"> & Partial<ApiError>) {
    super(details.message)
    this.name = "ApiError"
    this.status = details.status
    this.code = details.code
    this.fields = details.fields ?? []
    this.requestId = details.requestId ?? null
    this.retryAfterSeconds = details.retryAfterSeconds ?? null
  }
}

/** Words a message for people, who never see an idempotency key, instead of for programs. */
const forPeople = (message: string, code: string | undefined): string => {
  if (!message.includes("Idempotency-Key")) return message
  if (code === "idempotency_request_in_progress") return "This is still being done. Try again in a moment."
  const [cause = ""] = message.split("; ")
  return cause.includes("Idempotency-Key")
    ? "This was sent before with other values, or refused too often. Reload the page and try again."
    : `${cause}. Try again.`
}

/** Parses an error response. A proxy may send something other than the service's JSON. */
export const refusalOf = async (response: Response): Promise<ApiError> => {
  const body: unknown = await response.json().catch(() => null)
  const retryAfter = Number(response.headers.get("retry-after") ?? Number.NaN)
  return new ApiError({
    message:
      forPeople(textAt(body, "error") ?? "", textAt(body, "code")) ||
      `The service answered with status ${response.status}.`,
    status: response.status,
    code: textAt(body, "code") ?? "unexpected_answer",
    fields: itemsAt(body, "fields").filter((field) => typeof field === "string"),
    requestId: textAt(body, "requestId") ?? response.headers.get("request-id"),
    retryAfterSeconds: Number.isFinite(retryAfter) ? retryAfter : null
  })
}

export const isAbort = (failure: unknown): boolean => failure instanceof DOMException && failure.name === "AbortError"

/** No response: no connection, or it broke off. */
export const unreachable = (): ApiError =>
  new ApiError({
    message: "The service could not be reached. Check your connection and try again.",
    status: 0,
    code: "unreachable"
  })

/** Converts any failure to an `ApiError`; anything unknown is a bug in the page. */
export const toApiError = (failure: unknown): ApiError =>
  failure instanceof ApiError
    ? failure
    : new ApiError({
        message: "Something went wrong on this page. Reload it; if that does not help, tell the operator.",
        status: 0,
        code: "page_failed"
      })
