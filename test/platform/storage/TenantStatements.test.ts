import { Context } from "effect"
import pg from "pg"
import { vi } from "vitest"
import { Receipts } from "../../../src/inbound/Receipts.ts"
import { makeDestination, payment, received } from "../../destinations/endpoints/Delivering.ts"
import { eventuallyTrue } from "../../harness/Eventually.ts"
import { onService, TestService } from "../../harness/TestService.ts"
import { describe, expect, it } from "../../harness/Tests.ts"
import { makeNewTenant, notification, notify } from "../../inbound/Notifications.ts"
import { authenticatedOperations, makeThings, optionsOf, pathOf } from "../../surface/http/Samples.ts"

// Tables are distributed by organization where one machine is outgrown: a statement that names neither would ask all

const recorded = new Set<string>()
const query = pg.Client.prototype.query
vi.spyOn(pg.Client.prototype, "query").mockImplementation(function (this: pg.Client, ...args: ReadonlyArray<unknown>) {
  const [first] = args
  const text = typeof first === "object" && first !== null && "text" in first ? first.text : first
  if (typeof text === "string") recorded.add(text.replaceAll(/\s+/g, " ").trim())
  // The many overloads of `query` come down to its arguments as they are
  return Reflect.apply(query, this, args)
} as pg.Client["query"])

/** A table's columns, as far as they tell the tenant. */
type TenantTables = ReadonlyMap<string, ReadonlyArray<string>>

interface Reference {
  readonly table: string
  /** What its columns are written with: its alias, else nothing or its name. */
  readonly alias: string
}

const keywords =
  /^(SET|WHERE|ON|USING|VALUES|SELECT|JOIN|LEFT|INNER|CROSS|GROUP|ORDER|LIMIT|FOR|RETURNING|AS|DEFAULT)$/i

const referencesIn = (statement: string): ReadonlyArray<Reference> =>
  [...statement.matchAll(/\b(?:FROM|JOIN|UPDATE|USING|,)\s+payments\.(\w+)(?:\s+(?:AS\s+)?([a-z]\w*))?/gi)].map(
    ([, table = "", alias = ""]) => ({ table, alias: keywords.test(alias) ? "" : alias })
  )

/** Whether a column of this reference is compared with something, alone or in a row of columns. */
const compares = (statement: string, { alias, table }: Reference, column: string): boolean => {
  const prefixes = alias === "" ? ["", `${table}\\.`, `payments\\.${table}\\.`] : [`${alias}\\.`]
  return prefixes.some((prefix) => {
    const name = `(?<![\\w.])${prefix}${column}\\b`
    return (
      new RegExp(`${name}\\s*(=|IN\\b|IS NOT DISTINCT)`, "i").test(statement) ||
      new RegExp(`=\\s*${name}`, "i").test(statement) ||
      new RegExp(`\\([^()]*${name}[^()]*\\)\\s*(=|IN\\b|>|<)`, "i").test(statement) ||
      new RegExp(`(=|IN)\\s*\\([^()]*${name}[^()]*\\)`, "i").test(statement) ||
      (alias !== "" && new RegExp(`USING \\([^()]*${column}[^()]*\\)`, "i").test(statement))
    )
  })
}

/** What a statement leaves open about the tenants of the tables that it touches. */
const missingIn = (statement: string, tables: TenantTables): ReadonlyArray<string> => {
  const inserted = [...statement.matchAll(/INSERT INTO payments\.(\w+)(?: AS \w+)? \(([^)]*)\)/gi)].flatMap(
    ([, table = "", columns = ""]) =>
      (tables.get(table) ?? []).filter((column) => !columns.includes(column)).map((column) => `${table}.${column}`)
  )
  const asked = referencesIn(statement).flatMap((reference) =>
    (tables.get(reference.table) ?? [])
      .filter((column) => !compares(statement, reference, column))
      .map((column) => `${reference.table}.${column}`)
  )
  return [...inserted, ...asked]
}

