import { Effect, Schema } from "effect"
import { deliveriesHandlers } from "../../destinations/deliveries/Http.ts"
import { EndpointList } from "../../destinations/endpoints/Api.ts"
import { Endpoints } from "../../destinations/endpoints/Endpoints.ts"
import { endpointsHandlers } from "../../destinations/endpoints/Http.ts"
import { eventReplaysHandlers } from "../../destinations/event-replays/Http.ts"
import { eventTriggersHandlers } from "../../destinations/event-triggers/Http.ts"
import { eventsHandlers } from "../../destinations/events/Http.ts"
import { recoveriesHandlers } from "../../destinations/recoveries/Http.ts"
import { statisticsHandlers } from "../../destinations/statistics/Http.ts"
import { eventTypes } from "../../events/Catalog.ts"
import { Deleted } from "../../identity/KeyedWrite.ts"
import { accountHandlers, balanceTransactionsHandlers, payoutsHandlers } from "../../payments/account/Http.ts"
import { checkoutPagesHandlers } from "../../payments/checkout-pages/Http.ts"
import { checkoutSessionsHandlers } from "../../payments/checkout-sessions/Http.ts"
import { paymentLinksHandlers } from "../../payments/payment-links/Http.ts"
import {
  chargesHandlers,
  customersHandlers,
  disputesHandlers,
  paymentIntentsHandlers,
  refundsHandlers
} from "../../payments/payments/Http.ts"
import { pricesHandlers } from "../../payments/prices/Http.ts"
import { productsHandlers } from "../../payments/products/Http.ts"
import { promotionCodesHandlers } from "../../payments/promotion-codes/Http.ts"
import { searchHandlers } from "../../payments/search/Http.ts"
import { subscriptionsHandlers } from "../../payments/subscriptions/Http.ts"
import { strict } from "../../platform/kit/Request.ts"
import { operationTools } from "./OperationTool.ts"
import { makeTool, NoArguments, type Tool } from "./Tool.ts"

/** Tools for webhook destinations, their events and deliveries (contract 5.7, 9.10). */

const endpoint = { idName: "endpointId", openWorld: false } as const
const sends = { idName: "endpointId" } as const

/** Tools that return parts of the list of endpoints, which is long over HTTP. */
const makeEndpointLists = Effect.map(Endpoints, (endpoints) => [
  makeTool({
    name: "list_event_types",
    title: "List event types",
    description: "Lists the event types that an endpoint can subscribe to, with a sentence about each.",
    permission: "webhook-endpoints:read",
    annotations: { readOnlyHint: true, openWorldHint: false },
    input: NoArguments,
    output: Schema.Struct({ data: EndpointList.fields.eventTypes }),
    run: () => Effect.succeed({ data: eventTypes })
  }),
  makeTool({
    name: "list_webhook_endpoints",
    title: "List webhook endpoints",
    description:
      "Lists the organization's webhook endpoints in the key's environment, newest first: URL, subscribed events, filters, whether active, and how many deliveries failed for good in the last 24 hours.",
    permission: "webhook-endpoints:read",
    annotations: { readOnlyHint: true, openWorldHint: false },
    input: NoArguments,
    output: Schema.Struct({ data: EndpointList.fields.data }),
    run: (principal) => Effect.map(endpoints.list(principal), ({ data }) => ({ data }))
  })
])

