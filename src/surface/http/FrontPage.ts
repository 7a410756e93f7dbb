import { HttpApiBuilder } from "@effect/platform"
import { Effect } from "effect"
import { errorReferencePath } from "../../platform/kit/ErrorLink.ts"
import { page, plainStyle } from "../../platform/kit/Page.ts"
import { checkoutReturnPaths } from "../../platform/settings/CheckoutReturnPaths.ts"
import { mcpPath } from "../../server/RpcError.ts"
import { consolePath } from "./console/Paths.ts"

/** The path of the page that people see if they open the service's address in a browser. */
export const frontPagePath = "/"

/** A relative link, since a proxy may serve the service below a path. */
const relative = (path: string): string => path.slice(1)

const byConsole = `<dd>Open <a href="${relative(consolePath)}">the console</a> and type your e-mail address: there is no password, and the mail that
you get has a link, which works for 15 minutes, once.</dd>`

const byRequest = `<dd>There is no password: <code>POST /identity/sign-in-links</code> with your e-mail address, and open the link in the mail
that you get. It works for 15 minutes, once.</dd>`

const contentWith = (signIn: string): string => `<h1>connected-payments</h1>
<p>A payments API on connected provider accounts, with signed webhook events. You have reached the service itself: programs
talk to it with an API key.</p>
<dl>
<dt>Integrate it</dt>
<dd><a href="docs">The guides</a>, <a href="docs/reference">the operations</a>,
<a href="${relative(errorReferencePath)}">the errors</a>, and <a href="openapi.json">the OpenAPI document</a>. Agents find their tools at <code>${mcpPath}</code>.</dd>
<dt>Sign in</dt>
${signIn}
<dt>Pay for something</dt>
<dd>Not here: go back to the shop, or open the link that it sent you.</dd>
</dl>`

/**
 * Serves the page: what this is and where to go next. It is static, without scripts.
 *
 * @param consoleUrl the URL of the console; null if none is served
 */
export const frontPage = ({ consoleUrl = null }: { readonly consoleUrl?: string | null }) =>
  HttpApiBuilder.Router.use((router) =>
    router.get(
      frontPagePath,
      page({
        title: "connected-payments",
        style: `${plainStyle}dt{font-weight:600;margin-top:1rem}dd{margin:0}`,
        headers: { "cache-control": "public, max-age=3600" },
        main: contentWith(consoleUrl === null ? byRequest : byConsole)
      })
    )
  )

const messagePage = (title: string, text: string) =>
  page({ title, style: plainStyle, main: `<h1>${title}</h1>\n<p>${text}</p>` })

const success = messagePage(
  "Thank you",
  "Your checkout is finished. The shop confirms your order as soon as the payment itself is confirmed; you can close this page."
)

const canceled = messagePage("Checkout canceled", "Nothing was paid. You can close this page and return to the shop.")

/** The pages that payers return to if neither the organization nor the operator has any. */
export const checkoutReturnPages = HttpApiBuilder.Router.use((router) =>
  Effect.zipRight(router.get(checkoutReturnPaths.success, success), router.get(checkoutReturnPaths.cancel, canceled))
)
