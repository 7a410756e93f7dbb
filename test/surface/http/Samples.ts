import { randomUUID } from "node:crypto"
import type { SqlClient, SqlError } from "@effect/sql"
import { expect } from "@effect/vitest"
import { Context, Effect, Layer, Option } from "effect"
import type { YieldWrap } from "effect/Utils"
import { v7 } from "uuid"
import { eventKey } from "../../../src/destinations/publishing/Publication.ts"
import type { Permission } from "../../../src/identity/keys/Permissions.ts"
import { operations } from "../../../src/surface/contract/Api.ts"
import { type Operation, operationKey } from "../../../src/surface/contract/Operations.ts"
import { endQueued } from "../../destinations/deliveries/StoredDeliveries.ts"
import { eventuallyTrue } from "../../harness/Eventually.ts"
import { type Answer, type RequestOptions, TestService } from "../../harness/TestService.ts"
import { png } from "../../payments/images/Pictures.ts"
import { makeMoney, posting } from "./Payments.ts"

/** Things of the provider's that the operations name by id, as they are called where there is no account. */
const absentThings = {
  productId: "prod_live1234",
  priceId: "price_live1234",
  sessionId: "cs_live_1234",
  promotionCodeId: "promo_live1234",
  paymentLinkId: "plink_live1234",
  paymentIntentId: "pi_live1234",
  chargeId: "ch_live1234",
  refundId: "re_live1234",
  disputeId: "du_live1234",
  customerId: "cus_live1234",
  subscriptionId: "sub_live1234",
  cancelableSubscriptionId: "sub_live5678",
  payoutId: "po_live1234"
}

/** What a tenant has that the operations name by id. Some are of no use to other operations than their own end. */
export type Things = Readonly<
  Record<
    | keyof typeof absentThings
    | "endpointId"
    | "deletableEndpointId"
    | "deliveryId"
    | "recoveryId"
    | "replayId"
    | "eventId"
    | "checkoutPageId"
    | "deletableCheckoutPageId",
    string
  >
>

interface Sample {
  readonly permission: Permission
  readonly id?: keyof Things
  readonly body?: (things: Things) => Readonly<Record<string, unknown>>
  readonly query?: string
  /** Sent as it is, in place of a JSON body. */
  readonly raw?: Uint8Array
  readonly status?: number
  /** Brings back what the request uses up, where it can be made only once. */
  readonly restore?: (sql: SqlClient.SqlClient, things: Things) => Effect.Effect<unknown, SqlError.SqlError>
}

const P = "/v2/organizations/:organizationId/provider"
const M = "/v2/organizations/:organizationId/integrations"

