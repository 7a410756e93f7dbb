/**
 * A client by `fetch` for programs without Effect 3. It needs no package. Its types are those that are made of the
 * OpenAPI document when the package is built, which are its parameter `Paths` here.
 */

/** The options of a client of one organization and environment; the key decides the environment. */
export interface FetchClientOptions {
  /** The URL of the service, such as `https://payments.example`. */
  readonly baseUrl: string | URL
  readonly organizationId: string
  readonly apiKey: string
  /** Default: the global `fetch`. */
  readonly fetch?: typeof fetch
}

/** The service refused a request, or something else answered. It holds nothing of the request, so no key either. */
export class ApiError extends Error {
  override readonly name = "ApiError"
  readonly status: number
  /** The API's code, such as `api_key_invalid`; empty if something else answered. */
  readonly code: string
  /** The whole answer: its JSON, or its text. */
  readonly body: unknown

  constructor(status: number, body: unknown) {
    const { code, error }: { readonly code?: unknown; readonly error?: unknown } = Object(body)
    super(typeof error === "string" ? error : `The service answered ${status}, and not as documented`)
    this.status = status
    this.code = typeof code === "string" ? code : ""
    this.body = body
  }
}

type Method = "get" | "post" | "put" | "patch" | "delete"

/** The operations of a method by their paths below the organization's, without those that answer a stream. */
type Operations<Paths, M extends Method> = {
  readonly [Path in keyof Paths as Paths[Path] extends { readonly [_ in M]: { readonly responses: JsonOrNothing } }
    ? Path extends `/v2/organizations/{organizationId}${infer Rest}`
      ? Rest
      : never
    : never]: Paths[Path] extends { readonly [_ in M]: infer Operation } ? Operation : never
}

type JsonOrNothing =
  | { readonly 200: { readonly content: { readonly "application/json": unknown } } }
  | { readonly 204: unknown }

type Parameters<Operation, Place extends string> = Operation extends {
  readonly parameters: { readonly [_ in Place]?: infer Values }
}
  ? NonNullable<Values>
  : never

type Field<Name extends string, Values> = [Values] extends [never]
  ? unknown
  : [keyof Values] extends [never]
    ? unknown
    : Partial<Values> extends Values
      ? { readonly [_ in Name]?: Values }
      : { readonly [_ in Name]: Values }

type Content<Part, Type extends string> = Part extends { readonly content: { readonly [_ in Type]: infer Value } }
  ? Value
  : never

type Body<Operation> = Operation extends { readonly requestBody: infer Part }
  ? {
      readonly body: [Content<Part, "application/json">] extends [never] ? FormData : Content<Part, "application/json">
    }
  : unknown

type Request<Operation> = Field<"path", Omit<Parameters<Operation, "path">, "organizationId">> &
  Field<"query", Parameters<Operation, "query">> &
  Body<Operation> & {
    /** Of a request that is no `get`. Default: a new one per call. Repeat a call under its own key, 8 to 255 characters. */
    readonly idempotencyKey?: string
    /** Default: 30 seconds. */
    readonly signal?: AbortSignal
  }

type Answer<Operation> = Operation extends { readonly responses: { readonly 200: infer Part } }
  ? Content<Part, "application/json">
  : undefined

/**
 * Every operation by its method and its path below the organization's: `client.post("/provider/products", { body })`.
 * Resolves to the answer; rejects with an `ApiError`, or with the error of `fetch` if there is no answer.
 */
export type FetchClient<Paths> = {
  readonly [M in Method]: <Path extends keyof Operations<Paths, M>>(
    path: Path,
    ...request: Partial<Request<Operations<Paths, M>[Path]>> extends Request<Operations<Paths, M>[Path]>
      ? [request?: Request<Operations<Paths, M>[Path]>]
      : [request: Request<Operations<Paths, M>[Path]>]
  ) => Promise<Answer<Operations<Paths, M>[Path]>>
}

interface AnyRequest {
  readonly path?: Readonly<Record<string, unknown>>
  readonly query?: Readonly<Record<string, unknown>>
  readonly body?: unknown
  readonly idempotencyKey?: string
  readonly signal?: AbortSignal
}

/** One segment of a path. Dots would be another path. */
const segment = (name: string, value: unknown): string => {
  if (typeof value === "string" && !/^\.{0,2}$/.test(value)) return encodeURIComponent(value)
  throw new TypeError(`The path needs \`${name}\`, a text other than "", "." and ".."`)
}

const parsed = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    // Something else answered, such as a proxy with a page
    return text
  }
}

/**
 * The client of the API for one key. It repeats nothing and follows no redirect, which would take the key elsewhere.
 * Throws a `TypeError` if the key can't be one, without naming it.
 */
export const makeFetchClient = <Paths>(options: FetchClientOptions): FetchClient<Paths> => {
  const { apiKey, baseUrl, fetch: send = fetch, organizationId } = options
  // The error of `fetch` would repeat it
  if (!/^[\x21-\x7e]+$/.test(apiKey)) throw new TypeError("The API key is empty, or has a space or a line break in it")
  const base = `${String(baseUrl).replace(/\/+$/, "")}/v2/organizations/${segment("organizationId", organizationId)}`
  const call =
    (method: Method) =>
    async (path: string, { body, idempotencyKey, path: values, query, signal }: AnyRequest = {}): Promise<unknown> => {
      const url = new URL(base + path.replace(/\{(\w+)\}/g, (_, name: string) => segment(name, values?.[name])))
      for (const [name, value] of Object.entries(query ?? {})) {
        for (const one of [value].flat()) if (one !== undefined) url.searchParams.append(name, String(one))
      }
      const json = body !== undefined && !(body instanceof FormData)
      const response = await send(url, {
        method: method.toUpperCase(),
        headers: {
          "x-api-key": apiKey,
          ...(json ? { "content-type": "application/json" } : {}),
          ...(method === "get" ? {} : { "idempotency-key": idempotencyKey ?? crypto.randomUUID() })
        },
        body: json ? JSON.stringify(body) : body instanceof FormData ? body : null,
        redirect: "manual",
        signal: signal ?? AbortSignal.timeout(30_000)
      })
      const text = await response.text()
      if (response.status === 204) return undefined
      const answer = parsed(text)
      if (!response.ok || typeof answer === "string") throw new ApiError(response.status, answer)
      return answer
    }
  const client = {
    get: call("get"),
    post: call("post"),
    put: call("put"),
    patch: call("patch"),
    delete: call("delete")
  }
  // The types are those of the document; no code knows its paths
  return client as unknown as FetchClient<Paths>
}
