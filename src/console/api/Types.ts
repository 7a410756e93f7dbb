import type { HttpApi, HttpApiEndpoint, HttpApiGroup } from "@effect/platform"
import type { Brand, Redacted } from "effect"
import type { Answer } from "../../client/Resources.ts"
import type { Api } from "../../surface/contract/Api.ts"

/** The types of the calls, derived from the contract, whose schemas are several times the pages' size. */

type Groups = typeof Api extends HttpApi.HttpApi<infer _Id, infer Groups, infer _Error, infer _R> ? Groups : never

type EndpointsOf<G extends GroupName> =
  HttpApiGroup.HttpApiGroup.WithName<Groups, G> extends HttpApiGroup.HttpApiGroup<
    infer _Id,
    infer Endpoints,
    infer _Error,
    infer _R,
    infer _TopLevel
  >
    ? Endpoints
    : never

export type GroupName = HttpApiGroup.HttpApiGroup.Name<Groups>

export type OperationName<G extends GroupName> = HttpApiEndpoint.HttpApiEndpoint.Name<EndpointsOf<G>>

/** The JSON form of a value of the contract: times, branded ids and secrets become strings. */
type Json<T> = unknown extends T
  ? T
  : T extends Date
    ? string
    : T extends Redacted.Redacted<infer Secret>
      ? Secret
      : T extends string
        ? T extends Brand.Brand<string>
          ? string
          : T
        : T extends number
          ? T extends Brand.Brand<string>
            ? number
            : T
          : T extends boolean | null | undefined | bigint | File
            ? T
            : T extends ReadonlyArray<infer Item>
              ? ReadonlyArray<Json<Item>>
              : { readonly [K in keyof T]: Json<T[K]> }

type Query<T> = { readonly [K in keyof T]: Json<T[K]> | (T[K] extends number | undefined ? number : never) }

type IsNothing<Part> = [Part] extends [never] ? true : [keyof Part] extends [never] ? true : false

type PathPart<Path> =
  IsNothing<Path> extends true
    ? unknown
    : IsNothing<Omit<Path, "organizationId">> extends true
      ? unknown
      : { readonly path: Json<Omit<Path, "organizationId">> }

type QueryPart<UrlParams> =
  IsNothing<UrlParams> extends true
    ? unknown
    : Partial<UrlParams> extends UrlParams
      ? { readonly urlParams?: Query<UrlParams> }
      : { readonly urlParams: Query<UrlParams> }

// An uploaded image has no schema: it is sent as the part `file` of a form
type PayloadPart<Name, Payload> = Name extends "upload"
  ? { readonly payload: FormData }
  : [Payload] extends [never]
    ? unknown
    : { readonly payload: Json<Payload> }

type Operation<G, Endpoint> =
  Endpoint extends HttpApiEndpoint.HttpApiEndpoint<
    infer Name,
    infer _Method,
    infer Path,
    infer UrlParams,
    infer Payload,
    infer _Headers,
    infer Success,
    infer _Error,
    infer _R,
    infer _RE
  >
    ? {
        readonly request: PathPart<Path> & QueryPart<UrlParams> & PayloadPart<Name, Payload>
        readonly answer: [Success] extends [never] ? undefined : Json<Answer<G, Name, Success>>
      }
    : never

type OperationOf<G extends GroupName, N extends OperationName<G>> = Operation<
  G,
  HttpApiEndpoint.HttpApiEndpoint.WithName<EndpointsOf<G>, N>
>

/** In the JSON form. */
export type RequestOf<G extends GroupName, N extends OperationName<G>> = OperationOf<G, N>["request"]

export type AnswerOf<G extends GroupName, N extends OperationName<G>> = OperationOf<G, N>["answer"]
