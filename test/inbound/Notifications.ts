import { expect } from "@effect/vitest"
import { Context, Effect, Option } from "effect"
import Stripe from "stripe"
import { Organizations } from "../../src/identity/organizations/Organizations.ts"
import type { NewReceipt } from "../../src/inbound/ReceiptStatement.ts"
import { Accounts } from "../../src/payments/Accounts.ts"
import type { OrganizationId } from "../../src/platform/kit/Ids.ts"
import type { Author } from "../../src/platform/kit/Tenant.ts"
import { paymentIntent, snapshot } from "../events/ProviderEvents.ts"
import { eventually } from "../harness/Eventually.ts"
import { type Answer, inDatabase, type RequestOptions, TestService, testWebhookSecret } from "../harness/TestService.ts"

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
    return { id, accountId, key: yield* makeKey(id, ["*", "webhook-endpoints:*", "audit-log:read"]) } satisfies Tenant
  }).pipe(Effect.orDie)
}

export const asTenant = (
  tenant: Pick<Tenant, "id" | "key">,
  method: string,
  path: string,
  options: RequestOptions = {}
) =>
  Effect.flatMap(TestService, ({ request }) =>
    request(method, `/v2/organizations/${tenant.id}/integrations${path}`, { key: tenant.key, ...options })
  )

/** Registers a destination; by default one that nothing listens at. */
export const subscribe = Effect.fnUntraced(function* (
  tenant: Tenant,
  events: ReadonlyArray<string> = ["payment.succeeded"],
  url = "http://127.0.0.1:9/hook",
  filters: Readonly<Record<string, unknown>> = {}
) {
  const answer = yield* asTenant(tenant, "POST", "/endpoints", {
    headers: { "idempotency-key": crypto.randomUUID() },
    body: { name: "Orders", url, events, filters }
  })
  if (answer.status !== 200) return yield* Effect.dieMessage(answer.text)
  return { id: String(answer.json["id"]), secret: String(answer.json["signingSecret"]) }
})

/** A tenant with a destination, which is as `subscribe` registers it. */
export const makeSubscriber = (
  events?: ReadonlyArray<string>,
  url?: string,
  filters?: Readonly<Record<string, unknown>>
) =>
  Effect.gen(function* () {
    const tenant = yield* makeTenant
    return { tenant, ...(yield* subscribe(tenant, events, url, filters)) }
  })

/** Who changes what no integrator can. */
export const operator: Author = { kind: "operator", id: "root" }

export const atEndpoints = (tenant: Tenant, method: string, path: string, body?: unknown) =>
  Effect.map(
    asTenant(tenant, method, `/endpoints${path}`, {
      ...(body === undefined ? {} : { body }),
      headers: { "idempotency-key": crypto.randomUUID() }
    }),
    ({ status, text }) => expect(status, text).toBeLessThan(300)
  )

export const setActive = (tenant: Tenant, { id }: { readonly id: string }, active: boolean) =>
  atEndpoints(tenant, "PATCH", `/${id}`, { active })

export const unlink = (tenant: Tenant) =>
  Effect.flatMap(TestService, ({ services }) =>
    Context.get(services, Accounts).unlink({ organizationId: tenant.id, environment: "sandbox" }, operator)
  )

export const newEventId = () => `evt_${crypto.randomUUID().replaceAll("-", "")}`

export interface NotificationOptions {
  readonly id?: string
  readonly type?: string
  readonly object?: unknown
  readonly livemode?: boolean
  readonly created?: number
}

