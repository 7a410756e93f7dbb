import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "@effect/platform"
import { Schema } from "effect"
import { NeededCalls } from "../payments/Endpoints.ts"
import { errorSchemas, PayloadTooLarge, ServiceUnavailable, SignatureInvalid } from "../platform/errors/Errors.ts"
import { described } from "../platform/kit/Request.ts"

export const Received = Schema.Struct({
  received: described(Schema.Literal(true), "Always true: stored")
}).annotations({ identifier: "Received" })

export const entryPaths = { receive: "/webhooks/provider", receiveThin: "/webhooks/provider/thin" } as const

/** The fields of every notification; the rest is up to the provider. */
const notification = Schema.Struct(
  {
    id: described(Schema.String, "The provider's event id: a second notification with it changes nothing"),
    type: described(Schema.String, "The provider's type of the event, such as `charge.refunded`")
  },
  Schema.Record({ key: Schema.String, value: Schema.Unknown })
)

export class InboundApi extends HttpApiGroup.make("inbound")
  .add(
    HttpApiEndpoint.post("receive", entryPaths.receive)
      // Documented, but not decoded: the handler reads the exact bytes, since the signature covers those
      .setPayload(notification.annotations({ identifier: "Notification" }))
      .addSuccess(Received)
      .addError(errorSchemas(SignatureInvalid, PayloadTooLarge, ServiceUnavailable))
      .annotate(NeededCalls, ["verifyNotification"])
      .annotate(OpenApi.Summary, "Receive a notification from the provider")
      .annotate(
        OpenApi.Description,
        "200: stored, or known already. 400: not signed by the provider, nothing stored. 503: not stored, send it again."
      )
  )
  .add(
    HttpApiEndpoint.post("receiveThin", entryPaths.receiveThin)
      .setPayload(notification.annotations({ identifier: "ThinNotification" }))
      .addSuccess(Received)
      .addError(errorSchemas(SignatureInvalid, PayloadTooLarge, ServiceUnavailable))
      .annotate(NeededCalls, ["verifyThinNotification"])
      .annotate(OpenApi.Summary, "Receive a thin account notification from the provider")
      .annotate(
        OpenApi.Description,
        "Makes the service read the account; never results in a payment. 200: stored, or known already. 400: not signed by the provider, nothing stored. 503: not stored, or the account could not be read; send it again."
      )
  )
  .annotate(OpenApi.Description, "Webhook entry points for the payment provider, not for integrators") {}
