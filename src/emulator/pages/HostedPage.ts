import { Effect, Schema } from "effect"
import { maximumAmount } from "../Amounts.ts"
import * as Params from "../api/Params.ts"
import { type RequestContext, requestContext } from "../api/Route.ts"
import { type OpenCheckout, upsellOf, withChoices } from "../checkout/Choices.ts"
import { withAnswers } from "../checkout/CustomFields.ts"
import { canPayLater, payLater } from "../checkout/LaterPayment.ts"
import { declinePayment, type Payer, pay } from "../checkout/Payment.ts"
import type { EmulatorError } from "../EmulatorError.ts"
import type { HttpReply, HttpRequest } from "../Http.ts"
import { amountForm, amountIn, amountText, digitsOf, money } from "../Money.ts"
import { invalid, type ProviderError } from "../ProviderError.ts"
import type { LineItem, Order, PaymentLink, Price, Records, Session } from "../Records.ts"
import { expireSession, isOverdue } from "../resources/checkout/CheckoutSessions.ts"
import { isOpen, openPaymentLink } from "../resources/checkout/PaymentLinks.ts"
import { type Service, transactNow } from "../Service.ts"
import {
  type Html,
  html,
  htmlReply,
  messageReply,
  type Page,
  type Part,
  page,
  redirect,
  refusalOf
} from "./PageLayout.ts"

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

const upsellField = (price: Price | undefined, item: LineItem, index: number): Part =>
  price &&
  html`<label class="terms"><input form="order" type="checkbox" name="upsells[${String(index)}]" value="true"> Rather ${termsOf({ ...item, price })}</label>`

const rowWith =
  (upsells: PageState["upsells"]) =>
  (item: LineItem, index: number): Html =>
    html`<tr><td>${item.description ?? item.price.id}<span class="terms">${termsOf(item)}</span>${upsellField(upsells[index], item, index)}</td><td>${quantityCell(item, index)}</td><td>${money(item.amount_subtotal, item.currency)}</td></tr>
`

const discountRow = ({ currency, total_details }: Session, code: string): Part => {
  const off = total_details?.amount_discount ?? 0
  return (
    off !== 0 &&
    html`<tr><th scope="row" colspan="2">Discount ${code}</th><td>${money(-off, currency)}</td></tr>
`
  )
}

const codeField = (session: Session, code: string): Part =>
  session.allow_promotion_codes === true &&
  html`<label>Promotion code
<input name="promotion_code" autocomplete="off" value="${code}"></label>
`

const isChangeable = (session: Session, order: Order): boolean =>
  session.allow_promotion_codes === true ||
  order.items.some(
    ({ adjustable_quantity, price }) => adjustable_quantity !== null || price.custom_unit_amount !== null
  )

const applyButton = (session: Session, order: Order): Part =>
  isChangeable(session, order) &&
  html`<button name="action" value="apply" formnovalidate>Update the total</button>
`

const amountField = ({ currency }: Session, { items: [item] }: Order): Part => {
  const bounds = item?.price.custom_unit_amount
  if (item === undefined || !bounds) return undefined
  const minimum = bounds.minimum ?? 1
  const words = bounds.maximum === null ? "or more" : `to ${money(bounds.maximum, currency)}`
  const chosen = item.amount_subtotal < minimum ? (bounds.preset ?? minimum) : item.amount_subtotal
  return html`<label>Amount you want to pay (${currency.toUpperCase()})
<input name="amount_text" inputmode="${digitsOf(currency) === 0 ? "numeric" : "decimal"}" autocomplete="off" required maxlength="16" value="${amountText(
    chosen,
    currency
  )}" aria-describedby="amount-bounds"></label>
<p class="quiet" id="amount-bounds">${money(minimum, currency)} ${words}</p>
`
}

const payLabel = (session: Session, order: Order): string => {
  const price = money(session.amount_total, session.currency)
  const isPriced = session.amount_total !== 0 && !isChangeable(session, order)
  if (session.mode === "subscription") return isPriced ? `Subscribe and pay ${price}` : "Subscribe"
  if (isPriced) return `Pay ${price}`
  return isChangeable(session, order) ? "Pay" : "Complete the order"
}

const laterButtons = (session: Session): Part =>
  canPayLater(session) &&
  html`<button name="action" value="pix">Pay by Pix</button>
<button name="action" value="boleto">Pay by boleto</button>
`

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
  const name = html`name="fields[${key}]"${!optional && html` required`}`
  if (dropdown) {
    return html`<select ${name}><option value="">Choose</option>${dropdown.options.map(
      ({ label, value }) => html`<option value="${value}">${label}</option>`
    )}</select>`
  }
  return html`<input ${name}${Boolean(numeric) && html` inputmode="numeric" pattern="[0-9]+"`} maxlength="255">`
}

const phoneField = ({ phone_number_collection }: Session): Part =>
  phone_number_collection?.enabled === true &&
  html`<label>Phone number
<input name="phone" type="tel" autocomplete="tel" required></label>
`

