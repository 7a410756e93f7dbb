import { createHash } from "node:crypto"
import type { HttpServerResponse } from "@effect/platform"
import { formatAmount } from "../../platform/kit/Amounts.ts"
import { escaped, page } from "../../platform/kit/Page.ts"
import { imagesPath } from "../images/ImageUrl.ts"
import type { CheckoutPageItem } from "./Api.ts"
import type { FoundPage } from "./CheckoutPages.ts"

/** The pages that payers see. Their owners' input is rendered as text, never as markup; there are no scripts. */

/**
 * The style of checkout pages, light and dark. Contrast is at least 4.5:1 for text and 3:1 for borders and focus; touch
 * targets are at least 44 px high; nothing scrolls sideways at 320 px.
 */
const payStyle = `:root{color-scheme:light dark;--text:#1a1a1a;--soft:#4a4a4a;--back:#fff;--line:#767676;--act:#1f2937;--on:#fff;--bad:#a8001c;--focus:#1d4ed8;--test:#4a3500;--testback:#fff3c4}
@media(prefers-color-scheme:dark){:root{--text:#f2f2f2;--soft:#c9c9c9;--back:#161616;--line:#8f8f8f;--act:#e5e7eb;--on:#111;--bad:#ff9c93;--focus:#93c5fd;--test:#ffe9a8;--testback:#3d2f00}}
*{box-sizing:border-box}
body{margin:0;font:1.0625rem/1.5 system-ui,sans-serif;color:var(--text);background:var(--back);overflow-wrap:anywhere}
main{max-width:32rem;margin:0 auto;padding:1rem 1rem 3rem}
h1{font-size:1.6rem;line-height:1.25;margin:1rem 0 .5rem}
h2{font-size:1.0625rem;margin:0}
img{display:block;max-width:100%;height:auto;border-radius:.5rem;margin:0 0 1rem}
p{margin:.5rem 0}
.text{white-space:pre-line}
.soft{color:var(--soft)}
ul{list-style:none;margin:1.5rem 0;padding:0;border-top:1px solid var(--line)}
li{padding:1rem 0;border-bottom:1px solid var(--line)}
label{display:block;margin:.5rem 0 .25rem}
input{font:inherit;color:inherit;background:var(--back);width:8rem;max-width:100%;min-height:2.75rem;padding:.5rem .75rem;border:1px solid var(--line);border-radius:.375rem}
input[aria-invalid]{border:2px solid var(--bad)}
button{font:inherit;font-weight:600;width:100%;min-height:3rem;padding:.75rem 1rem;color:var(--on);background:var(--act);border:1px solid var(--act);border-radius:.5rem;cursor:pointer}
a{color:inherit}
:focus-visible{outline:3px solid var(--focus);outline-offset:2px}
.bad{color:var(--bad);font-weight:600}
.alert{border:2px solid var(--bad);border-radius:.5rem;padding:.75rem 1rem;margin:1rem 0}
.test{color:var(--test);background:var(--testback);border:2px solid var(--test);border-radius:.5rem;padding:.75rem 1rem;margin:0 0 1rem}
.total{font-weight:600}
`

export interface PayPageOptions {
  /** Whether the provider's page may have an http URL, as the emulator's has at a local start. */
  readonly plainHttp: boolean
}

interface Document {
  readonly title: string
  readonly sandbox: boolean
  readonly status: number
  readonly headers?: Readonly<Record<string, string>>
  readonly content: string
}

interface MessageText {
  readonly text: string
  readonly sandbox?: boolean
}

const testNote = `<p class="test" role="note"><strong>Test page.</strong> Nothing is sold here and no real money moves. Do not enter real card data.</p>
`

/**
 * Browsers also apply `form-action` to the redirect that answers a form, and the provider's page may be on the shop's
 * own domain, so whole schemes are allowed.
 */
const documentOf = ({ content, sandbox, title, ...answer }: Document, { plainHttp }: PayPageOptions) =>
  page({
    ...answer,
    title: `${sandbox ? "Test: " : ""}${title}`,
    style: payStyle,
    allowed: { img: "'self' data:", form: `'self' https:${plainHttp ? " http:" : ""}` },
    main: `${sandbox ? testNote : ""}${content}`
  })

const everyPeriod = (recurring: CheckoutPageItem["recurring"]): string => {
  if (recurring === null) return ""
  const { interval, intervalCount } = recurring
  return intervalCount === 1 ? ` every ${interval}` : ` every ${intervalCount} ${interval}s`
}

