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

/** The parts between slashes, decoded; undefined if one is not well-formed. */
export const partsOf = (path: string): ReadonlyArray<string> | undefined => {
  try {
    return path.split("/").map(decodeURIComponent)
  } catch {
    return undefined
  }
}

export interface Match<A> {
  readonly value: A
  /** The parts at the pattern's `:` places, of which any can be empty. */
  readonly ids: ReadonlyArray<string>
}

/** Finds the value of the first pattern, such as `GET /v1/products/:id`, that fits a path. */
export const makeRouter = <A>(values: Readonly<Record<string, A>>) => {
  const table = Object.entries(values).map(([pattern, value]) => ({ value, pattern: pattern.split("/") }))
  return (path: string): Match<A> | undefined => {
    const parts = partsOf(path) ?? []
    const found = table.find(
      ({ pattern }) =>
        pattern.length === parts.length && pattern.every((one, index) => one.startsWith(":") || one === parts[index])
    )
    return found && { value: found.value, ids: parts.filter((_, index) => found.pattern[index]?.startsWith(":")) }
  }
}