const webhookTools = [
  makeEndpointLists,
  operationTools(endpointsHandlers, {
    create: {
      name: "create_webhook_endpoint",
      description:
        "It is active, and signed events are sent to it. The answer holds its signing secret, `signingSecret`, and the same as Standard Webhooks libraries take it, `standardWebhooksSecret`. Both are shown only this once: give them to those who verify the events, and to nobody else."
    },
    update: [
      {
        ...endpoint,
        name: "set_webhook_endpoint_active",
        title: "Pause or activate a webhook endpoint",
        description:
          "`active: false`: no new events are queued for it, deliveries already queued are still sent. `active: true`: new events are matched from now on.",
        body: strict(
          Schema.Struct({ active: Schema.Boolean.annotations({ description: "true activates, false pauses" }) })
        ),
        destructive: true,
        idempotent: true
      },
      {
        ...endpoint,
        name: "update_webhook_endpoint",
        description:
          "Absent arguments are unchanged. `events` and `filters` are replaced as a whole, and apply to events from now on: deliveries already queued are still sent. The URL never changes: create another endpoint for that.",
        destructive: true,
        idempotent: true
      }
    ],
    delete: {
      ...endpoint,
      name: "delete_webhook_endpoint",
      description:
        "Permanent: its secrets are erased, and waiting deliveries are never sent (`failed` with `endpoint_deleted`). Its deliveries stay readable. It can't be undone: only do this when asked, and pause an endpoint (set_webhook_endpoint_active) if it may be needed again.",
      output: Deleted,
      destructive: true,
      idempotent: true
    },
    skipped: {
      ...endpoint,
      name: "list_skipped_webhook_events",
      description:
        "Each is shown as it would have been sent. Skipped events have no deliveries, so they can't be re-sent: pass them to the receiver from here.",
      advice: "`has_more` says whether there is another page: pass the last `eventId` as `starting_after`."
    },
    test: {
      ...sends,
      name: "send_webhook_test_event",
      description:
        "Queues an event with `test: true` and fictitious data, of a type that the endpoint subscribes to. Only for active endpoints in the sandbox, at most 5 new ones per minute and endpoint. It proves nothing about any payment. Check the result with get_webhook_delivery and the `id` of the answer."
    },
    rotateSecret: {
      ...endpoint,
      name: "rotate_webhook_secret",
      description:
        "It is shown only this once as `signingSecret`, and as `standardWebhooksSecret` in the form of Standard Webhooks libraries. For 24 hours new events carry signatures with the new and the previous secret; then the previous one is discarded. Only do this when asked: those who verify the events need the new secret within that time.",
      destructive: true
    }
  }),
  operationTools(deliveriesHandlers, {
    list: {
      ...endpoint,
      name: "list_webhook_deliveries",
      description:
        "Each with its state (`queued`, `delivered`, `failed`), attempts so far, when the next one is due, the last HTTP status or error code."
    },
    listAll: {
      name: "list_all_webhook_deliveries",
      openWorld: false,
      description:
        "The deliveries to all endpoints, as list_webhook_deliveries shows those to one: `state: failed` finds what failed."
    },
    get: { name: "get_webhook_delivery", idName: "deliveryId", openWorld: false },
    retry: {
      name: "retry_webhook_delivery",
      idName: "deliveryId",
      description:
        "Queues it for one more attempt at once: up to 12 attempts in all, within 72 hours of its creation. Find out first why it failed (get_webhook_delivery), and check the result afterwards."
    }
  }),
  operationTools(statisticsHandlers, {
    get: {
      name: "get_webhook_statistics",
      openWorld: false,
      description:
        "For each day: payments with their amounts, and deliveries by state, of the organization and of each endpoint. Exact counts, unlike those of a page of a list; without synthetic tests. Kept for 90 days."
    }
  }),
  operationTools(eventTriggersHandlers, {
    create: {
      name: "trigger_webhook_event",
      description:
        "Only in the sandbox: the local provider does what causes it, or, with a real provider, a synthetic event goes to everybody who listens to the stream of events. It proves nothing about any payment."
    }
  }),
  operationTools(recoveriesHandlers, {
    start: {
      ...sends,
      name: "recover_webhook_endpoint",
      description:
        "Queues each for one more attempt, in the background, except test events; `since` is at most 72 hours back. Only do this once the endpoint works again. An endpoint has one running recovery: a repeated call returns it. Follow its progress with list_webhook_recoveries."
    },
    list: {
      ...endpoint,
      name: "list_webhook_recoveries",
      description:
        "Each says how many deliveries had failed, how many were queued again or could not be, and whether it is finished."
    }
  }),
  operationTools(eventsHandlers, {
    list: {
      name: "list_webhook_events",
      openWorld: false,
      description:
        "Whether or not they were delivered to anybody; each with the event as it is sent. If a `type` is rare in a long history, give the time too."
    },
    get: { name: "get_webhook_event", idName: "eventId", openWorld: false }
  }),
  operationTools(eventReplaysHandlers, {
    start: {
      ...sends,
      name: "replay_webhook_events",
      description:
        "The endpoint must be active. They become new deliveries, whatever happened to them before, oldest first, in the background: for an endpoint that is new, or lost what it had received. To re-send only what failed, use recover_webhook_endpoint. The consumer sees the same event ids again. An endpoint has one running replay. Follow its progress with list_webhook_replays."
    },
    list: {
      ...endpoint,
      name: "list_webhook_replays",
      description: "Each shows its progress, and how many deliveries it has created."
    },
    cancel: {
      ...endpoint,
      name: "cancel_webhook_replay",
      description:
        "The replay creates no more deliveries; those already created are sent. A replay that has ended stays as it is.",
      destructive: true,
      idempotent: true
    }
  })
]

/** Tools for payments (contract 4): each is an operation on the connected account, or on the pages that sell on it. */

