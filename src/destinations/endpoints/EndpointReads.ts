import type { SqlError } from "@effect/sql"
import { Effect, Option } from "effect"
import { ResourceNotFound, unknownCursor } from "../../platform/errors/Errors.ts"
import type { EndpointId } from "../../platform/kit/Ids.ts"
import { defaultPageSize, pageOf } from "../../platform/kit/Request.ts"
import type { Tenant } from "../../platform/kit/Tenant.ts"
import { orUnavailable } from "../../platform/storage/Database.ts"
import { type makeEndpointsRepo, noEndpoint } from "./EndpointsRepo.ts"

export interface ListQuery<Id> {
  readonly limit?: number
  readonly starting_after?: Id
}

interface Parts<Id, Row> {
  readonly endpoints: Effect.Effect.Success<typeof makeEndpointsRepo>
  readonly repo: {
    readonly find: (
      tenant: Tenant,
      endpointId: EndpointId,
      id: Id
    ) => Effect.Effect<Option.Option<Row>, SqlError.SqlError>
    readonly list: (
      tenant: Tenant,
      endpointId: EndpointId,
      query: ListQuery<Id>,
      limit: number
    ) => Effect.Effect<ReadonlyArray<Row>, SqlError.SqlError>
  }
}

export const missingOf = (noun: string) => () =>
  new ResourceNotFound({ message: `There is no such ${noun} of this endpoint.` })

/** The reads of what belongs to an endpoint: one by its id, and a page of them, newest first. */
export const endpointReads = <Id extends string, Row>(
  service: string,
  { endpoints, repo }: Parts<Id, Row>,
  noun: string
) => ({
  get: Effect.fn(`${service}.get`)(function* (tenant: Tenant, endpointId: EndpointId, id: Id) {
    return yield* Effect.flatMap(repo.find(tenant, endpointId, id), Effect.mapError(missingOf(noun)))
  }, orUnavailable),

  /** Refuses a `starting_after` that is not one of them. */
  list: Effect.fn(`${service}.list`)(function* (tenant: Tenant, endpointId: EndpointId, query: ListQuery<Id>) {
    if (!(yield* endpoints.existed(tenant, endpointId))) return yield* noEndpoint()
    const { limit = defaultPageSize, starting_after: after } = query
    if (after !== undefined && Option.isNone(yield* repo.find(tenant, endpointId, after))) return yield* unknownCursor()
    return pageOf(yield* repo.list(tenant, endpointId, query, limit + 1), limit)
  }, orUnavailable)
})
