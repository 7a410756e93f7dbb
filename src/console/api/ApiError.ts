/** A failed API call: a refusal by the service, or no response. */
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

  constructor(details: {
    readonly message: string
    readonly status: number
    readonly code: string
    readonly fields?: ReadonlyArray<string>
    readonly requestId?: string | null
    readonly retryAfterSeconds?: number | null
  }) {
    super(details.message)
    this.name = "ApiError"
    this.status = details.status
    this.code = details.code
    this.fields = details.fields ?? []
    this.requestId = details.requestId ?? null
    this.retryAfterSeconds = details.retryAfterSeconds ?? null
  }
}

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null

/** Parses an error response. A proxy may send something other than the service's JSON. */
export const refusalOf = async (response: Response): Promise<ApiError> => {
  const body: unknown = await response.json().catch(() => null)
  const said = isRecord(body) ? body : {}
  const text = (field: string): string | undefined => {
    const value = said[field]
    return typeof value === "string" && value !== "" ? value : undefined
  }
  const fields = said["fields"]
  const retryAfter = Number(response.headers.get("retry-after") ?? Number.NaN)
  return new ApiError({
    message: text("error") ?? `The service answered with status ${response.status}.`,
    status: response.status,
    code: text("code") ?? "unexpected_answer",
    fields: Array.isArray(fields) ? fields.filter((field): field is string => typeof field === "string") : [],
    requestId: text("requestId") ?? response.headers.get("request-id"),
    retryAfterSeconds: Number.isFinite(retryAfter) ? retryAfter : null
  })
}

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
