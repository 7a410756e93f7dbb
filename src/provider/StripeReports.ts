import { Effect } from "effect"
import type Stripe from "stripe"
import { ProviderUnavailable } from "../Errors.ts"
import type { Provider } from "./Provider.ts"
import type { AccountAccessRevoked, ProviderFailure } from "./ProviderErrors.ts"
import type { ProviderObject } from "./Schemas.ts"
import { type StripeCall, toJson } from "./StripeCall.ts"

/** What completes and repeats the notifications of Stripe. */

/** The largest page of Stripe's lists. */
const pageSize = 100

type Page<A> = Effect.Effect<Stripe.ApiList<A>, ProviderFailure | AccountAccessRevoked>

/** More pages than any subscription or invoice has: an invoice has at most some hundred lines. */
const maximumPages = 50

/**
 * All objects of a list, page by page. An empty page ends it, whatever else it says. A list that never ends, or that comes
 * back to where it was, is no answer of the provider's.
 */
const everyPage = <A extends { readonly id: string }>(
  ask: (params: { readonly limit: number; readonly starting_after?: string }) => Page<A>
): Effect.Effect<ReadonlyArray<ProviderObject>, ProviderFailure | AccountAccessRevoked> =>
  Effect.gen(function* () {
    const all: Array<ProviderObject> = []
    const asked = new Set<string>()
    let last: A | undefined
    do {
      if (last !== undefined && (asked.has(last.id) || asked.size === maximumPages - 1)) {
        return yield* new ProviderUnavailable({ cause: "A list of the provider does not end" })
      }
      if (last !== undefined) asked.add(last.id)
      const page = yield* ask({ limit: pageSize, ...(last === undefined ? {} : { starting_after: last.id }) })
      all.push(...page.data.map(toJson))
      last = page.has_more ? page.data.at(-1) : undefined
    } while (last !== undefined)
    return all
  })

/** The operations of `Provider` on events and on the lists that these cut off. */
export const stripeReports = (call: StripeCall) =>
  ({
    retrieveEvent: (account, id) =>
      Effect.map(
        call("events.retrieve", account, (client, scope) => client.events.retrieve(id, {}, scope)),
        toJson
      ),
    listSubscriptionItems: (account, subscription) =>
      everyPage((params) =>
        call("subscription_items.list", account, (client, scope) =>
          client.subscriptionItems.list({ subscription, ...params }, scope)
        )
      ),
    listInvoiceLines: (account, invoice) =>
      everyPage((params) =>
        call("invoices.listLineItems", account, (client, scope) =>
          client.invoices.listLineItems(invoice, params, scope)
        )
      )
  }) satisfies Partial<Provider["Type"]>
