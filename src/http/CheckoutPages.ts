import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import { Effect } from "effect"
import { checkoutReturnPaths } from "../settings/CheckoutReturnPaths.ts"

const page = (title: string, text: string) =>
  HttpServerResponse.raw(
    `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title}</title>
<style>body { font: 1.1rem/1.5 system-ui, sans-serif; max-width: 34rem; margin: 15vh auto; padding: 0 1rem }</style>
</head>
<body><main><h1>${title}</h1><p>${text}</p></main></body>
</html>
`,
    {
      headers: {
        "content-type": "text/html; charset=utf-8",
        "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'",
        "referrer-policy": "no-referrer",
        "cache-control": "no-store"
      }
    }
  )

const success = page(
  "Thank you",
  "Your checkout is finished. The shop confirms your order as soon as the payment itself is confirmed; you can close this page."
)

const canceled = page("Checkout canceled", "Nothing was paid. You can close this page and return to the shop.")

export const checkoutReturnPages = HttpApiBuilder.Router.use((router) =>
  Effect.zipRight(router.get(checkoutReturnPaths.success, success), router.get(checkoutReturnPaths.cancel, canceled))
)
