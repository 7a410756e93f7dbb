import type { HttpApi, HttpApiEndpoint, HttpApiGroup } from "@effect/platform"
import type { SqlClient } from "@effect/sql"
import type { Principal } from "../identity/Principal.ts"
import type { BaseApi } from "../kit/BaseApi.ts"
import type { Idempotency } from "../kit/Idempotency.ts"
import type { Accounts } from "./Accounts.ts"

/** What an operation on the connected account may need of its surroundings: its caller, and the services around it. */
export type OperationContext = Principal | Accounts | Idempotency | SqlClient.SqlClient

/** The errors of any operation, whatever its group. */
type BaseError = typeof BaseApi extends HttpApi.HttpApi<infer _Id, infer _Groups, infer E, infer _R> ? E : never

type Named<Group, Name extends string> = HttpApiEndpoint.HttpApiEndpoint.WithName<
  HttpApiGroup.HttpApiGroup.Endpoints<Group>,
  Name
>

/** The names of a group's operations. */
export type OperationName<Group> = HttpApiEndpoint.HttpApiEndpoint.Name<HttpApiGroup.HttpApiGroup.Endpoints<Group>>

/** One operation of a group: from its declared, checked request to its declared answer and errors. */
export type Operation<Group, Name extends string> = HttpApiEndpoint.HttpApiEndpoint.Handler<
  Named<Group, Name>,
  HttpApiGroup.HttpApiGroup.Error<Group> | BaseError,
  OperationContext
>

/**
 * What each operation of a group does, by its name. The HTTP API and the tools of agents call the same function, so that
 * permissions, repeats, audit and what is remembered of a sale are the same (contract 5.7).
 */
export type Operations<Group> = { readonly [Name in OperationName<Group>]: Operation<Group, Name> }

/** The operations of a group, each checked against its declaration. */
export const operationsOf = <Group extends HttpApiGroup.HttpApiGroup.Any>(
  _group: Group,
  operations: Operations<Group>
): Operations<Group> => operations
