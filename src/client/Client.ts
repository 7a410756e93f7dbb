import {
  type HttpApi,
  HttpApiClient,
  type HttpApiEndpoint,
  type HttpApiGroup,
  HttpClient,
  type HttpClientError,
  HttpClientRequest
} from "@effect/platform"
import { Chunk, Context, Effect, flow, Layer, Option, type ParseResult, Predicate, Redacted, Stream } from "effect"
import { Api, OrganizationId } from "../surface/contract/index.ts"
import { type Failure, tellApart } from "./Refusals.ts"
import { type Answer, readAnswer } from "./Resources.ts"
import { type RetryOptions, withRetries } from "./Retries.ts"

/** The options of a client of one organization and environment; the key decides the environment. */
export interface ClientOptions {
  /** The URL of the service, such as `https://payments.example`. */
  readonly baseUrl: string | URL
  /** The organization's id (UUID). Any other text is a defect. */
  readonly organizationId: string
  readonly apiKey: Redacted.Redacted
  readonly retry?: RetryOptions
}

type ApiTypes =
  typeof Api extends HttpApi.HttpApi<infer _Id, infer Groups, infer Error, infer _R>
    ? { readonly groups: Groups; readonly error: Error }
    : never

/**
 * Groups that a key can't call or does not need: signing in, members, keys, return URLs and accounts, payers' pages,
 * provider notifications, health. The stream of events has its own function, `eventStream`.
 */
const otherGroups = [
  "eventStream",
  "signIn",
  "session",
  "organizations",
  "members",
  "invitations",
  "invitation",
  "apiKeys",
  "returnUrls",
  "accountConnection",
  "accountPages",
  "currentKey",
  "payPages",
  "publicImages",
  "inbound",
  "health"
] as const

type GroupName = Exclude<HttpApiGroup.HttpApiGroup.Name<ApiTypes["groups"]>, (typeof otherGroups)[number]>

/** The client's own failures, besides the documented errors: no connection, or a response with an unexpected form. */
export type ClientFailure = HttpClientError.HttpClientError | ParseResult.ParseError

type Fields<Path, Query, Payload, Headers, Name> = ([keyof Omit<Path, "organizationId">] extends [never]
  ? unknown
  : { readonly path: Omit<Path, "organizationId"> }) &
  ([keyof Query] extends [never]
    ? unknown
    : Partial<Query> extends Query
      ? { readonly urlParams?: Query }
      : { readonly urlParams: Query }) &
  // An uploaded image has no schema: it is sent as the part `file` of a form
  (Name extends "upload"
    ? { readonly payload: FormData }
    : [Payload] extends [never]
      ? unknown
      : { readonly payload: Payload }) &
  ([Headers] extends [never]
    ? unknown
    : {
        /** Default: a new one per call, the same for all of its attempts. */
        readonly idempotencyKey?: string
      })

type Request<T> = { readonly [K in keyof T]: T[K] }

type Call<Req, Answer> = Partial<Req> extends Req ? (request?: Req) => Answer : (request: Req) => Answer

type Pages<Req, Query, Success, Error> = "starting_after" extends keyof Query
  ? Success extends { readonly data: ReadonlyArray<infer Item>; readonly has_more: boolean }
    ? {
        /** Every item of the list, fetched page by page on demand; `limit` is the page size. */
        readonly stream: Call<Req, Stream.Stream<Item, Error>>
      }
    : unknown
  : unknown

type Operation<Group, Endpoint, GroupError> =
  Endpoint extends HttpApiEndpoint.HttpApiEndpoint<
    infer Name,
    infer _Method,
    infer Path,
    infer Query,
    infer Payload,
    infer Headers,
    infer Success,
    infer Error,
    infer _R,
    infer _RE
  >
    ? Call<
        Request<Fields<Path, Query, Payload, Headers, Name>>,
        Effect.Effect<Answer<Group, Name, Success>, Failure<Error | GroupError | ApiTypes["error"] | ClientFailure>>
      > &
        Pages<
          Request<Fields<Path, Query, Payload, Headers, Name>>,
          Query,
          Answer<Group, Name, Success>,
          Failure<Error | GroupError | ApiTypes["error"] | ClientFailure>
        >
    : never

type Operations<Group> =
  Group extends HttpApiGroup.HttpApiGroup<infer Id, infer Endpoints, infer GroupError, infer _R, infer _TopLevel>
    ? {
        readonly [Name in HttpApiEndpoint.HttpApiEndpoint.Name<Endpoints>]: Operation<
          Id,
          HttpApiEndpoint.HttpApiEndpoint.WithName<Endpoints, Name>,
          GroupError
        >
      }
    : never