/** A good request of every operation that needs a credential. An operation without one here fails the suites. */
export const samples: Readonly<Record<string, Sample>> = {
  [`POST ${P}/products`]: { permission: "products:write", body: () => ({ name: "Coffee" }) },
  [`GET ${P}/products`]: { permission: "products:read" },
  [`GET ${P}/products/:id`]: { permission: "products:read", id: "productId" },
  [`PATCH ${P}/products/:id`]: { permission: "products:write", id: "productId", body: () => ({ name: "Tea" }) },
  [`POST ${P}/prices`]: {
    permission: "products:write",
    body: ({ productId }) => ({ product: productId, currency: "brl", unit_amount: 1500 })
  },
  [`GET ${P}/prices`]: { permission: "products:read" },
  [`GET ${P}/prices/:id`]: { permission: "products:read", id: "priceId" },
  [`PATCH ${P}/prices/:id`]: { permission: "products:write", id: "priceId", body: () => ({ nickname: "Beans" }) },
  [`POST ${P}/checkout/sessions`]: {
    permission: "payments:write",
    body: ({ priceId }) => ({ mode: "payment", line_items: [{ price: priceId, quantity: 2 }] })
  },
  [`GET ${P}/checkout/sessions`]: { permission: "payments:read" },
  [`GET ${P}/checkout/sessions/:id`]: { permission: "payments:read", id: "sessionId" },
  [`GET ${P}/checkout/sessions/:id/line-items`]: { permission: "payments:read", id: "sessionId" },
  [`POST ${P}/checkout/sessions/:id/expire`]: { permission: "payments:write", id: "sessionId" },
  [`POST ${P}/search`]: { permission: "payments:read", body: () => ({ client_reference_id: "order-1" }) },
  [`POST ${P}/promotion-codes`]: {
    permission: "coupons:write",
    body: () => ({
      code: `C${randomUUID().replaceAll("-", "")}`,
      discount: { percent_off: 10 },
      duration: "repeating",
      duration_in_months: 3
    })
  },
  [`GET ${P}/promotion-codes`]: { permission: "coupons:read" },
  [`GET ${P}/promotion-codes/:id`]: { permission: "coupons:read", id: "promotionCodeId" },
  [`PATCH ${P}/promotion-codes/:id`]: {
    permission: "coupons:write",
    id: "promotionCodeId",
    body: () => ({ active: true })
  },
  [`POST ${P}/payment-links`]: {
    permission: "payments:write",
    body: ({ priceId }) => ({ line_items: [{ price: priceId, quantity: 1 }] })
  },
  [`GET ${P}/payment-links`]: { permission: "payments:read" },
  [`GET ${P}/payment-links/:id`]: { permission: "payments:read", id: "paymentLinkId" },
  [`GET ${P}/payment-links/:id/line-items`]: { permission: "payments:read", id: "paymentLinkId" },
  [`PATCH ${P}/payment-links/:id`]: {
    permission: "payments:write",
    id: "paymentLinkId",
    body: () => ({ active: true })
  },
  [`POST ${P}/checkout-pages`]: {
    permission: "payments:write",
    body: ({ priceId }) => ({ title: "Coffee", items: [{ price: priceId, quantity: 1 }] })
  },
  [`GET ${P}/checkout-pages`]: { permission: "payments:read" },
  [`GET ${P}/checkout-pages/:id`]: { permission: "payments:read", id: "checkoutPageId" },
  [`PATCH ${P}/checkout-pages/:id`]: {
    permission: "payments:write",
    id: "checkoutPageId",
    body: () => ({ active: true })
  },
  [`DELETE ${P}/checkout-pages/:id`]: {
    permission: "payments:write",
    id: "deletableCheckoutPageId",
    status: 204,
    restore: (sql, { deletableCheckoutPageId }) =>
      sql`UPDATE payments.checkout_pages SET deleted_at = NULL WHERE id = ${deletableCheckoutPageId}`
  },
  [`GET ${P}/account`]: { permission: "payment-account:read" },
  [`GET ${P}/balance`]: { permission: "payment-account:read" },
  [`GET ${P}/payout-settings`]: { permission: "payment-account:read" },
  [`GET ${P}/balance-transactions`]: { permission: "transactions:read" },
  [`GET ${P}/payouts`]: { permission: "payment-account:read" },
  [`GET ${P}/payouts/:id`]: { permission: "payment-account:read", id: "payoutId" },
  [`GET ${P}/charges`]: { permission: "payments:read" },
  [`GET ${P}/charges/:id`]: { permission: "payments:read", id: "chargeId" },
  [`GET ${P}/payment-intents`]: { permission: "payments:read" },
  [`GET ${P}/payment-intents/:id`]: { permission: "payments:read", id: "paymentIntentId" },
  [`POST ${P}/refunds`]: {
    permission: "payments:write",
    body: ({ paymentIntentId }) => ({ payment_intent: paymentIntentId, amount: 1 })
  },
  [`GET ${P}/refunds`]: { permission: "payments:read" },
  [`GET ${P}/refunds/:id`]: { permission: "payments:read", id: "refundId" },
  [`GET ${P}/disputes`]: { permission: "payments:read" },
  [`GET ${P}/disputes/:id`]: { permission: "payments:read", id: "disputeId" },
  [`GET ${P}/customers`]: { permission: "payments:read" },
  [`GET ${P}/customers/:id`]: { permission: "payments:read", id: "customerId" },
  [`GET ${P}/subscriptions`]: { permission: "payments:read" },
  [`GET ${P}/subscriptions/:id`]: { permission: "payments:read", id: "subscriptionId" },
  [`PATCH ${P}/subscriptions/:id`]: {
    permission: "subscriptions:write",
    id: "subscriptionId",
    body: () => ({ cancel_at_period_end: true })
  },
  [`POST ${P}/subscriptions/:id/cancel`]: { permission: "subscriptions:write", id: "cancelableSubscriptionId" },
  [`POST ${P}/product-images`]: { permission: "products:write", raw: png() },
  [`GET ${M}/endpoints`]: { permission: "webhook-endpoints:read" },
  [`POST ${M}/endpoints`]: {
    permission: "webhook-endpoints:write",
    body: () => ({ name: "Orders", url: "https://93.184.215.14/hook", events: ["payment.succeeded"] })
  },
  [`GET ${M}/endpoints/:id`]: { permission: "webhook-endpoints:read", id: "endpointId" },
  [`PATCH ${M}/endpoints/:id`]: {
    permission: "webhook-endpoints:write",
    id: "endpointId",
    body: () => ({ active: true })
  },
  [`DELETE ${M}/endpoints/:id`]: {
    permission: "webhook-endpoints:write",
    id: "deletableEndpointId",
    status: 204,
    restore: (sql, { deletableEndpointId }) =>
      sql`UPDATE payments.endpoints SET deleted_at = NULL WHERE id = ${deletableEndpointId}`
  },
  [`POST ${M}/endpoints/:id/rotate-secret`]: { permission: "webhook-endpoints:write", id: "endpointId" },
  [`POST ${M}/endpoints/:id/test`]: {
    permission: "webhook-endpoints:write",
    id: "endpointId",
    body: () => ({ type: "payment.succeeded" })
  },
  [`GET ${M}/endpoints/:id/skipped`]: { permission: "webhook-endpoints:read", id: "endpointId" },
  [`GET ${M}/endpoints/:id/deliveries`]: { permission: "webhook-endpoints:read", id: "endpointId" },
  [`GET ${M}/audit-log`]: { permission: "audit-log:read" },
  [`GET ${M}/deliveries`]: { permission: "webhook-endpoints:read" },
  [`GET ${M}/statistics`]: { permission: "webhook-endpoints:read" },
  [`GET ${M}/deliveries/:id`]: { permission: "webhook-endpoints:read", id: "deliveryId" },
  [`POST ${M}/deliveries/:id/retry`]: {
    permission: "webhook-endpoints:write",
    id: "deliveryId",
    restore: (sql, { deliveryId }) => endQueued(sql, sql`id = ${deliveryId}`, "failed")
  },
  [`POST ${M}/endpoints/:id/recover`]: {
    permission: "webhook-endpoints:write",
    id: "endpointId",
    body: () => ({ since: new Date(Date.now() - 3_600_000).toISOString() }),
    status: 202
  },
  [`POST ${M}/event-triggers`]: {
    permission: "webhook-endpoints:write",
    body: () => ({ type: "payment.succeeded" })
  },
  [`GET ${M}/event-stream`]: { permission: "webhook-endpoints:read", query: "?follow=false" },
  [`GET ${M}/endpoints/:id/recoveries`]: { permission: "webhook-endpoints:read", id: "endpointId" },
  [`GET ${M}/endpoints/:id/recoveries/:recoveryId`]: { permission: "webhook-endpoints:read", id: "endpointId" },
  [`GET ${M}/events`]: { permission: "webhook-endpoints:read" },
  [`GET ${M}/events/:id`]: { permission: "webhook-endpoints:read", id: "eventId" },
  [`POST ${M}/endpoints/:id/replay`]: {
    permission: "webhook-endpoints:write",
    id: "endpointId",
    body: () => ({ since: new Date(Date.now() - 3_600_000).toISOString(), types: ["payment.succeeded"] }),
    status: 202,
    // One that waits for room at its endpoint is still running
    restore: (sql, { endpointId }) => sql`
      UPDATE payments.event_replays SET state = 'canceled', finished_at = now()
      WHERE endpoint_id = ${endpointId} AND state = 'running'`
  },
  [`GET ${M}/endpoints/:id/replays`]: { permission: "webhook-endpoints:read", id: "endpointId" },
  [`GET ${M}/endpoints/:id/replays/:replayId`]: { permission: "webhook-endpoints:read", id: "endpointId" },
  [`POST ${M}/endpoints/:id/replays/:replayId/cancel`]: { permission: "webhook-endpoints:write", id: "endpointId" }
}

