import { HttpApiGroup, OpenApi } from "@effect/platform"
import { Schema } from "effect"
import { Authentication } from "../../identity/Authentication.ts"
import { createdFields, optional, pageFields, strict } from "../../kit/Request.ts"
import { providerCreate, providerGet, providerList } from "../Endpoints.ts"
import { providerErrors } from "../ProviderErrors.ts"
import { amountRemark, Metadata, maximumAmount, ofPaymentFields, Reference } from "../Schemas.ts"

/** Body of `POST P/refunds`: names either the payment intent or the charge. */
export const CreateRefund = strict(
  Schema.Struct({
    payment_intent: optional(Reference, "The payment to refund; or else `charge`"),
    charge: optional(Reference, "The charge to refund; or else `payment_intent`"),
    amount: optional(
      Schema.Int.pipe(Schema.between(1, maximumAmount)).annotations({
        ...amountRemark,
        description: "Smallest currency unit. Default: all that has not been refunded yet"
      })
    ),
    reason: optional(
      Schema.Literal("duplicate", "fraudulent", "requested_by_customer").annotations({
        identifier: "CreateRefundReason"
      }),
      "For the provider's reports and the payer's bank; a `fraudulent` payment's card is blocked at the provider"
    ),
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
    providerCreate("/refunds", "payments:write", "Refund a payment, in part or in full")
      .setPayload(CreateRefund)
      .annotate(
        OpenApi.Description,
        "Name the payment by either `payment_intent` or `charge`. Without `amount`, everything that has not been refunded yet is refunded. The answer is a beginning: only the status `succeeded` says that the money is on its way to the payer, and it can still become `failed` days later. The event `payment.refunded` tells that a refund was made, not that it arrived. Read it until its `status` is final: `pending` and `requires_action` wait, `failed` and `canceled` mean that the money is in the balance again. Owners and admins get a mail about those."
      )
  )
  .add(providerList("/refunds", "payments:read", "List refunds").setUrlParams(ListRefunds))
  .add(providerGet("/refunds/:id", "payments:read", "Read a refund"))
  .addError(providerErrors)
  .middleware(Authentication)
  .prefix("/v2/organizations/:organizationId/provider")
  .annotate(OpenApi.Description, "Refunds on the organization's connected account") {}
