import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "@effect/platform"
import { Schema } from "effect"
import { DeliveriesApi } from "../../destinations/deliveries/Api.ts"
import { EndpointsApi } from "../../destinations/endpoints/Api.ts"
import { EventReplaysApi } from "../../destinations/event-replays/Api.ts"
import { EventStreamApi } from "../../destinations/event-streams/Api.ts"
import { EventTriggersApi } from "../../destinations/event-triggers/Api.ts"
import { EventsApi } from "../../destinations/events/Api.ts"
import { RecoveriesApi } from "../../destinations/recoveries/Api.ts"
import { StatisticsApi } from "../../destinations/statistics/Api.ts"
import { documentWebhooks } from "../../events/OpenApiWebhooks.ts"
import { AuditApi } from "../../identity/audit/Api.ts"
import { CurrentKeyApi } from "../../identity/current-key/Api.ts"
import { InvitationApi, InvitationsApi } from "../../identity/invitations/Api.ts"
import { KeysApi } from "../../identity/keys/Api.ts"
import { MembersApi } from "../../identity/members/Api.ts"
import { OrganizationsApi } from "../../identity/organizations/Api.ts"
import { ReturnUrlsApi } from "../../identity/return-urls/Api.ts"
import { SessionApi, SignInApi } from "../../identity/sign-in/Api.ts"
import { InboundApi } from "../../inbound/Api.ts"
import { ProviderApi } from "../../payments/Api.ts"
import { AccountPagesApi } from "../../payments/account-pages/Api.ts"
import { PayPagesApi } from "../../payments/checkout-pages/PayApi.ts"
import { AccountConnectionApi } from "../../payments/connecting/Api.ts"
import { ProductImagesApi, PublicImagesApi } from "../../payments/images/Api.ts"
import { errorSchema, ServiceUnavailable } from "../../platform/errors/Errors.ts"
import { BaseApi } from "../../platform/kit/BaseApi.ts"
import { described } from "../../platform/kit/Request.ts"
import { completed } from "./Document.ts"
import { type Operation, operationsOf } from "./Operations.ts"

const introduction = `Payments on top of one connected provider account per organization and environment, and signed webhook events.

**Keys.** Send an API key in the header \`x-api-key\`. It belongs to one organization, whose id is in every path, and to one environment: \`pk_test_…\` is the sandbox, \`pk_live_…\` moves money. Keep it on your server.

**First payment.** Create a product, a price for it, and a checkout session with that price; send the payer to the session's \`url\`. The examples below work unchanged in the sandbox, with your organization's id and the ids that the previous calls returned.

**Confirmation.** Neither opening the page nor returning from it confirms a payment. The signed event \`payment.succeeded\` does: register an endpoint, verify each delivery's signature, and deduplicate by the event's \`id\`. All events and their headers are under **Webhooks**; their JSON Schemas are at \`/schemas/events.json\`.

**Repeats.** Operations that move money or create something need an \`Idempotency-Key\`: a new one per intended effect, the same one when you repeat after a lost answer.

**Guides.** [The guides](/docs) show how to start, receive events and match them to orders.

**Errors.** Every failure answers \`{error, code, fields, requestId}\`. Decide by \`code\`; [the error reference](/docs/errors) says what to do about each.

**Compatibility.** Answers and events may get further fields; accept them. Unknown fields in requests are refused. The API's version is in its paths, \`/v2\`; this document's is the service's.`

const Health = <const State extends "live" | "ready">(state: State) =>
  Schema.Struct({
    status: described(Schema.Literal(state), `\`${state}\`: any other state is another status code`)
  }).annotations({ identifier: state === "live" ? "HealthLiveResult" : "HealthReadyResult" })

/** Health checks: whether the process is alive, and whether it can serve. */
export class HealthApi extends HttpApiGroup.make("health")
  .annotate(OpenApi.Description, "Liveness and readiness of the process")
  .add(
    HttpApiEndpoint.get("live", "/health/live")
      .addSuccess(Health("live"))
      .addError(errorSchema(ServiceUnavailable))
      .annotate(OpenApi.Summary, "Check that the process is up and its worker makes progress")
  )
  .add(
    HttpApiEndpoint.get("ready", "/health/ready")
      .addSuccess(Health("ready"))
      .addError(errorSchema(ServiceUnavailable))
      .annotate(OpenApi.Summary, "Check that the service can serve, by asking the database")
  ) {}

/** The API with all its groups, before its OpenAPI document is completed. */
class UndocumentedApi extends BaseApi.addHttpApi(ProviderApi)
  .add(ProductImagesApi)
  .add(EndpointsApi)
  .add(DeliveriesApi)
  .add(RecoveriesApi)
  .add(EventStreamApi)
  .add(EventTriggersApi)
  .add(EventsApi)
  .add(EventReplaysApi)
  .add(StatisticsApi)
  .add(AuditApi)
  .add(SignInApi)
  .add(SessionApi)
  .add(OrganizationsApi)
  .add(MembersApi)
  .add(InvitationsApi)
  .add(InvitationApi)
  .add(KeysApi)
  .add(ReturnUrlsApi)
  .add(AccountConnectionApi)
  .add(AccountPagesApi)
  .add(CurrentKeyApi)
  .add(PayPagesApi)
  .add(PublicImagesApi)
  .add(InboundApi)
  .add(HealthApi)
  .annotate(OpenApi.Title, "connected-payments")
  // The package's version: the API's own is in its paths
  .annotate(OpenApi.Version, "0.1.0")
  .annotate(OpenApi.Description, introduction) {}

export const operations: ReadonlyArray<Operation> = operationsOf(UndocumentedApi)

/**
 * The whole HTTP contract: paths, schemas, permissions and errors of every operation. Imports no server code, so that a
 * client, the documents and the tests need nothing else.
 */
export class Api extends UndocumentedApi.annotate(OpenApi.Transform, (spec) =>
  completed(operations, documentWebhooks(spec))
) {}