const priceOf = ({ currency, recurring, unitAmount }: CheckoutPageItem): string =>
  unitAmount === null
    ? `The price is on the next page${recurring === null ? "" : `; it is charged${everyPeriod(recurring)}`}`
    : `${formatAmount(unitAmount, currency)}${everyPeriod(recurring)}`

export interface Entered {
  readonly quantities: ReadonlyMap<number, string>
  readonly problems: ReadonlyMap<number, string>
}

const nothingEntered: Entered = { quantities: new Map(), problems: new Map() }

export const fieldOf = (index: number): string => `q${index}`

const quantityField = (item: CheckoutPageItem, index: number, { problems, quantities }: Entered): string => {
  const bounds = item.adjustableQuantity
  if (bounds === null) return `<p>Quantity: ${item.quantity}</p>`
  const name = fieldOf(index)
  const problem = problems.get(index)
  const value = quantities.get(index) ?? String(item.quantity)
  const words = `${bounds.minimum} to ${bounds.maximum}`
  return `<label for="${name}">Quantity of ${escaped(item.name)} (${words})</label>
<input id="${name}" name="${name}" type="number" inputmode="numeric" autocomplete="off" required min="${bounds.minimum}" max="${bounds.maximum}" step="1" value="${escaped(value)}"${
    problem === undefined ? "" : ` aria-invalid="true" aria-describedby="${name}-problem"`
  }>${problem === undefined ? "" : `\n<p class="bad" id="${name}-problem">${escaped(problem)}</p>`}`
}

/** The total, if neither the payer nor the provider decides any part of it. */
const totalOf = (items: ReadonlyArray<CheckoutPageItem>): string => {
  const [first] = items
  const sums = items.map(({ adjustableQuantity, quantity, recurring, unitAmount }) =>
    adjustableQuantity === null && recurring === null && unitAmount !== null ? unitAmount * quantity : Number.NaN
  )
  const total = sums.reduce((sum, one) => sum + one, 0)
  return first === undefined || !Number.isSafeInteger(total)
    ? `<p class="soft">The total is on the next page.</p>`
    : `<p class="total">Total: ${escaped(formatAmount(total, first.currency))}</p>`
}

/** A hash of a page's items, so that payers only buy the items that they saw. */
export const versionOf = ({ items }: Pick<FoundPage, "items">): string =>
  createHash("sha256").update(JSON.stringify(items)).digest("hex").slice(0, 32)

export const payPage = (
  shown: FoundPage,
  options: PayPageOptions,
  {
    alert,
    entered = nothingEntered,
    headers = {},
    status = 200
  }: {
    readonly status?: number
    readonly headers?: Readonly<Record<string, string>>
    readonly alert?: string
    readonly entered?: Entered
  } = {}
): HttpServerResponse.HttpServerResponse => {
  const image =
    shown.imageFile === null
      ? ""
      : // Relative, since a proxy may serve the service below a path
        `<img src="..${imagesPath}/${escaped(shown.imageFile)}" alt="${escaped(shown.imageAlt)}">\n`
  const rows = shown.items.map(
    (item, index) => `<li>
<h2>${escaped(item.name)}</h2>
<p>${escaped(priceOf(item))}</p>
${quantityField(item, index, entered)}
</li>`
  )
  return documentOf(
    {
      title: shown.title,
      sandbox: shown.environment === "sandbox",
      status,
      headers,
      content: `${image}<h1>${escaped(shown.title)}</h1>
<p class="soft">Sold by ${escaped(shown.seller)}</p>
${alert === undefined ? "" : `<div class="alert" role="alert"><p>${escaped(alert)}</p></div>\n`}${
  shown.text === null ? "" : `<p class="text">${escaped(shown.text)}</p>\n`
}<form method="post" accept-charset="utf-8">
<input type="hidden" name="attempt" value="${crypto.randomUUID()}">
<input type="hidden" name="version" value="${versionOf(shown)}">
<ul>
${rows.join("\n")}
</ul>
${totalOf(shown.items)}
<p><button type="submit">Continue to payment</button></p>
<p class="soft">You pay on the page of the payment provider, which opens next.${
        shown.allowPromotionCodes ? " Promotion codes are entered there." : ""
      }</p>
</form>`
    },
    options
  )
}

export const messagePage =
  (options: PayPageOptions) =>
  ({ sandbox = false, text, ...message }: Omit<Document, "content" | "sandbox"> & MessageText) =>
    documentOf(
      { ...message, sandbox, content: `<h1>${escaped(message.title)}</h1>\n<p class="text">${escaped(text)}</p>` },
      options
    )
