import { HttpApi, HttpApiEndpoint, HttpApiGroup, OpenApi } from "@effect/platform"
import { Schema } from "effect"
import { DeliveriesApi } from "./deliveries/Api.ts"
import { RecoveriesApi } from "./deliveries/RecoveriesApi.ts"
import {
  errorSchema,
  HeadersTooLarge,
  InternalError,
  MethodNotAllowed,
  PayloadTooLarge,
  RequestTimeout,
  ServiceUnavailable,
  UnsupportedMediaType,
  ValidationFailed
} from "./Errors.ts"
import { EndpointsApi } from "./endpoints/Api.ts"
import { documentWebhooks } from "./events/OpenApiWebhooks.ts"
import { introduction } from "./Introduction.ts"
import { AuditApi } from "./identity/AuditApi.ts"
import { InvitationApi, InvitationsApi } from "./identity/InvitationsApi.ts"
import { KeysApi } from "./identity/KeysApi.ts"
import { MembersApi } from "./identity/MembersApi.ts"
import { OrganizationsApi } from "./identity/OrganizationsApi.ts"
import { SessionApi } from "./identity/SessionApi.ts"
import { SignInApi } from "./identity/SignInApi.ts"
import { ProductImagesApi, PublicImagesApi } from "./images/Api.ts"
import { InboundApi } from "./inbound/Api.ts"
import { documentOperations, type Operation, operationsOf } from "./Operations.ts"
import { AccountApi } from "./provider/AccountApi.ts"
import { CheckoutSessionsApi } from "./provider/CheckoutSessionsApi.ts"
import { PaymentLinksApi } from "./provider/PaymentLinksApi.ts"
import { ChargesApi, PaymentIntentsApi } from "./provider/PaymentsApi.ts"
import { PayoutsApi } from "./provider/PayoutsApi.ts"
import { PricesApi } from "./provider/PricesApi.ts"
import { ProductsApi } from "./provider/ProductsApi.ts"
import { PromotionCodesApi } from "./provider/PromotionCodesApi.ts"
import { RefundsApi } from "./provider/RefundsApi.ts"
import { SubscriptionsApi } from "./provider/SubscriptionsApi.ts"
import { TransactionsApi } from "./provider/TransactionsApi.ts"

/** Whether the process lives, and whether it can serve. */
export class HealthApi extends HttpApiGroup.make("health")
  .add(
    HttpApiEndpoint.get("live", "/health/live")
      .addSuccess(Schema.Struct({ status: Schema.Literal("live") }))
      .annotate(OpenApi.Summary, "Is the process alive?")
  )
  .add(
    HttpApiEndpoint.get("ready", "/health/ready")
      .addSuccess(Schema.Struct({ status: Schema.Literal("ready") }))
      .addError(errorSchema(ServiceUnavailable))
      .annotate(OpenApi.Summary, "Can the service serve? Asks the database")
  ) {}

class Contract extends HttpApi.make("connected-payments")
  .add(ProductsApi)
  .add(PricesApi)
  .add(CheckoutSessionsApi)
  .add(PromotionCodesApi)
  .add(PaymentLinksApi)
  .add(ChargesApi)
  .add(PaymentIntentsApi)
  .add(RefundsApi)
  .add(SubscriptionsApi)
  .add(AccountApi)
  .add(TransactionsApi)
  .add(PayoutsApi)
  .add(ProductImagesApi)
  .add(EndpointsApi)
  .add(DeliveriesApi)
  .add(RecoveriesApi)
  .add(AuditApi)
  .add(SignInApi)
  .add(SessionApi)
  .add(OrganizationsApi)
  .add(MembersApi)
  .add(InvitationsApi)
  .add(InvitationApi)
  .add(KeysApi)
  .add(PublicImagesApi)
  .add(InboundApi)
  .add(HealthApi)
  .addError(errorSchema(ValidationFailed))
  .addError(errorSchema(MethodNotAllowed))
  .addError(errorSchema(RequestTimeout))
  .addError(errorSchema(PayloadTooLarge))
  .addError(errorSchema(UnsupportedMediaType))
  .addError(errorSchema(HeadersTooLarge))
  .addError(errorSchema(InternalError))
  .annotate(OpenApi.Title, "connected-payments")
  .annotate(OpenApi.Version, "2")
  .annotate(OpenApi.Description, introduction) {}

/** Every operation of the contract, with the permission that it needs. */
export const operations: ReadonlyArray<Operation> = operationsOf(Contract)

/**
 * The whole HTTP contract: paths, schemas, permissions and errors of every operation. Imports no server code, so that
 * a client, the documents and the tests can stand on it alone.
 */
export class Api extends Contract.annotate(OpenApi.Transform, (spec) =>
  documentWebhooks(documentOperations(operations)(spec))
) {}
