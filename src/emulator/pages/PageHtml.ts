import { canPayLater } from "../checkout/LaterPayment.ts"
import { amountText, digitsOf, money } from "../Money.ts"
import type { LineItem, Order, Price, Session } from "../Records.ts"
import { type Html, html, nothing, page, refusalOf } from "./PageLayout.ts"

const quantityCell = ({ adjustable_quantity: bounds, quantity }: LineItem, index: number): Html =>
  bounds === null
    ? html`${String(quantity)}`
    : html`<input form="order" name="quantities[${String(index)}]" type="number" inputmode="numeric" aria-label="Quantity" required min="${String(
        bounds.minimum ?? 0
      )}" max="${String(bounds.maximum ?? 999_999)}" value="${String(quantity)}">`

const everyPeriod = ({ interval, interval_count }: NonNullable<LineItem["price"]["recurring"]>): string =>
  interval_count === 1 ? `every ${interval}` : `every ${interval_count} ${interval}s`

/** An item's unit price if there are several, and its recurring price, even if its first days are free. */
const termsOf = ({ currency, price, quantity }: LineItem): string => {
  const one = price.unit_amount === null ? undefined : money(price.unit_amount, currency)
  const each = one !== undefined && quantity > 1 ? `${one} each` : undefined
  if (price.recurring === null) return each ?? ""
  const period = everyPeriod(price.recurring)
  if (each !== undefined) return `${each}, ${period}`
  return one === undefined ? period : `${one} ${period}`
}

const upsellField = (upsell: Price | undefined, item: LineItem, index: number): Html =>
  upsell === undefined
    ? nothing
    : html`<label class="terms"><input form="order" type="checkbox" name="upsells[${String(index)}]" value="true"> Rather ${termsOf(
        { ...item, price: upsell }
      )}</label>`

const rowWith =
  (upsells: PageState["upsells"]) =>
  (item: LineItem, index: number): Html =>
    html`<tr><td>${item.description ?? item.price.id}<span class="terms">${termsOf(item)}</span>${upsellField(upsells[index], item, index)}</td><td>${quantityCell(item, index)}</td><td>${money(item.amount_subtotal, item.currency)}</td></tr>
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

const isChangeable = (session: Session, order: Order): boolean =>
  session.allow_promotion_codes === true ||
  order.items.some(
    ({ adjustable_quantity, price }) => adjustable_quantity !== null || price.custom_unit_amount !== null
  )

const applyButton = (session: Session, order: Order): Html =>
  isChangeable(session, order)
    ? html`<button name="action" value="apply" formnovalidate>Update the total</button>
`
    : nothing

const amountField = (session: Session, order: Order): Html => {
  const { currency } = session
  const bounds = order.items[0]?.price.custom_unit_amount ?? null
  if (bounds === null) return nothing
  const minimum = bounds.minimum ?? 1
  const words = bounds.maximum === null ? "or more" : `to ${money(bounds.maximum, currency)}`
  const [item] = order.items
  const chosen =
    item === undefined || item.amount_subtotal < minimum ? (bounds.preset ?? minimum) : item.amount_subtotal
  return html`<label>Amount you want to pay (${currency.toUpperCase()})
<input name="amount_text" inputmode="${digitsOf(currency) === 0 ? "numeric" : "decimal"}" autocomplete="off" required maxlength="16" value="${amountText(
    chosen,
    currency
  )}" aria-describedby="amount-bounds"></label>
<p class="quiet" id="amount-bounds">${money(minimum, currency)} ${words}</p>
`
}

const payLabel = (session: Session, order: Order): string => {
  if (isChangeable(session, order)) return session.mode === "subscription" ? "Subscribe" : "Pay"
  if (session.mode === "subscription") {
    return session.amount_total === 0
      ? "Subscribe"
      : `Subscribe and pay ${money(session.amount_total, session.currency)}`
  }
  return session.amount_total === 0 ? "Complete the order" : `Pay ${money(session.amount_total, session.currency)}`
}

const laterButtons = (session: Session): Html =>
  canPayLater(session)
    ? html`<button name="action" value="pix">Pay by Pix</button>
<button name="action" value="boleto">Pay by boleto</button>
`
    : nothing

/** Outcomes for testing, apart from those of a real payer. */
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
${session.cancel_url === null ? nothing : html`<p class="back"><a href="${session.cancel_url}" rel="noreferrer">Back to the shop</a></p>`}`

/** The cost of a subscription after today; empty for a sale. */
const afterwards = (session: Session, { items, subscriptionData }: Order): Html => {
  if (session.mode !== "subscription") return nothing
  const days = subscriptionData.trialPeriodDays
  const [first] = items.flatMap(({ price }) => (price.recurring === null ? [] : [price.recurring]))
  const trial = days === null ? "" : `${days === 1 ? "The first day is" : `The first ${days} days are`} free. `
  const period = first === undefined ? "" : `It renews ${everyPeriod(first)} until you cancel.`
  return html`<p class="quiet">${trial}${period}</p>
`
}

export interface PageState {
  readonly shop: string | undefined
  readonly code: string
  /** Each item's upsell price, by its index. */
  readonly upsells: ReadonlyArray<Price | undefined>
  readonly refusal: string | undefined
}

export const checkoutPage = (session: Session, order: Order, { code, refusal, shop, upsells }: PageState): string =>
  page(
    shop === undefined ? "Checkout" : `Pay ${shop}`,
    html`${refusalOf(refusal)}<p class="total">${money(session.amount_total, session.currency)}</p>
${afterwards(session, order)}<table>
<thead><tr><th scope="col">Item</th><th scope="col">Quantity</th><th scope="col">Amount</th></tr></thead>
<tbody>
${order.items.map(rowWith(upsells))}</tbody>
<tfoot>
${discountRow(session, code)}<tr><th scope="row" colspan="2">Total</th><td>${money(session.amount_total, session.currency)}</td></tr>
</tfoot>
</table>
${forms(session, order, code)}`
  )
