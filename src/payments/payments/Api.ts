import { OpenApi } from "@effect/platform"
import { Schema } from "effect"
import { BooleanFromQuery, createdFields, optional, pageFields, strict } from "../../platform/kit/Request.ts"
import { providerCreate, providerGet, providerGroup, providerList } from "../Endpoints.ts"
import { amountRemark, Metadata, maximumAmount, ofPaymentFields, payerOf, referenceTo } from "../Schemas.ts"

/** Query of `GET P/charges` and `GET P/customers` (contract 4.4). */
export const ListPayments = strict(Schema.Struct({ ...pageFields, ...createdFields }))
export type ListPayments = typeof ListPayments.Type

/** Query of `GET P/payment-intents`. */
export const ListPaymentIntents = strict(
  Schema.Struct({
    ...pageFields,
    ...createdFields,
    sale: optional(BooleanFromQuery, "true adds to each payment what was sold; see above")
  })
)

export class ChargesApi extends providerGroup("charges", "Charges on the organization's connected account")
  .add(
    providerList("/charges", "payments:read", "List charges")
      .setUrlParams(ListPayments)
      .annotate(OpenApi.Description, payerOf("`billing_details` and `receipt_email`"))
  )
  .add(
    providerGet("/charges/:id", "payments:read", "Read a charge").annotate(
      OpenApi.Description,
      payerOf("`billing_details` and `receipt_email`")
    )
  ) {}

export class PaymentIntentsApi extends providerGroup(
  "paymentIntents",
  "Payment intents on the organization's connected account"
)
  .add(
    providerList("/payment-intents", "payments:read", "List payment intents")
      .setUrlParams(ListPaymentIntents)
      .annotate(
        OpenApi.Description,
        `Without their client secrets. ${payerOf("`receipt_email` and `shipping`")} With \`sale=true\`, each has a further field \`sale\` with the \`checkout_session\`, its \`description\` (what it sells, in words), \`client_reference_id\` and \`checkout_page\`; null if this service did not create the session, or more than 90 days ago.`
      )
  )
  .add(
    providerGet("/payment-intents/:id", "payments:read", "Read a payment intent").annotate(
      OpenApi.Description,
      `Without its client secret. ${payerOf("`receipt_email` and `shipping`")}`
    )
  ) {}

export const CreateRefund = strict(
  Schema.Struct({
    payment_intent: optional(referenceTo("payment_intent"), "The payment to refund; or else `charge`"),
    charge: optional(referenceTo("charge"), "The charge to refund; or else `payment_intent`"),
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
          return [{ path: ["charge"], message: "is not accepted together with payment_intent: send one of the two" }]
        }
        return charge === undefined && payment_intent === undefined
          ? [{ path: ["payment_intent"], message: "is missing; a refund needs it or charge" }]
          : []
      })
    )
    .annotations({ identifier: "CreateRefund" })
)
export type CreateRefund = typeof CreateRefund.Type

export const ListOfPayments = strict(Schema.Struct({ ...pageFields, ...createdFields, ...ofPaymentFields }))
export type ListOfPayments = typeof ListOfPayments.Type

export class RefundsApi extends providerGroup("refunds", "Refunds on the organization's connected account")
  .add(
    providerCreate("/refunds", "payments:write", "Refund a payment, in part or in full")
      .setPayload(CreateRefund)
      .annotate(
        OpenApi.Description,
        "Name the payment by either `payment_intent` or `charge`. Without `amount`, everything that has not been refunded yet is refunded. The answer is only the beginning: the status `succeeded` means that the money is on its way to the payer, and it can still become `failed` days later. The event `payment.refunded` says that a refund was created, not that it arrived. Read the refund until its `status` is final: `pending` and `requires_action` are not; `failed` and `canceled` mean that the money is back in the balance, and owners and admins get a mail about them."
      )
  )
  .add(providerList("/refunds", "payments:read", "List refunds").setUrlParams(ListOfPayments))
  .add(providerGet("/refunds/:id", "payments:read", "Read a refund")) {}

const withoutEvidence =
  "Without the `evidence`, which can name the payer, unless the credential also has the permission `customers:read`."

export class DisputesApi extends providerGroup(
  "disputes",
  "Disputes of payments on the organization's connected account"
)
  .add(
    providerList("/disputes", "payments:read", "List disputes")
      .setUrlParams(ListOfPayments)
      .annotate(OpenApi.Description, withoutEvidence)
  )
  .add(
    providerGet("/disputes/:id", "payments:read", "Read a dispute").annotate(OpenApi.Description, withoutEvidence)
  ) {}

const reducedFields =
  "With `payments:read` alone, only `id`, `object`, `created`, `currency`, `deleted`, `delinquent` and `livemode` are shown. Name, addresses, e-mail, telephone, metadata and all other fields also need the permission `customers:read`, which no wildcard includes and which only owners and admins have and can grant."

export class CustomersApi extends providerGroup("customers", "Customers on the organization's connected account")
  .add(
    providerList("/customers", "payments:read", "List customers, without personal data unless it was granted")
      .setUrlParams(ListPayments)
      .annotate(OpenApi.Description, reducedFields)
  )
  .add(
    providerGet(
      "/customers/:id",
      "payments:read",
      "Read a customer, without personal data unless it was granted"
    ).annotate(
      OpenApi.Description,
      `${reducedFields} A customer that was deleted at the provider has \`deleted: true\`.`
    )
  ) {}
