import { HttpApi, type HttpApiEndpoint, type HttpApiGroup, type HttpMethod, OpenApi } from "@effect/platform"
import { Array as Arr, Context, Option } from "effect"
import { type Credential, credentialsOf } from "../../identity/Authentication.ts"
import { type Permission, RequiredPermission } from "../../identity/keys/Permissions.ts"
import { NeededCalls } from "../../payments/Endpoints.ts"

/** The operations of an API as a list, for authentication, the documents and tests that cover all of them. */

export interface Operation {
  readonly group: string
  readonly name: string
  readonly method: string
  /** With its parameters as `:name`. */
  readonly path: string
  /** Undefined if no credential is needed. */
  readonly permission: Permission | undefined
  /** The provider's calls without which it is of no use. */
  readonly neededCalls: ReadonlyArray<string>
  /** Either of them will do; empty if none is needed. */
  readonly credentials: ReadonlyArray<Credential>
  readonly endpoint: HttpApiEndpoint.HttpApiEndpoint<string, HttpMethod.HttpMethod>
}

export const operationsOf = <Id extends string, Groups extends HttpApiGroup.HttpApiGroup.Any, E, R>(
  api: HttpApi.HttpApi<Id, Groups, E, R>
): ReadonlyArray<Operation> => {
  const operations: Array<Operation> = []
  HttpApi.reflect(api, {
    onGroup: () => {},
    onEndpoint: ({ endpoint, group, mergedAnnotations, middleware }) => {
      operations.push({
        group: group.identifier,
        name: endpoint.name,
        method: endpoint.method,
        path: endpoint.path,
        permission: Option.getOrUndefined(Context.getOption(mergedAnnotations, RequiredPermission)),
        neededCalls: Option.getOrElse(Context.getOption(mergedAnnotations, NeededCalls), () => []),
        credentials: [...middleware].flatMap((one) => credentialsOf.get(one) ?? []),
        endpoint
      })
    }
  })
  return operations
}

export const operationKey = (method: string, path: string): string => `${method} ${path}`

/**
 * Whether an operation takes a body: one with a schema, or bytes that its handler reads and its description declares.
 */
export const takesBody = ({ endpoint }: Operation): boolean =>
  Option.isSome(endpoint.payloadSchema) ||
  Option.exists(Context.getOption(endpoint.annotations, OpenApi.Override), (override) => "requestBody" in override)

interface Compiled {
  readonly operation: Operation
  readonly pattern: RegExp
  readonly names: ReadonlyArray<string>
}

const partsOf = (path: string): number => {
  let parts = 0
  for (let at = path.indexOf("/"); at !== -1 && at < path.length - 1; at = path.indexOf("/", at + 1)) {
    parts += 1
  }
  return parts
}

/**
 * Finds operations by a request's path, since the router does not report the methods that a path accepts. As in the
 * router, a parameter may be empty.
 */
export const matcher = (operations: ReadonlyArray<Operation>) => {
  const compiled = operations.map((operation): Compiled => {
    const names = [...operation.path.matchAll(/:(\w+)/g)].flatMap(([, name]) => (name === undefined ? [] : [name]))
    return { operation, names, pattern: new RegExp(`^${operation.path.replaceAll(/:\w+/g, "([^/]*)")}/?$`) }
  })
  // Runs for every request: most operations are ruled out by their number of parts
  const byLength = Arr.groupBy(compiled, ({ operation }) => String(partsOf(operation.path)))
  return (path: string): ReadonlyArray<{ readonly operation: Operation; readonly params: Record<string, string> }> =>
    (byLength[String(partsOf(path))] ?? []).flatMap(({ names, operation, pattern }) => {
      const match = pattern.exec(path)
      return match === null
        ? []
        : [{ operation, params: Object.fromEntries(names.map((name, index) => [name, match[index + 1] ?? ""])) }]
    })
}