export const authenticatedOperations: ReadonlyArray<Operation> = operations.filter(
  ({ permission }) => permission !== undefined
)

export const sampleOf = (operation: Operation): Sample => {
  const sample = samples[operationKey(operation.method, operation.path)]
  if (sample === undefined) {
    throw new Error(`${operationKey(operation.method, operation.path)} has no sample in Samples.ts: add one`)
  }
  return sample
}

/** Whether an operation is one of the provider's; checkout pages are the service's own. */
export const isProviderOperation = ({ path }: Operation): boolean =>
  path.startsWith(P) && !path.startsWith(`${P}/checkout-pages`)

export const pathOf = (operation: Operation, organizationId: string, things: Things): string => {
  const { id, query = "" } = sampleOf(operation)
  const path = operation.path
    .replace(":organizationId", organizationId)
    .replace(":id", id === undefined ? "" : encodeURIComponent(things[id]))
    .replace(":recoveryId", things.recoveryId)
    .replace(":replayId", things.replayId)
  return `${path}${query}`
}

/** Has the operation's good request be good once more, after it was made. */
export const restore = (operation: Operation, things: Things) =>
  Effect.flatMap(TestService, ({ sql }) => Effect.orDie(sampleOf(operation).restore?.(sql, things) ?? Effect.void))

