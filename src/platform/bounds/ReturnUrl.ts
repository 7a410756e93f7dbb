import { Schema } from "effect"
import { rule } from "./Rules.ts"
import { controls, text } from "./Text.ts"

/** Pages that payers return to from checkout. No server code. */

/** The marker that the provider replaces with the session's id. */
const marker = "{CHECKOUT_SESSION_ID}"

/** A page's URL as it is sent to the provider: parsing has escaped the marker's braces. */
export const writtenReturnUrl = ({ href }: URL): string => href.replaceAll(encodeURI(marker), marker)

const maxLength = 2048

/** No spaces or control characters, which the URL parser would silently remove, and no credentials. */
const form = new RegExp(`^[hH][tT][tT][pP][sS]?://[^\\s${controls}/?#@\\\\]+(?:[/?#][^\\s${controls}]*)?$`)

const words = `must be an http or https URL of at most ${maxLength} characters, without spaces and credentials, such as https://shop.example/thanks`

/** The URL of a page that payers return to: http or https, without credentials. */
export const ReturnUrl = text({ max: maxLength, pattern: form, rule: words }).pipe(
  Schema.filter((written) => URL.canParse(written) && writtenReturnUrl(new URL(written)).length <= maxLength, {
    ...rule(words),
    description: `A page's URL: https in production. \`${marker}\` in it is replaced by the session's id`,
    examples: [`https://shop.example/thanks?session_id=${marker}`],
    arbitrary: () => (fc) => fc.webUrl()
  })
)
