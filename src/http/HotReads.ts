import { type HttpServerRequest, HttpServerResponse } from "@effect/platform"
import { Effect, Option, Schema } from "effect"
import { operations } from "../contract/Api.ts"
import { matcher, type Operation } from "../contract/Operations.ts"
import { DeliveryPath } from "../deliveries/api/Api.ts"
import { Deliveries } from "../deliveries/api/Deliveries.ts"
import { Events } from "../deliveries/api/Events.ts"
import { EventPath } from "../deliveries/api/EventsApi.ts"
import type { ApiError } from "../errors/Errors.ts"
import { Authenticator } from "../identity/AuthenticationLive.ts"
import type { PrincipalShape } from "../identity/Principal.ts"

/**
 * Reads that the edge serves itself, by the same authentication and the same services as the router's handlers: they are
 * what integrators ask for most, and without the router and the platform's handling such a request costs a fifth less.
 * Only requests whose path leaves nothing to judge are served here; every other one goes the usual way, which refuses it.
 */

type Serving = Effect.Effect<HttpServerResponse.HttpServerResponse, ApiError, HttpServerRequest.HttpServerRequest>

/** What a path may hold that has to be judged: a query, escapes, a slash at its end. */
const notPlain = /[?;#%]|\/$/

export interface HotRead {
  readonly operation: Operation
  readonly serve: Serving
}

type Handler = (
  params: Record<string, string>
) => ((principal: PrincipalShape) => Effect.Effect<unknown, ApiError>) | undefined

const handler = <Path, Sent>(
  schema: Schema.Schema<Path, Sent>,
  read: (principal: PrincipalShape, path: Path) => Effect.Effect<unknown, ApiError>
): Handler => {
  const decode = Schema.decodeUnknownOption(schema)
  return (params) =>
    Option.getOrUndefined(Option.map(decode(params), (path) => (principal: PrincipalShape) => read(principal, path)))
}

/** Names of the operations that are hot reads, with the parameters that their services take. */
const makeHandlers = Effect.map(Effect.all([Deliveries, Events]), ([deliveries, events]) => ({
  "deliveries.get": handler(DeliveryPath, (principal, { id }) => deliveries.get(principal, id)),
  "events.get": handler(EventPath, (principal, { id }) => events.get(principal, id))
}))

/**
 * Finds the hot read that a GET is for: undefined if it is for none, or if its path or query has to be judged.
 */
export const hotReads = Effect.map(Effect.all([makeHandlers, Authenticator]), ([handlers, authenticate]) => {
  const named = new Map<string, Handler>(Object.entries(handlers))
  const handlerOf = ({ group, name }: Operation) => named.get(`${group}.${name}`)
  const at = matcher(operations.filter((operation) => handlerOf(operation) !== undefined))
  return ({ method, url }: HttpServerRequest.HttpServerRequest): HotRead | undefined => {
    if (method !== "GET" || notPlain.test(url)) return undefined
    const [found] = at(url)
    const read = found === undefined ? undefined : handlerOf(found.operation)?.(found.params)
    if (found === undefined || read === undefined) return undefined
    const routed = { route: found.operation, params: found.params }
    return {
      operation: found.operation,
      // As the router does for its handlers
      serve: Effect.interruptible(
        // JSON writes times as the schemas do; tests compare both ways
        Effect.map(Effect.flatMap(authenticate(routed), read), (answer) => HttpServerResponse.unsafeJson(answer))
      )
    }
  }
})
