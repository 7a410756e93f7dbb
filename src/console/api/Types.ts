import type { HttpApi, HttpApiEndpoint, HttpApiGroup } from "@effect/platform"
import type { Brand, Redacted } from "effect"
import type { Answer } from "../../client/Resources.ts"
import type { Api } from "../../contract/Api.ts"

/**
 * The types of the calls, derived from the contract's declarations. Types alone: none of the contract's code is in the
 * pages, since its schemas would be several times as large as the pages themselves.
 */

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

/** The groups of the contract. */
export type GroupName = HttpApiGroup.HttpApiGroup.Name<Groups>

export type OperationName<G extends GroupName> = HttpApiEndpoint.HttpApiEndpoint.Name<EndpointsOf<G>>

/** What JSON carries for a value of the contract: a time is text, and so are ids with a brand and secrets. */
export type Json<T> = unknown extends T
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

/** A value in a query, written as text. */
type Query<T> = { readonly [K in keyof T]: Json<T[K]> | (T[K] extends number | undefined ? number : never) }

/** Whether an operation takes nothing there: the part is not declared, or has no fields. */
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

type Parts<Endpoint> =
  Endpoint extends HttpApiEndpoint.HttpApiEndpoint<
    infer Name,
    infer _Method,
    infer Path,
    infer UrlParams,
    infer Payload,
    infer _Headers,
    infer _Success,
    infer _Error,
    infer _R,
    infer _RE
  >
    ? PathPart<Path> & QueryPart<UrlParams> & PayloadPart<Name, Payload>
    : never

type AnswerPart<G, Endpoint> =
  Endpoint extends HttpApiEndpoint.HttpApiEndpoint<
    infer Name,
    infer _Method,
    infer _Path,
    infer _UrlParams,
    infer _Payload,
    infer _Headers,
    infer Success,
    infer _Error,
    infer _R,
    infer _RE
  >
    ? [Success] extends [never]
      ? undefined
      : Json<Answer<G, Name, Success>>
    : never

/** The request of an operation: `path`, `urlParams` and `payload` as JSON carries them. */
export type RequestOf<G extends GroupName, N extends OperationName<G>> = Parts<
  HttpApiEndpoint.HttpApiEndpoint.WithName<EndpointsOf<G>, N>
>

/** The answer of an operation, as JSON carries it. */
export type AnswerOf<G extends GroupName, N extends OperationName<G>> = AnswerPart<
  G,
  HttpApiEndpoint.HttpApiEndpoint.WithName<EndpointsOf<G>, N>
>
