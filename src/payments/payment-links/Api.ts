import { OpenApi } from "@effect/platform"
import { Schema } from "effect"
import { errorSchema, PermissionDenied } from "../../platform/errors/Errors.ts"
import { BooleanFromQuery, described, optional, pageFields, strict } from "../../platform/kit/Request.ts"
import { CheckoutMetadata, CheckoutMetadataChanges } from "../checkout-sessions/Metadata.ts"
import {
  NeededCalls,
  providerCreate,
  providerGet,
  providerGroup,
  providerLineItems,
  providerList,
  providerUpdate
} from "../Endpoints.ts"
import { ProviderText, Quantity, referenceTo } from "../Schemas.ts"

/** Whether the payer may change the quantity, and its bounds (the provider's default: 0 to 99). */
const AdjustableQuantity = Schema.Struct({
  enabled: described(Schema.Boolean, "False is the same as leaving the object out"),
  minimum: optional(Schema.Int.pipe(Schema.between(0, 999_998)), "The fewest that payers can choose"),
  maximum: optional(Quantity, "The most that payers can choose")
})
  .pipe(
    Schema.filter(({ maximum = 99, minimum = 0 }) =>
      minimum <= maximum
        ? []
        : [{ path: ["minimum"], message: "must not be greater than the maximum, which is 99 if none is sent" }]
    )
  )
  .annotations({ identifier: "CreatePaymentLinkLineItemsItemAdjustableQuantity" })

const LinkItem = Schema.Struct({
  price: referenceTo("price"),
  quantity: Quantity,
  adjustable_quantity: optional(AdjustableQuantity, "Lets the payer change the quantity, within bounds")
}).annotations({ identifier: "CreatePaymentLinkLineItemsItem" })

const Restrictions = Schema.Struct({
  completed_sessions: described(
    Schema.Struct({ limit: described(Quantity, "After this many payments the link closes") }).annotations({
      identifier: "CreatePaymentLinkRestrictionsCompletedSessions"
    }),
    "Closes the link after a number of payments"
  )
}).annotations({
  identifier: "CreatePaymentLinkRestrictions",
  description: "The number of sales that closes the link"
})

const HostedConfirmation = Schema.Struct({
  custom_message: described(ProviderText(500), "The message on that page")
}).annotations({
  identifier: "CreatePaymentLinkAfterCompletionHostedConfirmation",
  description: "The provider's own page"
})

const AfterCompletion = Schema.Struct({
  type: described(Schema.Literal("hosted_confirmation"), "Always `hosted_confirmation`: the provider's own page"),
  hosted_confirmation: optional(HostedConfirmation)
}).annotations({ identifier: "CreatePaymentLinkAfterCompletion", description: "Shown after the payment" })

export const CreatePaymentLink = strict(
  Schema.Struct({
    line_items: described(
      Schema.Array(LinkItem).pipe(Schema.minItems(1), Schema.maxItems(20)),
      "The prices that are sold, each with its quantity"
    ),
    allow_promotion_codes: optional(Schema.Boolean, "Whether payers can enter a promotion code"),
    restrictions: optional(Restrictions),
    inactive_message: optional(ProviderText(500), "Shown to those who open the link when it is closed"),
    after_completion: optional(AfterCompletion),
    metadata: optional(CheckoutMetadata)
  }).annotations({ identifier: "CreatePaymentLink" })
)
export type CreatePaymentLink = typeof CreatePaymentLink.Type

export const UpdatePaymentLink = strict(
  Schema.Struct({
    active: optional(Schema.Boolean, "False closes the link"),
    metadata: optional(CheckoutMetadataChanges)
  }).annotations({ identifier: "UpdatePaymentLink" })
)
export type UpdatePaymentLink = typeof UpdatePaymentLink.Type

export const ListPaymentLinks = strict(Schema.Struct({ ...pageFields, active: optional(BooleanFromQuery) }))
export type ListPaymentLinks = typeof ListPaymentLinks.Type

export class PaymentLinksApi extends providerGroup(
  "paymentLinks",
  "Payment links on the organization's connected account"
)
  .add(
    providerCreate("/payment-links", "payments:write", "Create a payment link")
      .setPayload(CreatePaymentLink)
      .addError(errorSchema(PermissionDenied))
      .annotate(
        OpenApi.Description,
        "A page that can be paid any number of times, or as often as `restrictions.completed_sessions.limit` says. A recurring price also needs the permission `subscriptions:write`; its trial is passed on. `metadata` is copied to the payments or subscriptions."
      )
  )
  .add(
    providerList("/payment-links", "payments:read", "List payment links, each with its items").setUrlParams(
      ListPaymentLinks
    )
  )
  .add(providerGet("/payment-links/:id", "payments:read", "Read a payment link, with its items"))
  .add(
    providerLineItems("/payment-links/:id/line-items", "payments:read", "List what a payment link sells")
      .annotate(NeededCalls, ["listLinkLines"])
      .annotate(OpenApi.Description, "In the order of the link's `line_items`, each with its price.")
  )
  .add(
    providerUpdate(
      "/payment-links/:id",
      "payments:write",
      "Activate or deactivate a payment link, or change its metadata"
    )
      .setPayload(UpdatePaymentLink)
      .addError(errorSchema(PermissionDenied))
      .annotate(
        OpenApi.Description,
        "Absent fields are unchanged, and `metadata` is merged. The metadata of a link created here is then copied to the payments or subscriptions of sessions opened later. Opening a closed link that sells a recurring price also needs the permission `subscriptions:write`."
      )
  ) {}
