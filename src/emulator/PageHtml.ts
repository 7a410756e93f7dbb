import { canPayLater } from "./LaterPayment.ts"
import type { LineItem, Order, Session } from "./Records.ts"

/** HTML that is safe to put into a page: only {@link html} creates it. */
class Html {
  readonly text: string
  constructor(text: string) {
    this.text = text
  }
}

const escapes: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;"
}

const escaped = (text: string): string => text.replace(/[&<>"']/g, (character) => escapes[character] ?? "")

/** Escapes every value except {@link Html} itself. */
const html = (parts: TemplateStringsArray, ...values: ReadonlyArray<string | Html | ReadonlyArray<Html>>): Html =>
  new Html(
    parts
      .map((part, index) => {
        const value = values[index]
        if (value === undefined) return part
        if (typeof value === "string") return part + escaped(value)
        return part + (value instanceof Html ? value.text : value.map(({ text }) => text).join(""))
      })
      .join("")
  )

const nothing = html``

/** A readable amount: `R$ 5.00` for 500 brl. */
export const money = (amount: number, currency: string): string => {
  const format = new Intl.NumberFormat("en", { style: "currency", currency: currency.toUpperCase() })
  return format.format(amount / 10 ** (format.resolvedOptions().maximumFractionDigits ?? 2))
}

const style = html`<style>
body { font: 1rem/1.5 system-ui, sans-serif; max-width: 34rem; margin: 2rem auto; padding: 0 1rem; color: #1a1a1a; background: #fff }
table { width: 100%; border-collapse: collapse; margin: 1rem 0 }
th, td { text-align: left; padding: .5rem 0; border-bottom: 1px solid #767676 }
th:last-child, td:last-child { text-align: right }
label { display: block; margin: 1rem 0 }
input, select { display: block; width: 100%; box-sizing: border-box; padding: .5rem; font: inherit }
button { font: inherit; padding: .6rem 1.4rem; margin: 0 .5rem .5rem 0; cursor: pointer; border: 1px solid #767676; border-radius: .3rem; color: inherit; background: #fff }
button[value=pay] { display: block; width: 100%; padding: .8rem; font-weight: 600; border-color: #4b32c3; color: #fff; background: #4b32c3 }
fieldset { margin: 2rem 0 1rem; border: 1px dashed #6b4eff; padding: .5rem 1rem 1rem }
legend { padding: 0 .4rem; font-weight: 600 }
fieldset p { margin: 0 0 .5rem }
.note { border-left: .3rem solid #6b4eff; padding: .2rem .8rem }
.refusal { border-left: .3rem solid #b00020; padding: .2rem .8rem }
</style>`

const page = (title: string, content: Html): string =>
  html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<title>${title}</title>
${style}
</head>
<body>
<main>
<h1>${title}</h1>
${content}
<p class="note">This is the local provider emulator. No money moves.</p>
</main>
</body>
</html>
`.text

const quantityCell = ({ adjustable_quantity: bounds, quantity }: LineItem, index: number): Html =>
  bounds === null
    ? html`${String(quantity)}`
    : html`<input form="order" name="quantities[${String(index)}]" type="number" inputmode="numeric" aria-label="Quantity" required min="${String(
        Math.max(1, bounds.minimum ?? 0)
      )}" max="${String(bounds.maximum ?? 999_999)}" value="${String(quantity)}">`

const row = (item: LineItem, index: number): Html =>
  html`<tr><td>${item.description ?? item.price.id}</td><td>${quantityCell(item, index)}</td><td>${money(item.amount_subtotal, item.currency)}</td></tr>
`

const discountRow = ({ currency, total_details }: Session, code: string): Html => {
  const off = total_details?.amount_discount ?? 0
  return off === 0
    ? nothing
    : html`<tr><th scope="row" colspan="2">Discount ${code}</th><td>${money(-off, currency)}</td></tr>
`
}

const codeField = (session: Session, code: string): Html =>
  session.allow_promotion_codes === true
    ? html`<label>Promotion code
<input name="promotion_code" autocomplete="off" value="${code}"></label>
`
    : nothing

/** Whether the payer can still change the total on the page. */
const isChangeable = (session: Session, order: Order): boolean =>
  session.allow_promotion_codes === true ||
  order.items.some(
    ({ adjustable_quantity, price }) => adjustable_quantity !== null || price.custom_unit_amount !== null
  )