const labelledField = (field: CustomField): Html =>
  html`<label>${field.label.custom ?? field.key}${field.optional ? " (optional)" : ""}
${fieldInput(field)}</label>
`

const forms = (session: Session, order: Order, code: string): Html => html`<form method="post" id="order">
${amountField(session, order)}${codeField(session, code)}${phoneField(session)}${session.custom_fields.map(labelledField)}<label>E-mail (optional)
<input name="email" type="email" autocomplete="email" value="${session.customer_email ?? ""}"></label>
<button name="action" value="pay">${payLabel(session, order)}</button>
${laterButtons(session)}${applyButton(session, order)}${testChoices(session)}</form>
${session.cancel_url !== null && html`<p class="back"><a href="${session.cancel_url}" rel="noreferrer">Back to the shop</a></p>`}`

/** The cost of a subscription after today; empty for a sale. */
const afterwards = (session: Session, { items, subscriptionData }: Order): Part => {
  if (session.mode !== "subscription") return undefined
  const days = subscriptionData.trialPeriodDays
  const [first] = items.flatMap(({ price }) => (price.recurring === null ? [] : [price.recurring]))
  const trial = days === null ? "" : `${days === 1 ? "The first day is" : `The first ${days} days are`} free. `
  const period = first === undefined ? "" : `It renews ${everyPeriod(first)} until you cancel.`
  return html`<p class="quiet">${trial}${period}</p>
`
}

interface PageState {
  readonly shop: string | undefined
  readonly code: string
  /** Each item's upsell price, by its index. */
  readonly upsells: ReadonlyArray<Price | undefined>
  readonly refusal: string | undefined
}

const checkoutPage = (session: Session, order: Order, { code, refusal, shop, upsells }: PageState): string =>
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

const submission = Schema.Struct({
  action: Params.oneOf("pay", "decline", "apply", "boleto", "pix"),
  amount: Params.optional(Params.integer(0, maximumAmount)),
  amount_text: Params.optional(Params.matching(amountForm, "amount, such as 15.00")),
  email: Params.optional(Params.clearable(Params.email)),
  fields: Params.optional(Params.byKey(255)),
  phone: Params.optional(Params.clearable(Params.matching(/^\+?[\d ()-]{5,20}$/, "phone number"))),
  promotion_code: Params.optional(Params.clearable(Params.text(500))),
  quantities: Params.optional(Params.byIndex(Params.integer(0, 999_999))),
  upsells: Params.optional(Params.byIndex(Params.boolean))
})

type Submission = typeof submission.Type

const unknownSession = messageReply(404, "Not found", "There is no such checkout session.")

const linkOf = ({ objects }: RequestContext, { payment_link }: Session): PaymentLink | undefined =>
  payment_link === null ? undefined : objects.get("payment_link", payment_link)

const confirmation = (context: RequestContext, session: Session): HttpReply => {
  const location = session.success_url?.replaceAll("{CHECKOUT_SESSION_ID}", session.id)
  const words = linkOf(context, session)?.after_completion.hosted_confirmation?.custom_message
  const message = words ?? "This order is complete."
  return location === undefined ? messageReply(200, "Thank you", message) : redirect(location, "Thank you", message)
}

const expired = (status: number): HttpReply =>
  messageReply(status, "Expired", "This checkout session has expired. Nothing was charged.")

type Visit<Object> = (context: RequestContext, object: Object, request: HttpRequest) => Effect.Effect<HttpReply>

/** The page of an object, in the account that has it; `unknown` if none has. */
const pageOf =
  <K extends "checkout.session" | "payment_link">(kind: K, unknown: HttpReply, visit: Visit<Records[K]>): Page =>
  (service, request, id) =>
    transactNow(service.store, (transaction, now) => {
      for (const account of transaction.scopes()) {
        const found = transaction.in(account).get(kind, id)
        const cause = { account, now, requestId: request.id }
        if (found !== undefined) return visit(requestContext(service, transaction, cause), found, request)
      }
      return Effect.succeed(unknown)
    })

const form = (context: RequestContext, status: number, { order, session }: OpenCheckout, refusal?: string) => {
  const { account, objects, platform } = context
  const [discount] = session.discounts
  const code = discount === undefined ? undefined : objects.get("promotion_code", discount.promotion_code)
  const shop = platform.objects.get("account", account)?.business_profile?.name ?? undefined
  const upsells = order.items.map((item) => upsellOf(context, item))
  return htmlReply(status, checkoutPage(session, order, { code: code?.code ?? "", refusal, shop, upsells }))
}

const show = (context: RequestContext, checkout: OpenCheckout): HttpReply => {
  switch (checkout.session.status) {
    case "complete":
      return messageReply(200, "Complete", "This order is complete. There is nothing left to pay.")
    case "expired":
      return expired(200)
    default:
      return form(context, 200, checkout)
  }
}

