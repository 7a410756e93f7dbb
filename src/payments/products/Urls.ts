import { Schema } from "effect"
import { controls, text } from "../../platform/bounds/Text.ts"
import { imageForm } from "../images/ImageUrl.ts"

/** An https URL without spaces and control characters, which the URL parser would silently remove. */
const httpsForm = new RegExp(`^[hH][tT][tT][pP][sS]://[^\\s${controls}]+$`)

/** An https URL of an image or a product page, as the provider requires. */
export const HttpsUrl = text({
  max: 2048,
  pattern: httpsForm,
  rule: "must be an https URL of at most 2048 characters, without spaces, such as https://shop.example/coffee"
}).pipe(
  Schema.filter((written) => URL.canParse(written), {
    description: "An https URL",
    arbitrary: () => (fc) => fc.webUrl({ validSchemes: ["https"] })
  })
)

export const imageRule =
  "must be an https URL of at most 2048 characters, without spaces, or the url that POST product-images returned"

/** https, or the service's own, which a local start serves over http: the handler checks that. */
export const ImageUrl = text({
  max: 2048,
  pattern: new RegExp(`${httpsForm.source}|${imageForm.source}`),
  rule: imageRule
}).pipe(
  Schema.filter((written) => URL.canParse(written), {
    description: "An https URL, or the `url` that `POST product-images` returned",
    arbitrary: () => (fc) => fc.webUrl({ validSchemes: ["https"] })
  })
)