/** A button that shows the new total before the payment, if the payer can change it. */
const applyButton = (session: Session, order: Order): Html =>
  isChangeable(session, order)
    ? html`<button name="action" value="apply" formnovalidate>Update the total</button>
`
    : nothing

const amountField = (session: Session, order: Order): Html => {
  const bounds = order.items[0]?.price.custom_unit_amount ?? null
  if (bounds === null) return nothing
  const minimum = bounds.minimum ?? 1
  return html`<label>Amount you want to pay, in the smallest unit of ${session.currency}
<input name="amount" type="number" inputmode="numeric" required min="${String(minimum)}"${
    bounds.maximum === null ? nothing : html` max="${String(bounds.maximum)}"`
  } value="${String(bounds.preset ?? minimum)}"></label>
`
}

/** The label of the pay button; without an amount if the payer can still change it. */
const payLabel = (session: Session, order: Order): string => {
  if (isChangeable(session, order)) return "Pay"
  return session.amount_total === 0 ? "Complete the order" : `Pay ${money(session.amount_total, session.currency)}`
}

/** The buttons of the methods that pay later, if the order allows them. */
const laterButtons = (session: Session): Html =>
  canPayLater(session)
    ? html`<button name="action" value="pix">Pay by Pix</button>
<button name="action" value="boleto">Pay by boleto</button>
`
    : nothing

/** Outcomes that no real payer chooses, in a group of their own. */
const testChoices = (session: Session): Html => html`<fieldset>
<legend>Test mode: choose what happens</legend>
<p>No card is asked for. Pay succeeds at once${
  canPayLater(session) ? ", and Pix and boleto wait until they are triggered" : ""
}; or let the card be refused:</p>
<button name="action" value="decline">Decline the card</button>
</fieldset>
`

type CustomField = Session["custom_fields"][number]

const fieldInput = ({ dropdown, key, numeric, optional }: CustomField): Html => {
  const name = html`name="fields[${key}]"${optional ? nothing : html` required`}`
  if (dropdown !== undefined && dropdown !== null) {
    return html`<select ${name}><option value="">Choose</option>${dropdown.options.map(
      ({ label, value }) => html`<option value="${value}">${label}</option>`
    )}</select>`
  }
  return numeric === undefined || numeric === null
    ? html`<input ${name} maxlength="255">`
    : html`<input ${name} inputmode="numeric" pattern="[0-9]+" maxlength="255">`
}

/** The fields that the session asks for. */
const collectedFields = ({ custom_fields, phone_number_collection }: Session): Html =>
  html`${
    phone_number_collection?.enabled === true
      ? html`<label>Phone number
<input name="phone" type="tel" autocomplete="tel" required></label>
`
      : nothing
  }${custom_fields.map(
    (field) => html`<label>${field.label.custom ?? field.key}${field.optional ? " (optional)" : ""}
${fieldInput(field)}</label>
`
  )}`

const forms = (session: Session, order: Order, code: string): Html => html`<form method="post" id="order">
${amountField(session, order)}${codeField(session, code)}${collectedFields(session)}<label>E-mail (optional)
<input name="email" type="email" autocomplete="email" value="${session.customer_email ?? ""}"></label>
<button name="action" value="pay">${payLabel(session, order)}</button>
${laterButtons(session)}${applyButton(session, order)}${testChoices(session)}</form>
${session.cancel_url === null ? nothing : html`<p><a href="${session.cancel_url}" rel="noreferrer">Back to the shop</a></p>`}`

/** What the page shows besides the order itself. */
export interface PageState {
  /** The promotion code that is applied; "" for none. */
  readonly code: string
  /** Why the last submission was refused. */
  readonly refusal: string | undefined
}

/** The page of an open session: what is sold, the total, and the forms to pay or to let the card be declined. */
export const checkoutPage = (session: Session, order: Order, { code, refusal }: PageState): string =>
  page(
    "Checkout",
    html`${refusal === undefined ? nothing : html`<p class="refusal" role="alert">${refusal}</p>`}
<table>
<thead><tr><th scope="col">Item</th><th scope="col">Quantity</th><th scope="col">Amount</th></tr></thead>
<tbody>
${order.items.map(row)}</tbody>
<tfoot>
${discountRow(session, code)}<tr><th scope="row" colspan="2">Total</th><td>${money(session.amount_total, session.currency)}</td></tr>
</tfoot>
</table>
${forms(session, order, code)}`
  )

/** A page that only shows a message. */
export const messagePage = (title: string, message: string): string =>
  page(title, html`<p role="status">${message}</p>`)
