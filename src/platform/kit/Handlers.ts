import {
  Headers,
  type HttpApi,
  HttpApiBuilder,
  type HttpApiEndpoint,
  type HttpApiGroup,
  type HttpMethod,
  type HttpRouter,
  HttpServerResponse
} from "@effect/platform"
import { Effect, type Layer, SchemaAST, type Scope } from "effect"
import { BaseApi } from "./BaseApi.ts"

/** The errors of any operation, whatever its group. */
type BaseError = typeof BaseApi extends HttpApi.HttpApi<infer _Id, infer _Groups, infer E, infer _R> ? E : never

type Endpoints<Group> = HttpApiGroup.HttpApiGroup.Endpoints<Group>

export type OperationName<Group> = HttpApiEndpoint.HttpApiEndpoint.Name<Endpoints<Group>>

export type OperationHandler<Group, Name extends string, R = unknown> = HttpApiEndpoint.HttpApiEndpoint.Handler<
  HttpApiEndpoint.HttpApiEndpoint.WithName<Endpoints<Group>, Name>,
  HttpApiGroup.HttpApiGroup.Error<Group> | BaseError,
  R
>

/** HTTP and the agents' tools call the same function, so that both do the same (contract 5.7). */
export type Handlers<Group> = { readonly [Name in OperationName<Group>]: OperationHandler<Group, Name> }

type ContextOf<Made> = {
  readonly [Name in keyof Made]: Made[Name] extends (...request: never) => Effect.Effect<unknown, unknown, infer R>
    ? R
    : never
}[keyof Made]

/** A group of the API with the handlers of its operations. */
export interface HandledGroup<Group, Made, E, R> {
  readonly group: Group
  readonly handlers: Effect.Effect<Made, E, R>
}

export const handlersOf = <
  Group extends HttpApiGroup.HttpApiGroup.Any,
  const Made extends Handlers<Group>,
  Services,
  E,
  R
>(
  group: Group,
  services: Effect.Effect<Services, E, R>,
  operations: (services: Services) => Made
): HandledGroup<Group, Made, E, R> => ({ group, handlers: Effect.map(services, operations) })

/** A served group. It needs the services of its operations, except those of the router and the group's middleware. */
type Served<Group extends HttpApiGroup.HttpApiGroup.Any, Made, E, R> = Layer.Layer<
  HttpApiGroup.ApiGroup<"connected-payments", HttpApiGroup.HttpApiGroup.Name<Group>>,
  E,
  Exclude<
    | R
    | Exclude<
        ContextOf<Made>,
        | HttpRouter.HttpRouter.DefaultServices
        | HttpRouter.HttpRouter.Provided
        | HttpApiGroup.HttpApiGroup.Provides<Group>
      >
    | HttpApiGroup.HttpApiGroup.Middleware<Group>,
    Scope.Scope
  >
>

type AnyGroup = HttpApiGroup.HttpApiGroup<string, HttpApiEndpoint.HttpApiEndpoint<string, HttpMethod.HttpMethod>>

/** The answer of an operation that declares none, without the one that is stored for agents, unless that is a refusal. */
const withoutBody = <A>(answer: A) =>
  HttpServerResponse.isServerResponse(answer) && answer.status < 400
    ? HttpServerResponse.empty({ headers: Headers.remove(answer.headers, ["content-type", "content-length"]) })
    : answer

export function serve<Group extends HttpApiGroup.HttpApiGroup.Any, Made extends Handlers<Group>, E, R>(
  handled: HandledGroup<Group, Made, E, R>
): Served<Group, Made, E, R>
export function serve<E, R>({
  group,
  handlers
}: HandledGroup<AnyGroup, Readonly<Record<string, OperationHandler<AnyGroup, string, never>>>, E, R>) {
  return HttpApiBuilder.group(BaseApi.add(group), group.identifier, (served) =>
    Effect.map(handlers, (operations) => {
      const all = Object.entries(operations).reduce((before, [name, run]) => {
        const { successSchema } = group.endpoints[name] ?? {}
        const answersNothing = successSchema !== undefined && SchemaAST.isVoidKeyword(successSchema.ast)
        return before.handle(name, answersNothing ? (request) => Effect.map(run(request), withoutBody) : run)
      }, served)
      // By their type, the operations are the whole group's
      return all as HttpApiBuilder.Handlers<BaseError, never, never>
    })
  )
}

/** Serves a group whose operations nothing else runs. */
export const serving = <
  Group extends HttpApiGroup.HttpApiGroup.Any,
  const Made extends Handlers<Group>,
  Services,
  E,
  R
>(
  group: Group,
  services: Effect.Effect<Services, E, R>,
  operations: (services: Services) => Made
): Served<Group, Made, E, R> => serve(handlersOf(group, services, operations))