/** Statements that work for all tenants, or before the tenant is known, and why. */
const exceptions: ReadonlyArray<readonly [why: string, statement: RegExp]> = [
  ["the workers' claim takes what is due, whosever it is", /^\/\* [\d.]+ \*\/ WITH looked AS (?:NOT )?MATERIALIZED/],
  [
    "a worker records an attempt where the delivery was claimed, if it has the same id and the claim's own lease there",
    /^\/\* [\d.]+ \*\/ WITH result AS MATERIALIZED .* q\.ctid = r\.place AND CASE WHEN q\.id = r\.id THEN q\.lease = r\.lease END /
  ],
  [
    "housekeeping removes what is old, whosever it is",
    /^WITH old AS MATERIALIZED \( SELECT [^()]* FROM payments\.(receipts_undated|audit_log|skipped_events|published_events|unconfirmed_claims|endpoint_secrets|payment_counts|delivery_counts|refunded_in_part|failed_refunds|idempotency_keys|recoveries|event_replays|checkout_pages|account_authorizations|invitations|sold_items) .* DELETE FROM payments\.\1 \w USING old/
  ],
  [
    "housekeeping looks for failed refunds that nobody has been told of, whosever they are",
    /^SELECT f\.organization_id AS "organizationId", f\.environment FROM payments\.failed_refunds f WHERE f\.mail_at <= now\(\)/
  ],
  [
    "housekeeping looks for the last receipt of a month, whosever it is",
    /^DELETE FROM payments\.receipt_months m WHERE .* \( SELECT 1 FROM payments\.receipts r WHERE r\.month = m\.month /
  ],
  [
    "housekeeping looks at what waits longest, whosever it is",
    /^SELECT id, delivery, event, endpoint FROM \( SELECT q\.id/
  ],
  [
    "housekeeping ends what waits for deleted endpoints, whosever they are",
    /^WITH gone AS \( DELETE FROM payments\.delivery_queue .* FROM payments\.endpoints e CROSS JOIN LATERAL .* WHERE e\.deleted_at IS NOT NULL AND /
  ],
  [
    "keys tell their organizations, and many are looked up together",
    /^SELECT key_hash AS hash FROM payments\.api_keys WHERE key_hash = ANY\(\$1/
  ],
  [
    "the keys of both environments count towards one limit",
    /^SELECT 1 FROM payments\.api_keys WHERE organization_id = \$1 AND revoked_at IS NULL OFFSET/
  ],
  ["a payer names a checkout page by its slug alone", /FROM payments\.checkout_pages p WHERE p\.slug = \$1/],
  [
    "a key tells its organization, and the times of use of many are written together, twice a minute",
    /FROM payments\.api_keys WHERE key_hash = \$1|^UPDATE payments\.api_keys SET last_used_at = /
  ],
  [
    "a receipt is known by the provider's id of its event",
    /FROM payments\.receipts r WHERE r\.environment = \$1 AND r\.provider_event_id = \$2/
  ],
  [
    "the same, where one is stored: a copy may have come when its account was not linked",
    /^WITH source AS MATERIALIZED .* INSERT INTO payments\.receipts(_\d{6})? AS r /
  ],
  [
    "all accounts are linked under one platform: any connected one shows whether a key is that platform's",
    /FROM payments\.provider_accounts WHERE environment = (\$1 AND status = 'connected' AND account_id IS DISTINCT FROM \$2|excluded\.environment AND status = 'connected')/
  ],
  [
    "a member's access ends in both environments",
    /^DELETE FROM payments\.workspace_access WHERE organization_id = \$1 AND person_id = \$2$/
  ]
]

/** The same, of which a quick run makes none. */
const seldom: ReadonlyArray<readonly [why: string, statement: RegExp]> = [
  ["keys that were used are known by their ids, every half minute", /^UPDATE payments\.api_keys SET last_used_at = /]
]

/** Statements of the suites themselves, which the service never makes. */
const ofTheSuites: ReadonlyArray<RegExp> = [
  /^UPDATE payments\.provider_accounts SET had_payments_before = (true|\$1) WHERE account_id/,
  /^INSERT INTO payments\.deliveries .* FROM payments\.endpoint_secrets WHERE endpoint_id = \$3$/
]

describe("a statement", () => {
  const tables: TenantTables = new Map([["endpoints", ["organization_id", "environment"]]])

  it.each([
    ["SELECT 1 FROM payments.endpoints WHERE organization_id = $1 AND environment = $2", []],
    ["SELECT 1 FROM payments.endpoints e WHERE e.organization_id = $1 AND e.environment = $2", []],
    ["SELECT 1 FROM payments.endpoints WHERE (organization_id, environment, id) = ($1, $2, $3)", []],
    ["SELECT 1 FROM payments.endpoints WHERE id = $1", ["endpoints.organization_id", "endpoints.environment"]],
    [
      "SELECT organization_id, environment FROM payments.endpoints",
      ["endpoints.organization_id", "endpoints.environment"]
    ],
    ["UPDATE payments.endpoints e SET name = $1 WHERE e.organization_id = $2", ["endpoints.environment"]],
    [
      "SELECT 1 FROM payments.people p JOIN payments.endpoints e ON e.id = p.id WHERE p.organization_id = $1",
      ["endpoints.organization_id", "endpoints.environment"]
    ],
    ["INSERT INTO payments.endpoints (organization_id, id) VALUES ($1, $2)", ["endpoints.environment"]]
  ])("%s leaves open %j", (statement, expected) => {
    expect(missingIn(statement, tables)).toEqual(expected)
  })
})

onService()("every statement on a tenant's table", (it) => {
  it.scoped("names the organization and the environment, but for the documented ones", function* () {
    const service = yield* TestService
    const { organization, request, services, sql } = service
    const rows = yield* sql<{ table: string; columns: ReadonlyArray<string> }>`
          SELECT table_name AS table, array_agg(column_name::text) AS columns FROM information_schema.columns
          WHERE table_schema = 'payments' AND column_name IN ('organization_id', 'environment')
          GROUP BY table_name HAVING 'organization_id' = ANY (array_agg(column_name::text))`
    const tables: TenantTables = new Map(rows.map(({ columns, table }) => [table, columns]))
    expect(tables.size).toBeGreaterThan(12)

    const things = yield* makeThings(service, { organizationId: organization.id, key: organization.testKey })
    for (const operation of authenticatedOperations) {
      yield* request(operation.method, pathOf(operation, organization.id, things), {
        key: organization.testKey,
        ...optionsOf(operation, things)
      })
    }
    yield* request("GET", `/pay/${"a".repeat(20)}`)
    const { consumer, tenant } = yield* makeDestination()
    yield* payment(tenant)
    yield* received(consumer, 1)
    // A first payment, which changes its account
    const { accountId } = yield* makeNewTenant
    yield* notify(notification(accountId))
    const receipts = Context.get(services, Receipts)
    const [row] = yield* sql<{ id: string }>`
          SELECT provider_event_id AS id FROM payments.receipts
          WHERE organization_id = ${tenant.id} AND environment = 'sandbox' LIMIT 1`
    yield* receipts.get({ environment: "sandbox", providerEventId: row?.id ?? "" })

    yield* eventuallyTrue("housekeeping's last statement", () =>
      [...recorded].some((statement) => statement.startsWith("SELECT id, delivery, event, endpoint FROM"))
    )

    const onTenants = [...recorded]
      .filter((statement) => [...tables.keys()].some((table) => statement.includes(`payments.${table}`)))
      .filter((statement) => !/^CREATE |^ALTER /.test(statement) && !ofTheSuites.some((one) => one.test(statement)))
    // Far fewer would mean that the operations were refused
    expect(onTenants.length).toBeGreaterThan(60)
    for (const [why, statement] of exceptions) {
      expect(
        onTenants.some((one) => statement.test(one)),
        why
      ).toBe(true)
    }
    const open = onTenants
      .filter((statement) => missingIn(statement, tables).length > 0)
      .filter((statement) => ![...exceptions, ...seldom].some(([, pattern]) => pattern.test(statement)))
    expect(open.map((statement) => `${missingIn(statement, tables).join(", ")}: ${statement}`)).toEqual([])
  })
})