/**
 * Every operation that a key may call, by group: `client.products.create({ payload })`. Answers and errors are those of
 * the contract. Each error is a class with its own `_tag`; the provider's refusals with documented codes each have a
 * tag of their own. Provider objects have the documented fields, each undefined if the provider sends another type; all
 * other fields are `unknown`. Lists with cursor pages also have a `stream`.
 */
export type Client = {
  readonly [Name in GroupName]: Operations<HttpApiGroup.HttpApiGroup.WithName<ApiTypes["groups"], Name>>
}

interface AnyRequest {
  readonly path?: Readonly<Record<string, unknown>>
  readonly urlParams?: Readonly<Record<string, unknown>>
  readonly payload?: unknown
  readonly idempotencyKey?: string
}

type AnyCall = (request: unknown) => Effect.Effect<unknown, unknown>

/** The field of a list's items that is the cursor of the next page. */
const cursorField = (group: string, operation: string): string =>
  group === "endpoints" && operation === "skipped" ? "eventId" : "id"

const pagesOf =
  (call: (request: AnyRequest) => Effect.Effect<unknown, unknown>, field: string) =>
  (request: AnyRequest = {}) =>
    Stream.paginateChunkEffect(request.urlParams, (urlParams) =>
      Effect.flatMap(call(urlParams === undefined ? request : { ...request, urlParams }), (page) => {
        const items: ReadonlyArray<unknown> =
          Predicate.hasProperty(page, "data") && Array.isArray(page.data) ? page.data : []
        const last = items.at(-1)
        const cursor = Predicate.hasProperty(last, field) ? last[field] : undefined
        const more = Predicate.hasProperty(page, "has_more") && page.has_more === true
        if (more && typeof cursor !== "string") {
          return Effect.dieMessage(`A page that is not the last one ends without an ${field}`)
        }
        const next = more ? Option.some({ ...urlParams, starting_after: cursor }) : Option.none()
        return Effect.succeed([Chunk.fromIterable(items), next] as const)
      })
    )

const makeOperation = (
  organizationId: OrganizationId,
  call: AnyCall,
  place: { readonly group: string; readonly operation: string; readonly takesKey: boolean }
) => {
  const operation = ({ idempotencyKey, path, payload, urlParams }: AnyRequest = {}) =>
    call({
      path: { ...path, organizationId },
      urlParams: urlParams ?? {},
      payload,
      // Created here and not when the effect runs, so that the caller's own retries send the same key
      ...(place.takesKey ? { headers: { "idempotency-key": idempotencyKey ?? crypto.randomUUID() } } : {})
    })
  return Object.assign(operation, { stream: pagesOf(operation, cursorField(place.group, place.operation)) })
}

/**
 * The typed client of the HTTP API, derived from the contract, for one key. Uses the `HttpClient` in its context, such
 * as `FetchHttpClient.layer`. Repeats temporary failures if that is safe; see `RetryOptions`.
 */
export const makeClient = (options: ClientOptions): Effect.Effect<Client, never, HttpClient.HttpClient> =>
  Effect.map(
    HttpApiClient.make(Api, {
      baseUrl: options.baseUrl,
      transformClient: (client) =>
        withRetries(
          HttpClient.mapRequest(client, HttpClientRequest.setHeader("x-api-key", Redacted.value(options.apiKey))),
          options.retry
        )
    }),
    (derived) => {
      const organizationId = OrganizationId.make(options.organizationId)
      const others: ReadonlyArray<string> = otherGroups
      // The derived client and the API's declarations are walked in parallel; `Client` describes the combined types
      const calls = derived as unknown as Readonly<Record<string, Readonly<Record<string, AnyCall>>>>
      const groups = Api.groups as unknown as Readonly<Record<string, HttpApiGroup.HttpApiGroup.AnyWithProps>>
      const client = Object.fromEntries(
        Object.entries(groups)
          .filter(([group]) => !others.includes(group))
          .map(([group, { endpoints }]) => [
            group,
            Object.fromEntries(
              Object.entries(endpoints).flatMap(([operation, { headersSchema, successSchema }]) => {
                const call = calls[group]?.[operation]
                const place = { group, operation, takesKey: Option.isSome(headersSchema) }
                const read = readAnswer(group, operation, successSchema)
                return call === undefined
                  ? []
                  : [[operation, makeOperation(organizationId, flow(call, read, Effect.mapError(tellApart)), place)]]
              })
            )
          ])
      )
      return client as unknown as Client
    }
  )

/** The client as a service. */
export class ConnectedPayments extends Context.Tag("connected-payments/client/ConnectedPayments")<
  ConnectedPayments,
  Client
>() {
  static readonly layer = (options: ClientOptions): Layer.Layer<ConnectedPayments, never, HttpClient.HttpClient> =>
    Layer.effect(ConnectedPayments, makeClient(options))
}
