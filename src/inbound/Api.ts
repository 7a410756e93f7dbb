import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "@effect/platform"
import { Schema } from "effect"
import { errorSchema, PayloadTooLarge, ServiceUnavailable, SignatureInvalid } from "../Errors.ts"

/** The answer to a notification that is stored or already known. */
export const Received = Schema.Struct({ received: Schema.Literal(true) }).annotations({ identifier: "Received" })

/** The provider's entry (contract, What the service does, rule 8). Not for integrators. */
export class InboundApi extends HttpApiGroup.make("inbound")
  .add(
    HttpApiEndpoint.post("receive", "/webhooks/provider")
      // Documented, but not decoded: the handler reads the exact bytes, which are what is signed
      .setPayload(Schema.Struct({ id: Schema.String, type: Schema.String }).annotations({ identifier: "Notification" }))
      .addSuccess(Received)
      .addError(errorSchema(SignatureInvalid))
      .addError(errorSchema(PayloadTooLarge))
      .addError(errorSchema(ServiceUnavailable))
      .annotate(OpenApi.Summary, "Take a notification of the provider")
      .annotate(
        OpenApi.Description,
        "200: stored, or known already. 400: not signed by the provider, nothing stored. 503: not stored, send it again."
      )
  )
  .annotate(OpenApi.Description, "The payment provider's own entry; not a destination for integrators") {}