/** What a good request of the operation sends, each time as a new intended effect. */
export const optionsOf = (
  operation: Operation,
  things: Things
): Pick<RequestOptions, "body" | "raw" | "headers"> & { readonly headers: Record<string, string> } => {
  const sample = sampleOf(operation)
  const body = sample.body?.(things)
  return {
    headers: Option.isSome(operation.endpoint.headersSchema) ? { "idempotency-key": randomUUID() } : {},
    ...(body === undefined ? {} : { body }),
    ...(sample.raw === undefined ? {} : { raw: sample.raw })
  }
}

/** Waits until the service has every notification that the provider had to send. */
export const settled = ({ journal, organization, stranger }: TestService["Type"]) => {
  const accounts = [organization.accountId, stranger.accountId]
  return Effect.orDie(eventuallyTrue("all notifications", () => !journal.isPending(accounts)))
}

/** What there is at a moment: the rows of the tenants' tables, and how often something has changed at the provider. */
interface State {
  readonly rows: Effect.Effect.Success<ReturnType<typeof tenantData>>
  readonly changes: number
}

const currentState: Effect.Effect<State, never, TestService> = Effect.gen(function* () {
  const service = yield* TestService
  // What happened before may still be on its way from the provider
  yield* settled(service)
  return { rows: yield* tenantData(service), changes: service.journal.changes().length }
})

/** Requires that nothing has changed since: no row of the tenants' tables, no object at the provider. */
const expectUnchanged = (before: State): Effect.Effect<void, never, TestService> =>
  Effect.gen(function* () {
    const service = yield* TestService
    expect(service.journal.changes().slice(before.changes)).toEqual([])
    expect(yield* tenantData(service)).toEqual(before.rows)
  })

