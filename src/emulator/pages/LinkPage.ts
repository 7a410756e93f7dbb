import { Effect } from "effect"
import { requestContext } from "../api/Route.ts"
import type { EmulatorError } from "../EmulatorError.ts"
import type { HttpReply, HttpRequest } from "../Http.ts"
import type { PaymentLink } from "../Records.ts"
import { isOpen, openPaymentLink } from "../resources/PaymentLinks.ts"
import { type Service, transactNow } from "../Service.ts"
import { messageReply, redirect } from "./PageReplies.ts"

const unknownLink = messageReply(404, "Not found", "There is no such payment link.")

export const closedLink = ({ inactive_message }: PaymentLink): HttpReply =>
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
