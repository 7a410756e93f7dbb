import { Effect, Schema } from "effect"
import type { EmulatorError } from "./EmulatorError.ts"
import { parseForm } from "./Form.ts"
import type { HttpReply, HttpRequest } from "./Http.ts"
import { checkoutPage, messagePage } from "./PageHtml.ts"
import * as Params from "./Params.ts"
import { declinePayment, type OpenCheckout, pay } from "./Payment.ts"
import type { ProviderError } from "./ProviderError.ts"
import type { Session } from "./Records.ts"
import { type RequestContext, requestContext } from "./Route.ts"
import { expireSession, isOverdue } from "./resources/CheckoutSessions.ts"
import { type Service, unixSeconds } from "./Service.ts"
import type { Transaction } from "./Store.ts"

const submission = Schema.Struct({
  action: Params.oneOf("pay", "decline"),
  amount: Params.optional(Params.integer(0, 99_999_999)),
  email: Params.optional(Params.clearable(Params.matching(/^[^@\s]+@[^@\s]+$/, "email address", "email_invalid")))
})

type Submission = typeof submission.Type

/** Scripts and foreign content are refused; where a form may lead is left open, since a paid one leads to the shop. */
const htmlReply = (status: number, body: string, headers: Readonly<Record<string, string>> = {}): HttpReply => ({
  status,
  headers: {
    "content-type": "text/html; charset=utf-8",
    "cache-control": "no-store",
    "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; frame-ancestors 'none'",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    ...headers
  },
  body
})

const unknownSession = htmlReply(404, messagePage("Not found", "There is no such checkout session."))

const notAvailable = htmlReply(
  501,
  messagePage("Not available yet", "Paying for a subscription is not available yet in this emulator.")
)

const successUrl = (session: Session): string | undefined =>
  session.success_url?.replaceAll("{CHECKOUT_SESSION_ID}", session.id)

/** Paid: on to the shop. */
const toShop = (session: Session): HttpReply => {
  const location = successUrl(session)
  const body = messagePage("Thank you", "This order is complete.")
  return location === undefined ? htmlReply(200, body) : htmlReply(303, body, { location: new URL(location).href })
}

const expired = (status: number): HttpReply =>
  htmlReply(status, messagePage("Expired", "This checkout session has expired. Nothing was charged."))

const contextOf = (service: Service, transaction: Transaction, request: HttpRequest, account: string, now: number) =>
  requestContext(
    transaction,
    { account, connected: account !== service.platformId, now, request: { id: request.id, idempotency_key: null } },
    service.platformId,
    service.baseUrl
  )

const scopeOf = (transaction: Transaction, sessionId: string): string | undefined =>
  transaction.scopes().find((scope) => transaction.in(scope).get("checkout.session", sessionId) !== undefined)

/** The session, ended first where its time has run out. */
const currentSession = (context: RequestContext, sessionId: string): OpenCheckout | undefined => {
  const session = context.objects.get("checkout.session", sessionId)
  const order = context.objects.get("order", sessionId)
  if (session === undefined || order === undefined) return undefined
  return { session: isOverdue(session, context.now) ? expireSession(context, session) : session, order }
}

const show = ({ order, session }: OpenCheckout): HttpReply => {
  switch (session.status) {
    case "complete":
      return htmlReply(200, messagePage("Complete", "This order is complete. There is nothing left to pay."))
    case "expired":
      return expired(200)
    default:
      return htmlReply(200, checkoutPage(session, order))
  }
}

const submit = (
  context: RequestContext,
  checkout: OpenCheckout,
  { action, amount, email }: Submission
): Effect.Effect<HttpReply, ProviderError> => {
  const { session } = checkout
  if (session.status === "expired") return Effect.succeed(expired(410))
  if (session.status === "complete") {
    // A second click on Pay: the first one's outcome is what the payer wants to see
    return Effect.succeed(action === "pay" ? toShop(session) : show(checkout))
  }
  if (session.mode === "subscription") return Effect.succeed(notAvailable)
  const payer = { email: email ?? null, amount }
  return action === "pay"
    ? Effect.map(pay(context, checkout, payer), toShop)
    : Effect.map(declinePayment(context, checkout, payer), (open) =>
        htmlReply(402, checkoutPage(open, checkout.order, "Your card was declined. You can try again."))
      )
}

/** What the payer is told when the form was not filled in right: the page again, with the reason. */
const refusedPage = (checkout: OpenCheckout, error: ProviderError): HttpReply =>
  htmlReply(error.status, checkoutPage(checkout.session, checkout.order, error.message))

/** Renders a session's page, or carries out what its form asked for, within one transaction. */
const visit = (
  context: RequestContext,
  sessionId: string,
  form: Effect.Effect<Submission, ProviderError> | undefined
): Effect.Effect<HttpReply> => {
  const checkout = currentSession(context, sessionId)
  if (checkout === undefined) return Effect.succeed(unknownSession)
  if (form === undefined) return Effect.succeed(show(checkout))
  return form.pipe(
    Effect.flatMap((submitted) => submit(context, checkout, submitted)),
    Effect.catchTag("ProviderError", (error) => Effect.succeed(refusedPage(checkout, error)))
  )
}

/**
 * The page that a payer opens: `GET /c/pay/<session id>` shows it, `POST` with `action=pay` or `action=decline` (and
 * `email`, and `amount` where the payer chooses it) does what the buttons do.
 *
 * Answers 303 to the success URL once paid, 402 after a declined card, 410 for an expired session, 501 for a
 * subscription.
 */
export const hostedPage =
  (service: Service) =>
  (request: HttpRequest, sessionId: string): Effect.Effect<HttpReply, EmulatorError> => {
    if (request.method !== "GET" && request.method !== "POST") {
      return Effect.succeed(htmlReply(405, messagePage("Not allowed", "Use GET or POST."), { allow: "GET, POST" }))
    }
    const form =
      request.method === "GET"
        ? undefined
        : Effect.flatMap(parseForm(request.body), (input) => Params.decodeParams(submission, input))
    return Effect.flatMap(unixSeconds, (now) =>
      service.store.transact((transaction) => {
        const scope = scopeOf(transaction, sessionId)
        return scope === undefined
          ? Effect.succeed(unknownSession)
          : visit(contextOf(service, transaction, request, scope, now), sessionId, form)
      })
    )
  }

/** Ends all open sessions whose time has run out, and tells of each. */
export const expireOverdue = (service: Service): Effect.Effect<void, EmulatorError> =>
  Effect.flatMap(unixSeconds, (now) =>
    service.store.transact((transaction) =>
      Effect.sync(() => {
        for (const account of transaction.scopes()) {
          const origin = {
            account,
            connected: account !== service.platformId,
            now,
            request: { id: null, idempotency_key: null }
          }
          const context = requestContext(transaction, origin, service.platformId, service.baseUrl)
          for (const session of context.objects.all("checkout.session")) {
            if (isOverdue(session, now)) expireSession(context, session)
          }
        }
      })
    )
  )
