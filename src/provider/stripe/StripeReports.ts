import { Effect } from "effect"
import type { Provider } from "../Provider.ts"
import { type StripeCall, toJson } from "./StripeCall.ts"
import { everyPage } from "./StripePages.ts"

/** What completes and repeats the notifications of Stripe. */

/** The operations of `Provider` on events and on the lists that these cut off. */
export const stripeReports = (call: StripeCall) =>
  ({
    retrieveEvent: (account, id) =>
      Effect.map(
        call("events.retrieve", account, (client, scope) => client.events.retrieve(id, {}, scope)),
        toJson
      ),
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
  }) satisfies Partial<Provider["Type"]>
