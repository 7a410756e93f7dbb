import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import { Effect } from "effect"
import { page, plainStyle } from "../../platform/kit/Page.ts"
import { checkoutReturnPaths } from "../../platform/settings/CheckoutReturnPaths.ts"

const messagePage = (title: string, text: string) =>
  page({ title, style: plainStyle, main: `<h1>${title}</h1>\n<p>${text}</p>` })

const success = messagePage(
  "Thank you",
  "Your checkout is finished. The shop confirms your order as soon as the payment itself is confirmed; you can close this page."
)

const canceled = messagePage("Checkout canceled", "Nothing was paid. You can close this page and return to the shop.")

export const checkoutReturnPages = HttpApiBuilder.Router.use((router) =>
  Effect.zipRight(router.get(checkoutReturnPaths.success, success), router.get(checkoutReturnPaths.cancel, canceled))
)