/** The payer's chosen amount: sent by a script, or as written on the page. */
const chosenAmount = (
  { amount, amount_text }: Submission,
  currency: string
): Effect.Effect<number | undefined, ProviderError> => {
  if (amount !== undefined || amount_text === undefined) return Effect.succeed(amount)
  const written = amountIn(amount_text, currency)
  return written === undefined
    ? invalid("amount_text", `Write the amount with at most ${digitsOf(currency)} decimals.`)
    : Effect.succeed(written)
}

const payerOf = (submitted: Submission, currency: string): Effect.Effect<Payer, ProviderError> =>
  Effect.map(chosenAmount(submitted, currency), (amount) => {
    const { email, promotion_code, quantities, upsells } = submitted
    return {
      amount,
      email: email ?? null,
      promotionCode: promotion_code,
      quantities: new Map(Object.entries(quantities ?? {}).map(([index, quantity]) => [Number(index), quantity])),
      upsells: new Set(Object.entries(upsells ?? {}).flatMap(([index, isTaken]) => (isTaken ? [Number(index)] : [])))
    }
  })

const act = (
  context: RequestContext,
  checkout: OpenCheckout,
  submitted: Submission,
  payer: Payer
): Effect.Effect<HttpReply, ProviderError> => {
  switch (submitted.action) {
    case "apply":
      return Effect.map(withChoices(context, checkout, payer), (chosen) => form(context, 200, chosen))
    case "pay":
    case "boleto":
    case "pix": {
      const { action, fields = {}, phone } = submitted
      return withAnswers(checkout.session, { fields, phone: phone ?? undefined }).pipe(
        Effect.map((session) => ({ ...checkout, session })),
        Effect.flatMap((answered) =>
          action === "pay" ? pay(context, answered, payer) : payLater(context, answered, payer, action)
        ),
        Effect.map((session) => confirmation(context, session))
      )
    }
    case "decline":
      return Effect.map(declinePayment(context, checkout, payer), (open) =>
        form(context, 402, open, "Your card was declined. You can try again.")
      )
  }
}

const submit = (
  context: RequestContext,
  checkout: OpenCheckout,
  submitted: Submission
): Effect.Effect<HttpReply, ProviderError> => {
  const { session } = checkout
  if (session.status === "expired") return Effect.succeed(expired(410))
  if (session.status === "complete") {
    // A second click on Pay gets the outcome of the first
    return Effect.succeed(submitted.action === "pay" ? confirmation(context, session) : show(context, checkout))
  }
  const link = linkOf(context, session)
  return link !== undefined && !isOpen(link)
    ? Effect.succeed(closedLink(link))
    : Effect.flatMap(payerOf(submitted, session.currency), (payer) => act(context, checkout, submitted, payer))
}

const visitSession: Visit<Session> = (context, stored, { body, method }) => {
  const order = context.objects.get("order", stored.id)
  if (order === undefined) return Effect.succeed(unknownSession)
  const session = isOverdue(stored, context.now) ? expireSession(context, stored) : stored
  const checkout = { order, session }
  if (method === "GET") return Effect.succeed(show(context, checkout))
  return Params.decodeForm(submission, body).pipe(
    Effect.flatMap((submitted) => submit(context, checkout, submitted)),
    // An invalid form gets the page again, with the reason
    Effect.catchTag("ProviderError", (error) => Effect.succeed(form(context, error.status, checkout, error.message)))
  )
}

/**
 * The page that a payer opens. `GET /c/pay/<session id>` shows it, `POST` performs its buttons' actions: `action=pay`,
 * `action=decline`, `action=boleto` or `action=pix`, which complete an order that is paid later, or `action=apply`,
 * which only recalculates the price. Its form has `email`; `amount_text` (`15.00`) if the payer chooses the amount (a
 * script may send `amount` in the smallest unit instead); `promotion_code` if codes are allowed; `quantities[<item
 * index>]` if they are adjustable; `upsells[<item index>]=true` to accept the owner's upsell; and `phone` and
 * `fields[<key>]` if the session asks for them.
 *
 * Answers 303 to the success URL once paid (200 without one), 402 after a declined card, 410 for an expired session and
 * for a session of a closed payment link.
 */
export const hostedPage = pageOf("checkout.session", unknownSession, visitSession)

export const expireOverdue = (service: Service): Effect.Effect<void, EmulatorError> =>
  transactNow(service.store, (transaction, now) =>
    Effect.sync(() => {
      for (const account of transaction.scopes()) {
        const context = requestContext(service, transaction, { account, now })
        for (const session of context.objects.all("checkout.session")) {
          if (isOverdue(session, now)) expireSession(context, session)
        }
      }
    })
  )

const unknownLink = messageReply(404, "Not found", "There is no such payment link.")

const closedLink = ({ inactive_message }: PaymentLink): HttpReply =>
  messageReply(410, "Closed", inactive_message ?? "This payment link is no longer active.")

export const linkPage = pageOf("payment_link", unknownLink, (context, link) =>
  Effect.sync(() => {
    if (!isOpen(link)) return closedLink(link)
    const url = openPaymentLink(context, link)?.url
    return url ? redirect(url, "Checkout", "On to the checkout.") : unknownLink
  })
)
