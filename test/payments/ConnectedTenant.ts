import { randomUUID } from "node:crypto"
import { expect } from "@effect/vitest"
import { Context, Effect, Option, Redacted } from "effect"
import type { Fault } from "../../src/emulator/Emulator.ts"
import type { Grant } from "../../src/identity/keys/Permissions.ts"
import { Organizations } from "../../src/identity/organizations/Organizations.ts"
import { Accounts } from "../../src/payments/Accounts.ts"
import type { OrganizationId } from "../../src/platform/kit/Ids.ts"
import { type RequestOptions, TestService } from "../harness/TestService.ts"
import { idOf } from "../surface/http/Samples.ts"

export type Json = Readonly<Record<string, unknown>>

/** A part of a JSON answer, to be looked into; an empty object where there is none. */
export const part = (value: unknown, ...path: ReadonlyArray<string | number>): Json =>
  Object(path.reduce<unknown>((current, key) => Object(current)[key], value))

export const dataOf = (list: Json): ReadonlyArray<Json> => {
  const { data } = list
  if (!Array.isArray(data)) throw new Error(`No list: ${JSON.stringify(list)}`)
  return data
}

/** A new organization with an account of its own at the emulator, which shows and breaks what it is asked to. */
export const newTenant = Effect.gen(function* () {
  const { emulator, makeKey, options, request, services, sql } = yield* TestService
  const name = `org-${randomUUID()}`
  const { id } = yield* Context.get(services, Organizations).create({ name, ownerEmail: `${name}@example.com` })
  const accountId = yield* emulator.ensureAccount()
  yield* Context.get(services, Accounts).link({ organizationId: id, environment: "sandbox" }, accountId)
  const key = yield* makeKey(id, ["*", "audit-log:read"])
  const secretKey = Option.match(options.provider.sandbox, {
    onNone: () => "",
    onSome: ({ secretKey }) => Redacted.value(secretKey)
  })

  const send = (method: string, path: string, requestOptions: RequestOptions = {}) =>
    request(method, `/v2/organizations/${id}/provider${path}`, { key, ...requestOptions })

  const atProvider = (path: string, method = "GET", params: Readonly<Record<string, string>> = {}) =>
    Effect.promise(async (): Promise<Json> => {
      const response = await fetch(`${emulator.url}/v1${path}`, {
        method,
        headers: { authorization: `Bearer ${secretKey}`, "stripe-account": accountId },
        ...(method === "POST" ? { body: new URLSearchParams(params) } : {})
      })
      if (!response.ok) throw new Error(`The emulator answers ${response.status} ${await response.text()}`)
      return Object(await response.json())
    })

  return {
    id: id satisfies OrganizationId,
    organizationId: id,
    accountId,
    key,
    sql,
    send,
    get: (path: string) => send("GET", path),
    post: (path: string, body: unknown, idempotencyKey: string = randomUUID()) =>
      send("POST", path, { body, headers: { "idempotency-key": idempotencyKey } }),
    patch: (path: string, body: unknown, idempotencyKey: string = randomUUID()) =>
      send("PATCH", path, { body, headers: { "idempotency-key": idempotencyKey } }),
    keyOf: (permissions: ReadonlyArray<Grant>) => makeKey(id, permissions),
    atProvider: (path: string) => atProvider(path),
    doAtProvider: (path: string, params: Readonly<Record<string, string>>, method = "POST") =>
      atProvider(path, method, params),
    /** Runs an effect while every call to the provider that it concerns goes wrong. */
    during: <A, E, R>(fault: Fault, effect: Effect.Effect<A, E, R>) =>
      emulator
        .addFault({ account: accountId, times: 1_000, ...fault })
        .pipe(Effect.zipRight(effect), Effect.ensuring(emulator.clearFaults)),
    audited: Effect.map(
      sql<{ action: string; target: string }>`
        SELECT action, target_id AS target FROM payments.audit_log
        WHERE organization_id = ${id} AND environment = 'sandbox' ORDER BY id`,
      (rows) => rows.map(({ action, target }) => `${action} ${target}`)
    )
  }
}).pipe(Effect.orDie)

export type Tenant = Effect.Effect.Success<typeof newTenant>

const productOf = (tenant: Tenant, name = "Coffee") => Effect.map(tenant.post("/products", { name }), idOf)

export const priceOf = (tenant: Tenant, more: object = {}, name = "Coffee") =>
  Effect.gen(function* () {
    const product = yield* productOf(tenant, name)
    const price = idOf(yield* tenant.post("/prices", { product, currency: "brl", unit_amount: 1500, ...more }))
    return { product, price }
  })

/** A new tenant with a product. */
export const newTenantWithProduct = Effect.gen(function* () {
  const tenant = yield* newTenant
  return { tenant, product: yield* productOf(tenant) }
})

/** A new tenant with a product at a price, with these further fields. */
export const newTenantWithPrice = (more: object = {}) =>
  Effect.gen(function* () {
    const tenant = yield* newTenant
    return { tenant, ...(yield* priceOf(tenant, more)) }
  })

export const payAt = (url: unknown, fields: Readonly<Record<string, string>> = {}) =>
  Effect.promise(async () => {
    const body = new URLSearchParams({ action: "pay", ...fields })
    const paid = await fetch(String(url), { method: "POST", body, redirect: "manual" })
    if (paid.status >= 400) throw new Error(`The page answers ${paid.status}`)
  })

export const soldItems = (tenant: Tenant, sourceId: string) =>
  Effect.map(
    tenant.sql<{ prices: ReadonlyArray<string>; products: ReadonlyArray<string> }>`
      SELECT price_ids AS prices, product_ids AS products FROM payments.sold_items
      WHERE organization_id = ${tenant.id} AND environment = 'sandbox' AND source_id = ${sourceId}`,
    ([row]) => row
  )

export const control = (accountId: string, controlled: boolean) =>
  Effect.flatMap(TestService, ({ emulator }) =>
    Effect.promise(async () => {
      const response = await fetch(`${emulator.url}/_emulator/accounts/${accountId}`, {
        method: "POST",
        headers: { authorization: "Bearer sk_test_emulatorplatformkey" },
        body: JSON.stringify({ controlled })
      })
      expect(response.status).toBe(200)
    })
  )
