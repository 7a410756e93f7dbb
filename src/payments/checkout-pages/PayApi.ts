import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "@effect/platform"
import { Schema } from "effect"
import { NeededCalls } from "../Endpoints.ts"

const Page = HttpApiSchema.Text({ contentType: "text/html" })

const SlugPath = Schema.Struct({
  slug: Schema.String.annotations({ description: "The last part of the page's URL" })
})

const quantities = Object.fromEntries(
  Array.from({ length: 20 }, (_, index) => [`q${index}`, { type: "string", description: "The quantity of an item" }])
)

/** Declared here and not by a schema, since the handler reads the raw form within its own size limit. */
const form = {
  required: true,
  content: {
    "application/x-www-form-urlencoded": {
      schema: {
        type: "object",
        description:
          "What the page's form sends: hidden fields, and a quantity (`q0`, `q1`, …) for each adjustable item",
        required: ["attempt", "version"],
        properties: {
          attempt: { type: "string", description: "A random UUID: the same one gets the same checkout session" },
          version: { type: "string", description: "Which version of the items the payer saw" },
          ...quantities
        },
        additionalProperties: false
      }
    }
  }
}

/** The pages at which payers buy. For browsers: every answer is a page, refusals included. */
export class PayPagesApi extends HttpApiGroup.make("payPages")
  .add(
    HttpApiEndpoint.get("page", "/pay/:slug")
      .setPath(SlugPath)
      .addSuccess(Page)
      .annotate(NeededCalls, ["createCheckoutSession"])
      .annotate(OpenApi.Summary, "Open a checkout page")
      .annotate(
        OpenApi.Description,
        "Always a page: 404 if there is none or it is closed, 410 if it was deleted, 503 if its account is not connected, 429 beyond 120 requests per minute and address. It has no scripts. A query is ignored."
      )
  )
  .add(
    HttpApiEndpoint.post("submit", "/pay/:slug")
      .setPath(SlugPath)
      .addSuccess(Page)
      .annotate(NeededCalls, ["createCheckoutSession"])
      .annotate(OpenApi.Summary, "Continue to payment from a checkout page")
      .annotate(
        OpenApi.Description,
        "What the page's form sends. Redirects (303) to the provider's page of a new checkout session. Otherwise a page that says what to do: 422 if the form is not as the page has it, 429 beyond 20 requests per minute and address, 502 to 504 if the provider did not create the session."
      )
      .annotate(OpenApi.Override, { requestBody: form })
  )
  .add(
    HttpApiEndpoint.get("thanks", "/pay/:slug/thanks")
      .setPath(SlugPath)
      .addSuccess(Page)
      .annotate(OpenApi.Summary, "The page after payment, with the checkout page's success text")
      .annotate(
        OpenApi.Description,
        "Also for pages that were closed or deleted meanwhile. It confirms nothing: whoever knows the URL can open it."
      )
  )
  .annotate(OpenApi.Description, "Checkout pages, as payers see them") {}
