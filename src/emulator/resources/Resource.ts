import { Effect, Schema, SchemaAST, Struct } from "effect"
import { listParams, newestFirst, page, pageParams } from "../api/Lists.ts"
import * as Params from "../api/Params.ts"
import { existing, noParams, type RequestContext, type Route, route } from "../api/Route.ts"
import type { Shape } from "../api/Shapes.ts"
import type { ProviderError } from "../ProviderError.ts"
import type { KindWithId, Records } from "../Records.ts"

interface Parts {
  readonly items: ReadonlyArray<{ readonly id: string }>
  readonly noun: string
}

type Result<A = object> = Effect.Effect<A, ProviderError>

interface ListOptions<A, Object> {
  /** Whether an object passes a filter, given or not; without an entry, its field of the same name has the value. */
  readonly matches?: { readonly [Name in keyof A]?: Match<Object, A[Name]> }
  readonly check?: (context: RequestContext, params: A) => Result<unknown>
  /** The word for one object in the message about an unknown cursor; by default the kind. */
  readonly noun?: string
}

type Match<Object, Asked> = (object: Object, asked: Asked, context: RequestContext) => boolean

const isRange = Schema.is(Schema.typeSchema(Params.range))

const passes = (actual: unknown, asked: unknown): boolean =>
  asked === undefined ||
  (typeof actual === "number" && isRange(asked) ? Params.inRange(actual, asked) : actual === asked)

interface Definition<K extends KindWithId> {
  readonly path: string
  readonly kind: K
  /** The object as it is now, if its stored state depends on the time or on other objects. */
  readonly current: (context: RequestContext, stored: Records[K]) => Records[K]
}

const listRoute = <K extends KindWithId, A extends object, I>(
  { current, kind, path }: Definition<K>,
  filters: Schema.Schema<A, I>,
  { check = () => Effect.void, matches = {}, noun = kind }: ListOptions<A, Records[K]>
): Route => {
  const fields = SchemaAST.getPropertySignatures(filters.ast)
    .map(({ name }) => name)
    .filter((name) => !Object.hasOwn(matches, name))
  const hasFields = (object: object, asked: object) =>
    fields.every((name) => passes(Reflect.get(object, name), Reflect.get(asked, name)))
  return route({
    method: "GET",
    path,
    answers: { listOf: kind },
    params: listParams(filters),
    run: (context, given) => {
      const stored: ReadonlyArray<Records[K] & { readonly id: string }> = newestFirst(context.objects.all(kind))
      const passesAt = <Name extends keyof A>(object: Records[K], name: Name) =>
        matches[name]?.(object, given[name], context) ?? true
      const source = {
        items: stored.map((object) => ({ ...object, ...current(context, object) })),
        matches: (object: Records[K]) =>
          hasFields(object, given) && Struct.keys(matches).every((name) => passesAt(object, name)),
        noun,
        url: path
      }
      return Effect.zipRight(check(context, given), page(source, given))
    }
  })
}

/** The routes of a kind of objects, all below one path. */
export const resource = <K extends KindWithId>(
  path: string,
  kind: K,
  current: Definition<K>["current"] = (_, stored) => stored
) => {
  const currentOf = (context: RequestContext, id: string): Result<Records[K]> =>
    Effect.map(existing(context, kind, id), (stored) => current(context, stored))

  const answers = { object: kind } as const
  const own = `${path}/:id`

  const on =
    (method: Route["method"], at: string, shape: Shape) =>
    <A, I>(
      params: Schema.Schema<A, I>,
      run: (context: RequestContext, params: A, object: Records[K]) => Result
    ): Route =>
      route({
        method,
        path: at,
        answers: { object: shape },
        params,
        run: (context, given, id) => Effect.flatMap(currentOf(context, id), (object) => run(context, given, object))
      })

  return {
    existing: currentOf,
    get: route({
      method: "GET",
      path: own,
      answers,
      params: noParams,
      run: (context, _, id) => currentOf(context, id)
    }),
    create: <A, I>(params: Schema.Schema<A, I>, run: (context: RequestContext, params: A) => Result): Route =>
      route({ method: "POST", path, answers, params, run }),
    update: on("POST", own, kind),
    /** Deletes an object, or ends it and answers with it. */
    remove: (shape: "deleted" | K) => on("DELETE", own, shape),
    act: (name: string) => on("POST", `${own}/${name}`, kind),
    /** A list, newest first, with filters that are all optional. */
    list: <A extends object, I>(filters: Schema.Schema<A, I>, options: ListOptions<A, Records[K]> = {}): Route =>
      listRoute({ path, kind, current }, filters, options),
    parts: (name: string, shape: Shape, partsOf: (context: RequestContext, object: Records[K]) => Parts): Route =>
      route({
        method: "GET",
        path: `${own}/${name}`,
        answers: { listOf: shape },
        params: pageParams,
        run: (context, given, id) =>
          Effect.flatMap(currentOf(context, id), (object) =>
            page({ ...partsOf(context, object), url: `${path}/${id}/${name}` }, given)
          )
      })
  }
}