const smallestUnit = "Amounts are whole numbers of the currency's smallest unit: 1500 is R$15.00."

const whenAsked = "Only do this when asked."

const paymentTools = [
  operationTools(productsHandlers, {
    create: { name: "create_product", advice: smallestUnit, repeats: "derived" },
    update: {
      name: "update_product",
      description:
        "Absent arguments are unchanged, and `metadata` is merged. `default_price` sets one of the product's prices, `default_price_data` creates a new one. The former price stays as it is. `active: false` takes the product off sale.",
      destructive: true
    }
  }),
  operationTools(pricesHandlers, {
    create: { name: "create_price", advice: smallestUnit, repeats: "derived" },
    update: { name: "update_price", destructive: true, idempotent: true }
  }),
  operationTools(checkoutSessionsHandlers, {
    get: {
      name: "get_checkout_session",
      advice: "It is paid only if `status` is `complete` and `payment_status` is `paid`."
    },
    lineItems: "list_checkout_session_line_items",
    create: {
      name: "create_checkout_session",
      description:
        "Returns the session with its `url`, a page that is only for the payer; list_checkout_session_line_items shows what it sells. A recurring price (mode `subscription`) also needs the permission `subscriptions:write`; its trial is passed on. `metadata` is copied to the payment or the subscription. Opening the page or returning from it confirms nothing: read the session (get_checkout_session) or wait for the events.",
      advice:
        "For one payer and one payment: give the `url` of the answer to that payer alone. For a page that many can pay at, use create_payment_link. Nothing is paid by creating it."
    },
    expire: {
      name: "expire_checkout_session",
      description:
        "The page can't be paid from then on. Expiring an expired session changes nothing and returns it as it is. A `complete` session is refused with `provider_invalid_request_error`: the payer was faster. Read it, and refund what was paid.",
      advice: whenAsked,
      destructive: true,
      idempotent: true
    }
  }),
  operationTools(paymentLinksHandlers, {
    lineItems: "list_payment_link_line_items",
    create: {
      name: "create_payment_link",
      advice: "Anybody who has the `url` of the answer can pay there, any number of times, until it is deactivated.",
      repeats: "derived"
    },
    update: { name: "update_payment_link", destructive: true, idempotent: true }
  }),
  operationTools(checkoutPagesHandlers, {
    create: {
      name: "create_checkout_page",
      advice:
        "Anybody who has the `url` of the answer can pay there, any number of times, until it is closed (update_checkout_page). `unitAmount` is in the currency's smallest unit.",
      repeats: "derived"
    },
    update: {
      name: "update_checkout_page",
      advice: "`active: false` closes the page, `active: true` opens it again.",
      destructive: true,
      idempotent: true
    },
    delete: {
      name: "delete_checkout_page",
      advice: `${whenAsked} It can't be undone: close a page (update_checkout_page) if it may be needed again.`,
      output: Deleted,
      destructive: true,
      idempotent: true
    }
  }),
  operationTools(promotionCodesHandlers, {
    create: { name: "create_promotion_code", repeats: "derived" },
    update: { name: "update_promotion_code", destructive: true, idempotent: true }
  }),
  operationTools(paymentIntentsHandlers),
  operationTools(searchHandlers, { payments: { name: "search_payments", reads: true } }),
  operationTools(chargesHandlers),
  operationTools(refundsHandlers, {
    create: {
      name: "create_refund",
      advice: `${whenAsked} It gives money back and can't be undone. ${smallestUnit}`,
      destructive: true,
      repeats: "derived"
    }
  }),
  operationTools(disputesHandlers),
  operationTools(customersHandlers),
  operationTools(subscriptionsHandlers, {
    update: { name: "update_subscription", advice: whenAsked, destructive: true, idempotent: true },
    cancel: {
      name: "cancel_subscription",
      description:
        "Cancels at once, for good, and returns the subscription. Past payments are not refunded. Canceling a canceled subscription changes nothing and returns it as it is.",
      advice: `${whenAsked} To let what was paid for run out, use update_subscription with \`cancel_at_period_end\`.`,
      destructive: true,
      idempotent: true
    }
  }),
  operationTools(accountHandlers),
  operationTools(balanceTransactionsHandlers),
  operationTools(payoutsHandlers)
]

export type Tools = ReadonlyMap<string, Tool>

/** Creates the tools once; what a caller sees of them depends on its permissions and its connection. */
export const makeTools = Effect.map(
  Effect.all([...paymentTools, ...webhookTools]),
  (groups): Tools => new Map(groups.flat().map((tool) => [tool.name, tool]))
)
