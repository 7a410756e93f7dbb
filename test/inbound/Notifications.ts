import { Context, Effect } from "effect"
import Stripe from "stripe"
import { Organizations } from "../../src/identity/Organizations.ts"
import type { OrganizationId } from "../../src/kit/Ids.ts"
import { Accounts } from "../../src/provider/Accounts.ts"
import { paymentIntent, snapshot } from "../events/ProviderEvents.ts"
import { type Answer, TestService, testWebhookSecret } from "../harness/TestService.ts"

/** An organization of one test's own, with a linked sandbox account. */
export interface Tenant {
  readonly id: OrganizationId
  readonly accountId: string
  readonly key: string
}

/** As an account that had payments before, unless a test is about its first one. */
export const makeTenant = makeTenantOf({ hadPaymentsBefore: true })

/** A tenant whose account has seen no payment yet. */
export const makeNewTenant = makeTenantOf({ hadPaymentsBefore: false })

function makeTenantOf({ hadPaymentsBefore }: { readonly hadPaymentsBefore: boolean }) {
  return Effect.gen(function* () {
    const { emulator, makeKey, services, sql } = yield* TestService
    const { id } = yield* Context.get(services, Organizations).create({
      name: "Own",
      ownerEmail: `${crypto.randomUUID()}@example.com`
    })
    const accountId = yield* emulator.ensureAccount()
    yield* Context.get(services, Accounts).link({ organizationId: id, environment: "sandbox" }, accountId)
    yield* sql`
    UPDATE payments.provider_accounts SET had_payments_before = ${hadPaymentsBefore} WHERE account_id = ${accountId}`
    return { id, accountId, key: yield* makeKey(id, ["*", "webhook-endpoints:*"]) } satisfies Tenant
  }).pipe(Effect.orDie)
}

/** Registers a destination; by default one that nothing listens at. */
export const subscribe = Effect.fnUntraced(function* (
  tenant: Tenant,
  events: ReadonlyArray<string> = ["payment.succeeded"],
  url = "http://127.0.0.1:9/hook",
  filters: Readonly<Record<string, unknown>> = {}
) {
  const { request } = yield* TestService
  const answer = yield* request("POST", `/v2/organizations/${tenant.id}/integrations/endpoints`, {
    key: tenant.key,
    headers: { "idempotency-key": crypto.randomUUID() },
    body: { name: "Orders", url, events, filters }
  })
  if (answer.status !== 200) return yield* Effect.dieMessage(answer.text)
  return { id: String(answer.json["id"]), secret: String(answer.json["signingSecret"]) }
})

/** A provider event id that no other test has. */
export const newEventId = () => `evt_${crypto.randomUUID().replaceAll("-", "")}`

export interface NotificationOptions {
  readonly id?: string
  readonly type?: string
  readonly object?: unknown
  readonly livemode?: boolean
  readonly created?: number
}

/** The body of a notification about an account, `payment_intent.succeeded` by default. */
export const notification = (account: string, options: NotificationOptions = {}): string => {
  const { id = newEventId(), object = paymentIntent, type = "payment_intent.succeeded", ...rest } = options
  return JSON.stringify(snapshot(type, object, { id, account, ...rest }), null, 2)
}

/** The provider's signature of a body, made by its own package. */
export const signature = (
  body: string,
  options: { readonly secret?: string; readonly secondsFromNow?: number } = {}
): string =>
  Stripe.webhooks.generateTestHeaderString({
    payload: body,
    secret: options.secret ?? testWebhookSecret,
    timestamp: Math.floor(Date.now() / 1000) + (options.secondsFromNow ?? 0)
  })

/** Sends a notification as the provider does. `header`: another signature; `null`: none. */
export const notify = (
  body: string | Uint8Array,
  header: string | null = typeof body === "string" ? signature(body) : null
): Effect.Effect<Answer, never, TestService> =>
  Effect.flatMap(TestService, ({ request }) =>
    request("POST", "/webhooks/provider", {
      raw: body,
      headers: {
        "content-type": "application/json; charset=utf-8",
        ...(header === null ? {} : { "stripe-signature": header })
      }
    })
  )
