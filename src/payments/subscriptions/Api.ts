import { OpenApi } from "@effect/platform"
import { Schema } from "effect"
import { described, IdempotencyHeaders, optional, pageFields, strict } from "../../platform/kit/Request.ts"
import { providerAction, providerGet, providerGroup, providerList, providerUpdate } from "../Endpoints.ts"

/** Query of `GET P/subscriptions` (contract 4.4): without `status`, canceled ones are left out. */
export const ListSubscriptions = strict(
  Schema.Struct({
    ...pageFields,
    status: optional(
      Schema.Literal(
        "active",
        "all",
        "canceled",
        "ended",
        "incomplete",
        "incomplete_expired",
        "past_due",
        "paused",
        "trialing",
        "unpaid"
      ),
      "Only subscriptions with this status; `all` includes every status. Default: all but canceled ones"
    )
  })
)
export type ListSubscriptions = typeof ListSubscriptions.Type

export const UpdateSubscription = strict(
  Schema.Struct({
    cancel_at_period_end: described(
      Schema.Boolean,
      "true ends it with its current period; false undoes that until then"
    )
  }).annotations({ identifier: "UpdateSubscription" })
)
export type UpdateSubscription = typeof UpdateSubscription.Type

export class SubscriptionsApi extends providerGroup(
  "subscriptions",
  "Subscriptions on the organization's connected account"
)
  .add(
    providerList("/subscriptions", "payments:read", "List subscriptions")
      .setUrlParams(ListSubscriptions)
      .annotate(
        OpenApi.Description,
        "Without `status`, canceled subscriptions are left out. Each has all of its `items`."
      )
  )
  .add(providerGet("/subscriptions/:id", "payments:read", "Read a subscription"))
  .add(
    providerUpdate(
      "/subscriptions/:id",
      "subscriptions:write",
      "Cancel a subscription at the end of its period, or undo that"
    )
      .setHeaders(IdempotencyHeaders)
      .setPayload(UpdateSubscription)
      .annotate(
        OpenApi.Description,
        "With `cancel_at_period_end: true` the subscription stays as it is until `cancel_at`, and then ends without another invoice; only then is the event `subscription.canceled` sent. Until then `false` undoes it. Setting the current value changes nothing."
      )
  )
  .add(
    providerAction(
      "cancel",
      "/subscriptions/:id/cancel",
      "subscriptions:write",
      "Cancel a subscription at once"
    ).annotate(
      OpenApi.Description,
      "Cancels at once and returns the subscription; there is no body. Past payments are not refunded. Canceling a canceled subscription changes nothing and returns it as it is."
    )
  ) {}