export const changesNothing = Effect.fnUntraced(function* <Step extends Steps>(attempts: Attempts<Step>) {
  const before = yield* currentState
  yield* Effect.gen(attempts)
  yield* expectUnchanged(before)
})

type Steps = YieldWrap<Effect.Effect<unknown, unknown, unknown>>
type Attempts<Step extends Steps> = () => Generator<Step, unknown, never>

/**
 * Attempts of several tests that must not change anything. That is looked at once, by the last test of them: a look takes
 * longer than most attempts.
 *
 * @param preparation what changes something before the first attempt
 */
export const attemptsThatChangeNothing = <R0 = never>(preparation: Effect.Effect<unknown, never, R0> = Effect.void) => {
  let before: State | undefined
  return {
    attempt: Effect.fnUntraced(function* <Step extends Steps>(attempts: Attempts<Step>) {
      if (before === undefined) {
        yield* preparation
        before = yield* currentState
      }
      yield* Effect.gen(attempts)
    }),
    expectNoChange: Effect.suspend(() => {
      if (before === undefined) throw new Error("Nothing was attempted: the tests of the attempts run first")
      return expectUnchanged(before)
    })
  }
}

/** The statement that fingerprints them, by the database: the tables stay the same while a service runs. */
const fingerprints = new WeakMap<SqlClient.SqlClient, string>()

/** One statement: a print of the rows of every table that holds tenants' data, of a partitioned one as a whole. */
const fingerprintOf = (sql: SqlClient.SqlClient) =>
  Effect.gen(function* () {
    const known = fingerprints.get(sql)
    if (known !== undefined) return known
    const tables = yield* sql<{ table: string }>`
      SELECT DISTINCT c.relname AS "table" FROM pg_class c
        JOIN pg_namespace n ON n.oid = c.relnamespace AND n.nspname = 'payments'
        JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'organization_id'
      WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition
        AND c.relname NOT IN ('api_keys', 'rate_limits', 'idempotency_keys',
          -- Counted in the background
          'payment_counts', 'delivery_counts', 'unsettled_deliveries') ORDER BY 1`
    const prints = tables.map(
      ({ table }) => `
        SELECT '${table}' AS "table", count(*)::int AS rows, md5(string_agg(t::text, E'\n' ORDER BY t::text)) AS print
        FROM payments.${table} t`
    )
    const statement = prints.join(" UNION ALL ")
    fingerprints.set(sql, statement)
    return statement
  })

/** A fingerprint of every table that holds tenants' data. */
export const tenantData = ({ sql }: TestService["Type"]) =>
  fingerprintOf(sql).pipe(
    Effect.flatMap((statement) => sql.unsafe<{ table: string; rows: number; print: string | null }>(statement)),
    Effect.map((prints) => Object.fromEntries(prints.map(({ table, ...print }) => [table, print] as const))),
    Effect.orDie
  )

/** An id of an answer; fails the test where the answer is none. */
export const idOf = (answer: Answer): string => {
  const { id } = answer.json
  if (typeof id !== "string") {
    throw new Error(`No id in ${answer.status} ${answer.text}`)
  }
  return id
}

const insertPage = (sql: SqlClient.SqlClient, organizationId: string, id: string) => sql`
  INSERT INTO payments.checkout_pages (organization_id, environment, id, slug, active, title, items, collect,
    allow_promotion_codes)
  VALUES (${organizationId}, 'production', ${id}, ${id.replaceAll("-", "")}, true, 'Coffee', '[]', '{}', false)`

