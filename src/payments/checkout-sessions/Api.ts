import { OpenApi } from "@effect/platform"
import { Schema } from "effect"
import { familiar } from "../../platform/bounds/Rules.ts"
import { errorSchema, PermissionDenied } from "../../platform/errors/Errors.ts"
import { createdFields, described, optional, pageFields, strict } from "../../platform/kit/Request.ts"
import {
  NeededCalls,
  providerAction,
  providerCreate,
  providerGet,
  providerGroup,
  providerLineItems,
  providerList
} from "../Endpoints.ts"
import { ofPaymentFields, ProviderText, payerOf, Quantity, referenceTo } from "../Schemas.ts"
import { CheckoutMetadata } from "./Metadata.ts"

const LineItem = Schema.Struct({ price: referenceTo("price"), quantity: Quantity }).annotations({
  identifier: "CreateCheckoutSessionLineItemsItem",
  ...familiar({ price_data: "create the price first, by `POST …/provider/prices`, and send its id as `price`" })
})

const returnPages =
  "the pages that payers return to are set beforehand, by an owner or admin (`PUT /identity/return-urls`) or by the operator"

const collected = "what payers are asked for is set in `collect` of a checkout page, `POST …/provider/checkout-pages`"

/** Body of `POST P/checkout/sessions` (contract 4.7). Return and cancel URLs are set beforehand (4.3). */
export const CreateCheckoutSession = strict(
  Schema.Struct({
    mode: described(
      Schema.Literal("payment", "subscription").annotations({ identifier: "CreateCheckoutSessionMode" }),
      "`payment` for a single payment, `subscription` for a recurring one"
    ),
    line_items: described(
      Schema.Array(LineItem).pipe(Schema.minItems(1), Schema.maxItems(100)),
      "In the mode `subscription` at most 20 with recurring prices, and 20 with others, which are paid once"
    ),
    client_reference_id: optional(ProviderText(200), "Your own reference of the order"),
    allow_promotion_codes: optional(Schema.Boolean, "Whether payers can enter a promotion code"),
    metadata: optional(CheckoutMetadata)
  }).annotations({
    identifier: "CreateCheckoutSession",
    ...familiar({
      success_url: returnPages,
      cancel_url: returnPages,
      return_url: returnPages,
      custom_fields: collected,
      phone_number_collection: collected,
      shipping_address_collection: collected,
      customer: "payers enter their address on the page",
      customer_email: "payers enter their address on the page",
      payment_method_types: "the page offers what the account's owner has activated at the provider"
    })
  })
)
export type CreateCheckoutSession = typeof CreateCheckoutSession.Type

export const ListCheckoutSessions = strict(
  Schema.Struct({
    ...pageFields,
    ...createdFields,
    payment_intent: ofPaymentFields.payment_intent,
    status: optional(
      Schema.Literal("open", "complete", "expired"),
      "Only sessions with this status; a complete one may still await its payment"
    )
  })
)
export type ListCheckoutSessions = typeof ListCheckoutSessions.Type

export class CheckoutSessionsApi extends providerGroup(
  "checkoutSessions",
  "Checkout sessions on the organization's connected account"
)
  .add(
    providerCreate("/checkout/sessions", "payments:write", "Create a checkout session")
      .setPayload(CreateCheckoutSession)
      .addError(errorSchema(PermissionDenied))
      .annotate(
        OpenApi.Description,
        "Returns the session with its `url`, a page that is only for the payer; `GET …/line-items` lists what it sells. A recurring price (mode `subscription`) also needs the permission `subscriptions:write`; its trial is passed on. `metadata` is copied to the payment or the subscription. Opening the page or returning from it confirms nothing: wait for the events."
      )
  )
  .add(
    providerList("/checkout/sessions", "payments:read", "List checkout sessions")
      .setUrlParams(ListCheckoutSessions)
      .annotate(OpenApi.Description, payerOf("`customer_details` and `customer_email`"))
  )
  .add(
    providerGet("/checkout/sessions/:id", "payments:read", "Read a checkout session").annotate(
      OpenApi.Description,
      `${payerOf("`customer_details` and `customer_email`")} The answers to \`custom_fields\`, which you asked for, are always there.`
    )
  )
  .add(
    providerLineItems("/checkout/sessions/:id/line-items", "payments:read", "List what a checkout session sells")
      .annotate(NeededCalls, ["listSessionLines"])
      .annotate(OpenApi.Description, "In the order of the session's `line_items`, each with its price.")
  )
  .add(
    providerAction("expire", "/checkout/sessions/:id/expire", "payments:write", "Expire a checkout session").annotate(
      OpenApi.Description,
      "The page can't be paid from then on; there is no body. Expiring an expired session changes nothing and returns it as it is. A `complete` session is refused with `provider_invalid_request_error`: the payer was faster. Read it, and refund what was paid."
    )
  ) {}
