import * as OpenApi from "@effect/platform/OpenApi"
import { Schema } from "effect"
import {
  EndpointDeleted,
  errorSchema,
  errorSchemas,
  RecoveryInProgress,
  ResourceNotFound
} from "../../platform/errors/Errors.ts"
import { EndpointId, RecoveryId } from "../../platform/kit/Ids.ts"
import { Instant } from "../../platform/kit/Instant.ts"
import {
  CreatedAt,
  described,
  listOf,
  mostCounted,
  optional,
  pageFields,
  strict,
  withStatus
} from "../../platform/kit/Request.ts"
import {
  EndpointPath,
  integrationGet,
  integrationGroup,
  integrationPost,
  keyErrors
} from "../endpoints/Integrations.ts"

/** The re-send of everything that failed definitively at an endpoint since a time. */
export const Recovery = Schema.Struct({
  id: RecoveryId,
  endpointId: EndpointId,
  since: described(Schema.Date, "The beginning of its period, in ISO 8601"),
  state: described(
    Schema.Literal("running", "finished").annotations({ identifier: "RecoveryState" }),
    "`running` until all failed deliveries were examined, then `finished`"
  ),
  total: described(
    Schema.Int,
    `Deliveries that had failed when the recovery was started. Counted up to ${mostCounted} at first; beyond that, it is the number handled so far, and exact once the recovery has finished`
  ),
  queued: described(Schema.Int, "How many of them have been queued for one more attempt so far"),
  skipped: described(
    Schema.Int,
    "How many could not be re-sent: 12 attempts, older than 72 hours, or no longer failed"
  ),
  createdAt: CreatedAt,
  finishedAt: described(Schema.NullOr(Schema.Date), "When it ended, in ISO 8601; null until then")
}).annotations({ identifier: "Recovery" })
export type Recovery = typeof Recovery.Type

export const RecoveryList = listOf("RecoveryList", Recovery)

export const StartRecovery = strict(
  Schema.Struct({
    since: described(
      Instant,
      "Deliveries that failed at this time or later are re-sent; at most 72 hours back, not in the future"
    )
  }).annotations({ identifier: "StartRecovery" })
)

export const ListRecoveries = strict(
  Schema.Struct({
    limit: pageFields.limit,
    starting_after: optional(RecoveryId, "The last id of the previous page")
  })
)
export type ListRecoveries = typeof ListRecoveries.Type

export class RecoveriesApi extends integrationGroup("recoveries", "Re-sending all failed deliveries to an endpoint")
  .add(
    integrationPost("start", "/endpoints/:id/recover", "Re-send all deliveries to an endpoint that failed since a time")
      .setPath(EndpointPath)
      .setPayload(StartRecovery)
      .addSuccess(withStatus(202, Recovery))
      .addError(errorSchemas(EndpointDeleted, RecoveryInProgress))
      .addError(keyErrors)
      .annotate(
        OpenApi.Description,
        "Runs in the background, under the conditions of a single re-send; synthetic tests are left out. An endpoint has one running recovery: a repeated request returns it, unless it does not reach back as far."
      )
  )
  .add(
    integrationGet("list", "/endpoints/:id/recoveries", "List an endpoint's recoveries, newest first")
      .setPath(EndpointPath)
      .setUrlParams(ListRecoveries)
      .addSuccess(RecoveryList)
  )
  .add(
    integrationGet("get", "/endpoints/:id/recoveries/:recoveryId", "Read the progress of a recovery")
      .setPath(Schema.Struct({ ...EndpointPath.fields, recoveryId: RecoveryId }))
      .addSuccess(Recovery)
  )
  .addError(errorSchema(ResourceNotFound)) {}
