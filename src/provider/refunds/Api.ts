import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "@effect/platform"
import { Schema } from "effect"
import { Authentication } from "../../identity/Authentication.ts"
import { RequiredPermission } from "../../identity/keys/Permissions.ts"
import {
  IdempotencyHeaders,
  NoQuery,
  OrganizationPath,
  optional,
  ProviderObjectPath,
  pageFields,
  strict
} from "../../kit/Request.ts"
import { providerErrors } from "../ProviderErrors.ts"
import {
  amountRemark,
  createdFields,
  Metadata,
  maximumAmount,
  ofPaymentFields,
  ProviderObject,
  ProviderPage,
  Reference
} from "../Schemas.ts"

/** Body of `POST P/refunds`: names either the payment intent or the charge. */
export const CreateRefund = strict(
  Schema.Struct({
    payment_intent: optional(Reference.annotations({ description: "The payment to refund; or else `charge`" })),
    charge: optional(Reference.annotations({ description: "The charge to refund; or else `payment_intent`" })),
    amount: optional(
      Schema.Int.pipe(Schema.between(1, maximumAmount)).annotations({
        ...amountRemark,
        description: "Smallest currency unit. Default: all that has not been refunded yet"
      })
    ),
    reason: optional(Schema.Literal("duplicate", "fraudulent", "requested_by_customer")),
    metadata: optional(Metadata)
  })
    .pipe(
      Schema.filter(({ charge, payment_intent }) => {
        if (charge !== undefined && payment_intent !== undefined) {
          return [{ path: ["charge"], message: "is not taken together with payment_intent: send one of the two" }]
        }
        return charge === undefined && payment_intent === undefined
          ? [{ path: ["payment_intent"], message: "is missing; a refund needs it or charge" }]
          : []
      })
    )
    .annotations({ identifier: "CreateRefund" })
)
export type CreateRefund = typeof CreateRefund.Type

/** Query of `GET P/refunds`. */
export const ListRefunds = strict(Schema.Struct({ ...pageFields, ...createdFields, ...ofPaymentFields }))
export type ListRefunds = typeof ListRefunds.Type

/** Refunds of payments on the organization's connected account. */
export class RefundsApi extends HttpApiGroup.make("refunds")
  .add(
    HttpApiEndpoint.post("create", "/refunds")
      .setPath(OrganizationPath)
      .setUrlParams(NoQuery)
      .setHeaders(IdempotencyHeaders)
      .setPayload(CreateRefund)
      .addSuccess(ProviderObject)
      .annotate(RequiredPermission, "payments:write")
      .annotate(OpenApi.Summary, "Refund a payment, in part or in full")
      .annotate(
        OpenApi.Description,
        "Name the payment by either `payment_intent` or `charge`. Without `amount`, everything that has not been refunded yet is refunded. The answer is a beginning: only the status `succeeded` says that the money is on its way to the payer, and it can still become `failed` days later. The event `payment.refunded` tells that a refund was made, not that it arrived. Read it until its `status` is final: `pending` and `requires_action` wait, `failed` and `canceled` mean that the money is in the balance again. Owners and admins get a mail about those."
      )
  )
  .add(
    HttpApiEndpoint.get("list", "/refunds")
      .setPath(OrganizationPath)
      .setUrlParams(ListRefunds)
      .addSuccess(ProviderPage)
      .annotate(RequiredPermission, "payments:read")
      .annotate(OpenApi.Summary, "List refunds")
  )
  .add(
    HttpApiEndpoint.get("get", "/refunds/:id")
      .setPath(ProviderObjectPath)
      .setUrlParams(NoQuery)
      .addSuccess(ProviderObject)
      .annotate(RequiredPermission, "payments:read")
      .annotate(OpenApi.Summary, "Read a refund")
  )
  .addError(providerErrors)
  .middleware(Authentication)
  .prefix("/v2/organizations/:organizationId/provider")
  .annotate(OpenApi.Description, "Refunds on the organization's connected account") {}
