import { errorBody, type ProviderError } from "./ProviderError.ts"

/** A request whose body has been read. */
export interface HttpRequest {
  /** The id that the emulator gave it: `req_...`. */
  readonly id: string
  readonly method: string
  /** The path as it stands in the request line, percent-encoded, without the query. */
  readonly path: string
  /** Without the question mark; "" where there is none. */
  readonly query: string
  /** The value of a header, whose name is given in lower case. */
  readonly header: (name: string) => string | undefined
  readonly body: string
}

/** An answer that is ready to be written. */
export interface HttpReply {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
  /** How it is written where it is not simply written: never, not at all but by a reset, or without an end. */
  readonly manner?: "silent" | "reset" | "dripping"
}

/** An answer whose body is JSON text already. */
export const jsonReply = (status: number, body: string, headers: Readonly<Record<string, string>> = {}): HttpReply => ({
  status,
  headers: { "content-type": "application/json", "cache-control": "no-cache, no-store", ...headers },
  body
})

/** A refusal as the provider words it. */
export const errorReply = (error: ProviderError): HttpReply => jsonReply(error.status, errorBody(error))

/** The segments of a path, percent-decoded one by one; undefined where the encoding is broken. */
export const segmentsOf = (path: string): ReadonlyArray<string> | undefined => {
  try {
    return path.split("/").slice(1).map(decodeURIComponent)
  } catch {
    return undefined
  }
}
