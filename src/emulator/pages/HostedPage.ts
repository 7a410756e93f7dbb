import { Effect, Schema } from "effect"
import { maximumAmount } from "../Amounts.ts"
import { parseForm } from "../api/Form.ts"
import * as Params from "../api/Params.ts"
import { type RequestContext, requestContext } from "../api/Route.ts"
import { type OpenCheckout, upsellOf, withChoices } from "../checkout/Choices.ts"
import { withAnswers } from "../checkout/CustomFields.ts"
import { payLater } from "../checkout/LaterPayment.ts"
import { declinePayment, type Payer, pay } from "../checkout/Payment.ts"
import type { EmulatorError } from "../EmulatorError.ts"
import type { HttpReply, HttpRequest } from "../Http.ts"
import { amountForm, amountIn, digitsOf } from "../Money.ts"
import { invalid, type ProviderError } from "../ProviderError.ts"
import type { PaymentLink, Session } from "../Records.ts"
import { expireSession, isOverdue } from "../resources/CheckoutSessions.ts"
import { isOpen, openPaymentLink } from "../resources/PaymentLinks.ts"
import { type Service, transactNow } from "../Service.ts"
import type { Transaction } from "../store/Store.ts"
import { checkoutPage } from "./PageHtml.ts"
import { htmlReply, messagePage, messageReply, redirect } from "./PageLayout.ts"

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

const successUrl = (session: Session): string | undefined =>
  session.success_url?.replaceAll("{CHECKOUT_SESSION_ID}", session.id)

const linkOf = ({ objects }: RequestContext, { payment_link }: Session): PaymentLink | undefined =>
  payment_link === null ? undefined : objects.get("payment_link", payment_link)

const afterwards = (context: RequestContext, session: Session): HttpReply => {
  const location = successUrl(session)
  const words = linkOf(context, session)?.after_completion.hosted_confirmation?.custom_message
  const message = words ?? "This order is complete."
  return location === undefined ? messageReply(200, "Thank you", message) : redirect(location, "Thank you", message)
}

const expired = (status: number): HttpReply =>
  messageReply(status, "Expired", "This checkout session has expired. Nothing was charged.")

const scopeOf = (transaction: Transaction, sessionId: string): string | undefined =>
  transaction.scopes().find((scope) => transaction.in(scope).get("checkout.session", sessionId) !== undefined)

/** The session, expired first if it is overdue. */
const currentSession = (context: RequestContext, sessionId: string): OpenCheckout | undefined => {
  const session = context.objects.get("checkout.session", sessionId)
  const order = context.objects.get("order", sessionId)
  if (session === undefined || order === undefined) return undefined
  return { session: isOverdue(session, context.now) ? expireSession(context, session) : session, order }
}

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
        Effect.map((session) => afterwards(context, session))
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
    return Effect.succeed(submitted.action === "pay" ? afterwards(context, session) : show(context, checkout))
  }
  const link = linkOf(context, session)
  return link !== undefined && !isOpen(link)
    ? Effect.succeed(closedLink(link))
    : Effect.flatMap(payerOf(submitted, session.currency), (payer) => act(context, checkout, submitted, payer))
}

const visit = (
  context: RequestContext,
  sessionId: string,
  input: Effect.Effect<Submission, ProviderError> | undefined
): Effect.Effect<HttpReply> => {
  const checkout = currentSession(context, sessionId)
  if (checkout === undefined) return Effect.succeed(unknownSession)
  if (input === undefined) return Effect.succeed(show(context, checkout))
  return input.pipe(
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
export const hostedPage =
  (service: Service) =>
  (request: HttpRequest, sessionId: string): Effect.Effect<HttpReply, EmulatorError> => {
    if (request.method !== "GET" && request.method !== "POST") {
      return Effect.succeed(htmlReply(405, messagePage("Not allowed", "Use GET or POST."), { allow: "GET, POST" }))
    }
    const input =
      request.method === "GET"
        ? undefined
        : Effect.flatMap(parseForm(request.body), (fields) => Params.decodeParams(submission, fields))
    return transactNow(service.store, (transaction, now) => {
      const account = scopeOf(transaction, sessionId)
      if (account === undefined) return Effect.succeed(unknownSession)
      return visit(requestContext(service, transaction, { account, now, requestId: request.id }), sessionId, input)
    })
  }

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

export const linkPage =
  (service: Service) =>
  (request: HttpRequest, id: string): Effect.Effect<HttpReply, EmulatorError> => {
    if (request.method !== "GET") return Effect.succeed(messageReply(405, "Not allowed", "Use GET."))
    return transactNow(service.store, (transaction, now) =>
      Effect.sync(() => {
        const account = transaction
          .scopes()
          .find((scope) => transaction.in(scope).get("payment_link", id) !== undefined)
        const link = account === undefined ? undefined : transaction.in(account).get("payment_link", id)
        if (account === undefined || link === undefined) return unknownLink
        if (!isOpen(link)) return closedLink(link)
        const session = openPaymentLink(
          requestContext(service, transaction, { account, now, requestId: request.id }),
          link
        )
        return session === undefined || session.url === null
          ? unknownLink
          : redirect(session.url, "Checkout", "On to the checkout.")
      })
    )
  }
