import { randomUUID } from "node:crypto"
import { Effect } from "effect"
import type { Answer, TestService } from "../../harness/TestService.ts"

/** Payments as payers make them: through the service's checkout, on the provider's own page. */

const textOf = (answer: Answer, field: string): string => {
  const { [field]: value } = answer.json
  if (typeof value !== "string") {
    throw new Error(`No ${field} in ${answer.status} ${answer.text}`)
  }
  return value
}

interface Tenant {
  readonly organizationId: string
  readonly key: string
}

/** Sends what creates something, under a new idempotency key. */
export const posting =
  ({ request }: Pick<TestService["Type"], "request">, { key, organizationId }: Tenant) =>
  (path: string, body?: unknown) =>
    request("POST", `/v2/organizations/${organizationId}${path}`, {
      key,
      headers: { "idempotency-key": randomUUID() },
      body
    })

/** Pays for a price in a checkout session of this mode; answers the session as it is then. */
export const pay = Effect.fnUntraced(function* (
  service: Pick<TestService["Type"], "request">,
  tenant: Tenant & { readonly priceId: string },
  mode: "payment" | "subscription" = "payment"
) {
  const path = "/provider/checkout/sessions"
  const body = { mode, line_items: [{ price: tenant.priceId, quantity: 1 }] }
  const created = yield* posting(service, tenant)(path, body)
  const page = textOf(created, "url")
  yield* Effect.promise(() =>
    fetch(page, { method: "POST", body: new URLSearchParams({ action: "pay" }), redirect: "manual" })
  )
  const session = `/v2/organizations/${tenant.organizationId}${path}/${textOf(created, "id")}`
  const paid = yield* service.request("GET", session, { key: tenant.key })
  if (paid.json["status"] !== "complete") {
    throw new Error(`The session was not paid: ${paid.text}`)
  }
  return paid
})

/** A product and a price in the tenant's catalog, by the service; recurring where it says so. */
export const makePrice = Effect.fnUntraced(function* (
  service: Pick<TestService["Type"], "request">,
  tenant: Tenant,
  more: Readonly<Record<string, unknown>> = {}
) {
  const post = posting(service, tenant)
  const product = textOf(yield* post("/provider/products", { name: "Coffee" }), "id")
  return textOf(yield* post("/provider/prices", { product, currency: "brl", unit_amount: 1500, ...more }), "id")
})

/** A payment with a refund of a cent, a dispute, two subscriptions with a customer, and a payout of a tenant. */
export const makeMoney = Effect.fnUntraced(function* (
  service: TestService["Type"],
  tenant: Tenant & { readonly priceId: string }
) {
  const { emulator, request, sql } = service
  const paymentIntentId = textOf(yield* pay(service, tenant), "payment_intent")
  const intent = yield* request(
    "GET",
    `/v2/organizations/${tenant.organizationId}/provider/payment-intents/${paymentIntentId}`,
    { key: tenant.key }
  )
  const monthly = yield* makePrice(service, tenant, { recurring: { interval: "month" } })
  const subscribed = yield* pay(service, { ...tenant, priceId: monthly }, "subscription")
  const refunded = yield* posting(service, tenant)("/provider/refunds", { payment_intent: paymentIntentId, amount: 1 })
  const [linked] = yield* sql<{ accountId: string }>`
    SELECT account_id AS "accountId" FROM payments.provider_accounts
    WHERE organization_id = ${tenant.organizationId} AND environment = 'sandbox'`
  const account = linked?.accountId ?? ""
  const payoutId = yield* emulator.orderPayout({ account, amount: 500, currency: "brl", state: "paid" })
  return {
    paymentIntentId,
    chargeId: textOf(intent, "latest_charge"),
    refundId: textOf(refunded, "id"),
    disputeId: (yield* emulator.trigger({ type: "charge.dispute.created", account })).object,
    customerId: textOf(subscribed, "customer"),
    subscriptionId: textOf(subscribed, "subscription"),
    cancelableSubscriptionId: (yield* emulator.trigger({ type: "customer.subscription.created", account })).object,
    payoutId
  }
})
