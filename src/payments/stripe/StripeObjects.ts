import { Effect } from "effect"
import type Stripe from "stripe"
import type { ChangeObject, CreateObject, ListObjects, RetrieveObject } from "../ProviderCall.ts"
import { type FieldNames, inOurNames } from "../RefusalReasons.ts"
import { named, one, page, type StripeCall } from "./StripeCall.ts"

/** The calls that every kind of Stripe's objects has, and the forms that their parameters share. */

interface CreatedWithin {
  readonly created_gte?: number
  readonly created_lte?: number
}

/** List parameters with `created_gte` and `created_lte` in Stripe's form, as one `created` object. */
export const withTimeRange = <A extends CreatedWithin>({ created_gte: gte, created_lte: lte, ...rest }: A) => ({
  ...rest,
  ...(gte === undefined && lte === undefined
    ? {}
    : { created: { ...(gte === undefined ? {} : { gte }), ...(lte === undefined ? {} : { lte }) } })
})

const timeRangeNames: FieldNames = { "created.gte": "created_gte", "created.lte": "created_lte" }

/** A change of metadata in Stripe's form: an empty string removes the key. */
export const metadataParams = (
  changes: Readonly<Record<string, string | null>> | undefined
): { readonly metadata?: Record<string, string> } =>
  changes === undefined
    ? {}
    : { metadata: Object.fromEntries(Object.entries(changes).map(([key, value]) => [key, value ?? ""])) }

type Answer = Promise<Stripe.Response<object>>
type Options = { readonly stripeAccount: string; readonly idempotencyKey?: string }
type Of<Resource> = (client: Stripe) => Resource

/** Makes the calls; each takes its name in spans and metrics, and the part of the client that has it. */
export const stripeObjects = (call: StripeCall) => ({
  list:
    <P extends object, Params>(
      name: string,
      of: Of<{ list(params: Params, options: Options): Answer }>,
      paramsOf: (query: P) => Params
    ): ListObjects<P> =>
    (account, query) =>
      Effect.mapError(
        page(call(name, account, (client, scope) => of(client).list(paramsOf(query), scope))),
        inOurNames(timeRangeNames)
      ),

  retrieve:
    <Params>(
      name: string,
      of: Of<{ retrieve(id: string, params: Params, options: Options): Answer }>,
      params: Params
    ): RetrieveObject =>
    (account, id) =>
      named(call(name, account, (client, scope) => of(client).retrieve(id, params, scope))),

  create:
    <P, Params>(
      name: string,
      of: Of<{ create(params: Params, options: Options): Answer }>,
      paramsOf: (params: P) => Params
    ): CreateObject<P> =>
    (account, params, options) =>
      one(call(name, account, (client, scope) => of(client).create(paramsOf(params), { ...scope, ...options }))),

  update:
    <P, Params>(
      name: string,
      of: Of<{ update(id: string, params: Params, options: Options): Answer }>,
      paramsOf: (changes: P) => Params
    ): ChangeObject<P> =>
    (account, id, changes, options) =>
      named(call(name, account, (client, scope) => of(client).update(id, paramsOf(changes), { ...scope, ...options })))
})