export const notification = (account: string, options: NotificationOptions = {}): string => {
  const { created = Math.floor(Date.now() / 1000), id = newEventId(), object = paymentIntent, ...rest } = options
  const { type = "payment_intent.succeeded", ...further } = rest
  return JSON.stringify(snapshot(type, object, { id, account, created, ...further }), null, 2)
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

export interface ThinOptions {
  readonly id?: string
  readonly type?: string
  readonly created?: string | number
  readonly livemode?: boolean
  readonly context?: string | null
  readonly related?: { readonly id: string; readonly type: string } | null
  readonly snapshot?: string
}

export const thinNotification = (account: string, options: ThinOptions = {}): string => {
  const { id = newEventId(), related = { id: account, type: "account" }, type = "v1.account.updated" } = options
  return JSON.stringify({
    id,
    object: "v2.core.event",
    type,
    created: options.created ?? new Date().toISOString(),
    livemode: options.livemode ?? false,
    context: options.context === undefined ? account : options.context,
    ...(related === null ? {} : { related_object: { ...related, url: `/v1/accounts/${related.id}` } }),
    ...(options.snapshot === undefined ? {} : { snapshot_event: options.snapshot })
  })
}

const notifyAt =
  (path: string) =>
  (
    body: string | Uint8Array,
    header: string | null = typeof body === "string" ? signature(body) : null
  ): Effect.Effect<Answer, never, TestService> =>
    Effect.flatMap(TestService, ({ request }) =>
      request("POST", path, {
        raw: body,
        headers: {
          "content-type": "application/json; charset=utf-8",
          ...(header === null ? {} : { "stripe-signature": header })
        }
      })
    )

/** Sends a notification as the provider does. `header`: another signature; `null`: none. */
export const notify = notifyAt("/webhooks/provider")

export const notifyThin = notifyAt("/webhooks/provider/thin")

/** Dies where the service does not take a notification. */
export const accepted = (answer: Effect.Effect<Answer, never, TestService>) =>
  Effect.flatMap(answer, ({ status, text }) =>
    status === 200 ? Effect.void : Effect.dieMessage(`The service answers ${status} ${text}`)
  )

export const withoutProvider = <A, E, R>(accountId: string, effect: Effect.Effect<A, E, R>) =>
  Effect.flatMap(TestService, ({ emulator }) =>
    emulator
      .addFault({ fault: "no_error_key_404", account: accountId, times: 1000 })
      .pipe(Effect.zipRight(effect), Effect.ensuring(emulator.clearFaults))
  )

/** A receipt of which no event was made, to be stored past the service's entry. */
export const anyReceipt = (accountId: string, organizationId: OrganizationId | null): NewReceipt => ({
  environment: "sandbox",
  providerEventId: newEventId(),
  organizationId,
  accountId,
  type: "payment_intent.succeeded",
  livemode: false,
  outcome: "ignored",
  malformedPart: null,
  providerCreatedAt: new Date(),
  receivedAt: new Date(),
  events: [],
  deauthorizes: false,
  traceparent: null
})

export const receiptKey = (providerEventId: string) => ({ environment: "sandbox", providerEventId }) as const

/** What became of a notification: nothing where there is no receipt of it. */
export const outcomeOf = (providerEventId: string) =>
  Effect.map(
    inDatabase<{ outcome: string }>`SELECT outcome FROM payments.receipts WHERE provider_event_id = ${providerEventId}`,
    ([row]) => row?.outcome
  )

/** Waits for the receipt of a notification that the provider sends. */
export const received = (providerEventId: string) =>
  eventually("the receipt", Effect.map(outcomeOf(providerEventId), Option.fromNullable))

/** As if the provider had told some time ago that the account gave access back. */
export const disconnect = (organizationId: OrganizationId, ago = "0") =>
  inDatabase`
    UPDATE payments.provider_accounts SET status = 'disconnected', disconnected_at = now() - ${ago}::interval
    WHERE organization_id = ${organizationId}`

/** A payment at the provider, whose event the provider keeps: its id, once the receipt of its notification is there. */
export const paidAtProvider = Effect.fnUntraced(function* (
  tenant: Tenant,
  type: "payment_intent.succeeded" | "payment_intent.payment_failed" = "payment_intent.succeeded"
) {
  const { emulator } = yield* TestService
  const { events } = yield* emulator.trigger({ type, account: tenant.accountId })
  const id = events.find((event) => event.type === type)?.id ?? ""
  yield* received(id)
  return id
})

/** The types of the events that were delivered or are to be delivered to an endpoint, in alphabetical order. */
export const typesTo = (endpointId: string) =>
  Effect.map(
    inDatabase<{ type: string }>`
      SELECT e.type FROM payments.deliveries d JOIN payments.events e
        ON e.organization_id = d.organization_id AND e.environment = d.environment AND e.id = d.event_id
      WHERE d.endpoint_id = ${endpointId} ORDER BY e.type`,
    (rows) => rows.map(({ type }) => type)
  )

export const auditedReplays = (tenant: Tenant) =>
  inDatabase`
    SELECT target_id AS target, author_kind AS kind, author_id AS author, environment FROM payments.audit_log
    WHERE organization_id = ${tenant.id} AND action = 'receipt.replayed' ORDER BY id`
