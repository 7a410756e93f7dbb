import { errorBody, type ProviderError } from "./ProviderError.ts"

export interface HttpRequest {
  /** The request's id, assigned by the emulator: `req_...`. */
  readonly id: string
  readonly method: string
  /** The path in the request line, percent-encoded, without the query. */
  readonly path: string
  /** Without the question mark; "" if there is none. */
  readonly query: string
  readonly header: (name: string) => string | undefined
  readonly body: string
}

export interface HttpReply {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
  /** How a fault sends it: not at all, as a connection reset, or without end. Absent: normally. */
  readonly manner?: "silent" | "reset" | "dripping"
}

export const jsonReply = (status: number, body: string, headers: Readonly<Record<string, string>> = {}): HttpReply => ({
  status,
  headers: { "content-type": "application/json", "cache-control": "no-cache, no-store", ...headers },
  body
})

export const errorReply = (error: ProviderError): HttpReply => jsonReply(error.status, errorBody(error))

export const segmentsOf = (path: string): ReadonlyArray<string> | undefined => {
  try {
    return path.split("/").slice(1).map(decodeURIComponent)
  } catch {
    return undefined
  }
}
