import { ApiError, isAbort, refusalOf, unreachable } from "./ApiError.ts"
import { currentPath, environmentIn, servicePath } from "./Base.ts"
import operations from "./operations.json" with { type: "json" }
import type { AnswerOf, GroupName, OperationName, RequestOf } from "./Types.ts"

/** By ETag, so that polling costs a 304. In memory only: the browser's own cache is on disk. */

interface KnownAnswer {
  readonly etag: string
  readonly value: unknown
}

/** More than one page requests at once. */
const maxKnown = 50

const answers = new Map<string, KnownAnswer>()

const keepAnswer = (asked: string, answer: KnownAnswer): void => {
  answers.delete(asked)
  answers.set(asked, answer)
  const [oldest] = answers.keys()
  if (answers.size > maxKnown && oldest !== undefined) answers.delete(oldest)
}

/** An operation by its group and name in the contract. */
export type OperationKey = keyof typeof operations

export { ApiError } from "./ApiError.ts"
export type { AnswerOf, GroupName, OperationName, RequestOf } from "./Types.ts"

/** Header with the workspace of a request, so that two tabs of one session never mix their environments. */
const workspaceHeader = "service-workspace"

/** Set by the session module: the organization for paths, how many sessions began, and the listener for their end. */
const session: { organizationId: string | undefined; began: number; onEnd: () => void } = {
  organizationId: undefined,
  began: 0,
  onEnd: () => {}
}

/** A refusal of a request that was sent before a session began says nothing about that session. */
export const sessionBegan = (): void => {
  session.began += 1
}

/** Sets the organization for the paths of later calls, and clears the response cache. */
export const setOrganization = (organizationId: string | undefined): void => {
  answers.clear()
  session.organizationId = organizationId
}

export const onSessionEnd = (listener: () => void): void => {
  session.onEnd = listener
}

interface AnyRequest {
  readonly path?: Readonly<Record<string, unknown>>
  readonly urlParams?: Readonly<Record<string, unknown>>
  readonly payload?: unknown
}

export interface CallOptions {
  readonly signal?: AbortSignal
  /** For operations that take a key. Default: a new one per call. */
  readonly idempotencyKey?: string
}

const pathOf = (template: string, parts: Readonly<Record<string, unknown>>): string =>
  template.replaceAll(/:(\w+)/g, (_, name: string) =>
    encodeURIComponent(String(name === "organizationId" ? (session.organizationId ?? "") : (parts[name] ?? "")))
  )

const queryOf = (urlParams: Readonly<Record<string, unknown>>): string => {
  const query = new URLSearchParams()
  for (const [name, value] of Object.entries(urlParams)) {
    for (const one of Array.isArray(value) ? value : [value]) {
      if (one !== undefined && one !== "") query.append(name, String(one))
    }
  }
  const text = query.toString()
  return text === "" ? "" : `?${text}`
}

/** Whether a refusal means that the session has ended. A refused mail link also gets 401. */
const endsSession = (error: ApiError, key: string): boolean =>
  error.status === 401 && !/^(?:signIn|invitation)\./.test(key)

const send = async (key: OperationKey, request: AnyRequest, options: CallOptions): Promise<unknown> => {
  const { method, path: template, takesKey } = operations[key]
  const environment = environmentIn(currentPath())
  const { began } = session
  const form = request.payload instanceof FormData ? request.payload : undefined
  const headers = new Headers({ accept: "application/json" })
  if (environment !== undefined) headers.set(workspaceHeader, environment)
  if (takesKey) headers.set("idempotency-key", options.idempotencyKey ?? crypto.randomUUID())
  if (request.payload !== undefined && form === undefined) headers.set("content-type", "application/json")
  const url = `${servicePath}${pathOf(template, request.path ?? {})}${queryOf(request.urlParams ?? {})}`
  // The cache key includes the workspace, since both workspaces have the same URLs
  const asked = `${environment} ${url}`
  const known = method === "GET" ? answers.get(asked) : undefined
  if (known !== undefined) headers.set("if-none-match", known.etag)
  const response = await fetch(url, {
    method,
    headers,
    credentials: "same-origin",
    cache: "no-store",
    ...(request.payload === undefined ? {} : { body: form ?? JSON.stringify(request.payload) }),
    ...(options.signal === undefined ? {} : { signal: options.signal })
  }).catch((failure: unknown) => {
    throw isAbort(failure) ? failure : unreachable()
  })
  if (response.status === 304 && known !== undefined) return known.value
  if (!response.ok) {
    const error = await refusalOf(response)
    if (endsSession(error, key) && began === session.began) session.onEnd()
    throw error
  }
  if (response.status === 204) return undefined
  const value: unknown = await response.json().catch((failure: unknown) => {
    throw isAbort(failure)
      ? failure
      : new ApiError({
          message: "The service's answer could not be read.",
          status: response.status,
          code: "unexpected_answer",
          requestId: response.headers.get("request-id")
        })
  })
  const etag = response.headers.get("etag")
  if (method === "GET" && etag !== null) keepAnswer(asked, { etag, value })
  return value
}

/**
 * Calls an operation by its group and name in the contract. Adds the session cookie, the organization in the path, and
 * the workspace of the current page. Rejects with `ApiError`, or with the `AbortError` of `options.signal`.
 */
export const call = <G extends GroupName, N extends OperationName<G>>(
  group: G,
  name: N,
  ...[request, options]: Partial<RequestOf<G, N>> extends RequestOf<G, N>
    ? [request?: RequestOf<G, N>, options?: CallOptions]
    : [request: RequestOf<G, N>, options?: CallOptions]
): Promise<AnswerOf<G, N>> =>
  // The contract's declarations, from which `operations` is generated, give the request and response types
  send(`${group}.${name}` as OperationKey, (request ?? {}) as AnyRequest, options ?? {}) as Promise<AnswerOf<G, N>>
