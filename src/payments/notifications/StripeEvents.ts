import { Effect } from "effect"
import { type StripeCall, toJson } from "../stripe/StripeCall.ts"
import { everyEvent, everyPage } from "../stripe/StripePages.ts"
import type { NotificationsPort } from "./Port.ts"

export const stripeEvents = (
  call: StripeCall
): Pick<NotificationsPort, "retrieveEvent" | "listEvents" | "listSubscriptionItems" | "listInvoiceLines"> => ({
  retrieveEvent: (account, id) =>
    Effect.map(
      call("events.retrieve", account, (client, scope) => client.events.retrieve(id, {}, scope)),
      toJson
    ),
  listEvents: (account, { since, until }, take) => {
    const created = {
      gte: Math.floor(since.getTime() / 1000),
      ...(until === undefined ? {} : { lt: Math.ceil(until.getTime() / 1000) })
    }
    return everyEvent(
      (params) => call("events.list", account, (client, scope) => client.events.list({ created, ...params }, scope)),
      (page) =>
        take(page.map((event) => ({ ...toJson(event), id: event.id, type: event.type, created: event.created })))
    )
  },
  listSubscriptionItems: (account, subscription) =>
    Effect.map(
      everyPage((params) =>
        call("subscription_items.list", account, (client, scope) =>
          client.subscriptionItems.list({ subscription, ...params }, scope)
        )
      ),
      (items) => items.map(toJson)
    ),
  listInvoiceLines: (account, invoice) =>
    Effect.map(
      everyPage((params) =>
        call("invoices.listLineItems", account, (client, scope) =>
          client.invoices.listLineItems(invoice, params, scope)
        )
      ),
      (lines) => lines.map(toJson)
    )
})