/** A product, a price and a session at the provider, and an endpoint with a finished delivery. */
export const makeThings = Effect.fnUntraced(function* (
  service: TestService["Type"],
  options: { readonly organizationId: string; readonly key: string; readonly environment?: "sandbox" | "production" }
) {
  const { sql } = service
  const { environment = "sandbox", key, organizationId } = options
  const post = (path: string, body: unknown) => Effect.map(posting(service, options)(path, body), idOf)
  const endpoint = { name: "Orders", url: "https://93.184.215.14/hook", events: ["payment.succeeded"] }
  const endpointId = yield* post("/integrations/endpoints", endpoint)
  const deletableEndpointId = yield* post("/integrations/endpoints", endpoint)
  const deliveryId = v7()
  const eventId = `svc_evt_${deliveryId.replaceAll("-", "").repeat(2)}`
  const payload = JSON.stringify({ id: eventId, type: "payment.succeeded" })
  const storedId = eventKey(eventId, new Date())
  yield* sql`
    INSERT INTO payments.events (organization_id, environment, id, public_id, type, payload)
    VALUES (${organizationId}, ${environment}, ${storedId}, ${eventId}, 'payment.succeeded', ${payload})`
  yield* sql`
    INSERT INTO payments.deliveries (organization_id, environment, id, endpoint_id, event_id, secret_ids, state,
      attempts, finished_at, attempt_count)
    SELECT organization_id, environment, ${deliveryId}, endpoint_id, ${storedId}, ARRAY[id], 'failed', '{}', now(), 6
    FROM payments.endpoint_secrets WHERE endpoint_id = ${endpointId}`
  const recoveryId = randomUUID()
  yield* sql`
    INSERT INTO payments.recoveries (organization_id, environment, id, endpoint_id, since, total, reached_at, reached_id,
      state, finished_at)
    VALUES (${organizationId}, ${environment}, ${recoveryId}, ${endpointId}, now(), 0, now(), ${recoveryId}, 'finished',
      now())`
  const replayId = v7()
  yield* sql`
    INSERT INTO payments.event_replays (organization_id, environment, id, endpoint_id, since, until, reached, state,
      finished_at)
    VALUES (${organizationId}, ${environment}, ${replayId}, ${endpointId}, now() - interval '1 hour', now(), '', 'finished',
      now())`
  const own = { endpointId, deletableEndpointId, deliveryId, recoveryId, replayId, eventId }
  if (environment === "production") {
    // Without an account there, none can be created by a request
    const pages = { checkoutPageId: v7(), deletableCheckoutPageId: v7() }
    yield* Effect.forEach(Object.values(pages), (id) => insertPage(sql, organizationId, id))
    return { ...own, ...pages, ...absentThings }
  }
  const productId = yield* post("/provider/products", { name: "Coffee" })
  const priceId = yield* post("/provider/prices", { product: productId, currency: "brl", unit_amount: 1500 })
  const sessionId = yield* post("/provider/checkout/sessions", {
    mode: "payment",
    line_items: [{ price: priceId, quantity: 1 }]
  })
  const promotionCodeId = yield* post("/provider/promotion-codes", {
    code: "SUMMER",
    discount: { percent_off: 10 },
    duration: "once"
  })
  const paymentLinkId = yield* post("/provider/payment-links", { line_items: [{ price: priceId, quantity: 1 }] })
  const page = { title: "Coffee", items: [{ price: priceId, quantity: 1 }] }
  const checkoutPageId = yield* post("/provider/checkout-pages", page)
  const deletableCheckoutPageId = yield* post("/provider/checkout-pages", page)
  return {
    ...own,
    productId,
    priceId,
    sessionId,
    promotionCodeId,
    paymentLinkId,
    checkoutPageId,
    deletableCheckoutPageId,
    ...(yield* makeMoney(service, { organizationId, key, priceId }))
  } satisfies Things
}, Effect.orDie)

/** Things of the suite's own organization. */
export class OwnThings extends Context.Tag("test/OwnThings")<OwnThings, { readonly things: Things }>() {
  static readonly layer = Layer.effect(
    OwnThings,
    Effect.gen(function* () {
      const service = yield* TestService
      const { id: organizationId, testKey: key } = service.organization
      return { things: yield* makeThings(service, { organizationId, key }) }
    })
  )
}
