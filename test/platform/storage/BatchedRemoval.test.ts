import { SqlClient } from "@effect/sql"
import { expect } from "@effect/vitest"
import { Console, Context, Duration, Effect } from "effect"
import type { Services } from "../../../src/app/Service.ts"
import { Retention } from "../../../src/destinations/deliveries/Retention.ts"
import { Statistics } from "../../../src/destinations/statistics/Statistics.ts"
import { makeAuditCleaning } from "../../../src/identity/audit/AuditRepo.ts"
import { Invitations } from "../../../src/identity/invitations/Invitations.ts"
import { Sessions } from "../../../src/identity/sign-in/Sessions.ts"
import { SignIn } from "../../../src/identity/sign-in/SignIn.ts"
import { FailedRefunds } from "../../../src/inbound/FailedRefunds.ts"
import { Receipts } from "../../../src/inbound/Receipts.ts"
import { CheckoutPages } from "../../../src/payments/checkout-pages/CheckoutPages.ts"
import { CheckoutSessions } from "../../../src/payments/checkout-sessions/CheckoutSessions.ts"
import { AccountConnection } from "../../../src/payments/connecting/AccountConnection.ts"
import { Idempotency } from "../../../src/platform/kit/Idempotency.ts"
import { RateLimits } from "../../../src/platform/kit/RateLimit.ts"
import { batchSize } from "../../../src/platform/storage/Batches.ts"
import { onService, TestService } from "../../harness/TestService.ts"

type Clean = Effect.Effect<unknown, unknown, SqlClient.SqlClient>

const by =
  <I extends Services, S extends { readonly clean: Clean }>(tag: Context.Tag<I, S>) =>
  (services: Context.Context<Services>) =>
    Context.get(services, tag).clean

/** @param values those of a row that is old, or not: `n` numbers it, `age` is its age */
const removal = (
  table: string,
  clean: (services: Context.Context<Services>) => Clean,
  old: string,
  young: string,
  values: Readonly<Record<string, string>>
) => ({ table, clean, old, young, values })

const tenant = { organization_id: "$1::uuid", environment: "'sandbox'" }
const hash = "decode(lpad(to_hex(n), 64, '0'), 'hex')"
const id = "lpad(to_hex(n), 32, '0')::uuid"

const tables = [
  removal("login_tokens", by(SignIn), "1 minute", "-1 minute", {
    token_hash: hash,
    email: "n || '@example.com'",
    expires_at: "now() - age"
  }),
  removal("sessions", by(Sessions), "1 minute", "-1 minute", {
    id,
    token_hash: hash,
    person_id: id,
    expires_at: "now() - age"
  }),
  removal("invitations", by(Invitations), "31 days", "29 days", {
    organization_id: "$1::uuid",
    id,
    email: "n || '@example.com'",
    role: "'viewer'",
    environments: "'{sandbox}'",
    token_hash: hash,
    expires_at: "now() - age"
  }),
  removal("idempotency_keys", by(Idempotency), "25 hours", "23 hours", {
    ...tenant,
    key: "'key-' || n",
    operation: "'x'",
    request_hash: hash,
    lease: id,
    locked_until: "now()",
    created_at: "now() - age"
  }),
  removal("rate_limits", by(RateLimits), "61 minutes", "59 minutes", {
    bucket: "'b' || n",
    tokens: "1",
    allowed: "true",
    refilled_at: "now() - age"
  }),
  removal("account_authorizations", by(AccountConnection), "1 day", "0", {
    ...tenant,
    session_id: id,
    state_hash: hash,
    created_at: "now() - age"
  }),
  removal("checkout_pages", by(CheckoutPages), "1000 days", "1 minute", {
    ...tenant,
    id,
    slug: "lpad(n::text, 16, '0')",
    active: "false",
    title: "'Page'",
    items: "'[]'",
    collect: "'{}'",
    allow_promotion_codes: "false",
    deleted_at: "now() - age"
  }),
  removal("sold_items", by(CheckoutSessions), "91 days", "89 days", {
    ...tenant,
    source_id: "'cs_test_' || n",
    price_ids: "'{}'",
    product_ids: "'{}'",
    created_at: "now() - age"
  }),
  removal("recoveries", by(Retention), "31 days", "29 days", {
    ...tenant,
    id,
    endpoint_id: id,
    since: "now()",
    state: "'finished'",
    total: "0",
    reached_at: "now()",
    reached_id: id,
    finished_at: "now() - age"
  }),
  removal("event_replays", by(Retention), "31 days", "29 days", {
    ...tenant,
    id,
    endpoint_id: id,
    since: "now()",
    until: "now() + interval '1 hour'",
    state: "'finished'",
    reached: "''",
    finished_at: "now() - age"
  }),
  removal("published_events", by(Retention), "31 days", "29 days", {
    ...tenant,
    id: "'event-' || n",
    created_at: "now() - age"
  }),
  removal("unconfirmed_claims", by(Retention), "31 days", "29 days", {
    lease: "payments.id_at(now() - age - n * interval '1 millisecond')"
  }),
  removal("audit_log", () => Effect.flatten(makeAuditCleaning(Duration.days(730))), "731 days", "729 days", {
    organization_id: "$1::uuid",
    id,
    author_kind: "'operator'",
    author_id: "'root'",
    action: "'endpoint.created'",
    target_type: "'endpoint'",
    target_id: "n::text",
    request_id: "'req'",
    at: "now() - age"
  }),
  removal("skipped_events", by(Retention), "31 days", "29 days", {
    ...tenant,
    endpoint_id: id,
    event_id: "'event-' || n",
    event_key: "n::text",
    type: "'payment.succeeded'",
    provider_event_id: "'evt_' || n",
    created_at: "now() - age"
  }),
  removal("failed_refunds", by(FailedRefunds), "92 days", "90 days", {
    ...tenant,
    refund_id: "'re_' || n",
    amount: "1",
    currency: "'brl'",
    status: "'failed'",
    recorded_at: "now() - age"
  }),
  removal("refunded_in_part", by(Statistics), "401 days", "399 days", {
    ...tenant,
    charge_key: id,
    event_id: "n::text",
    refunded: "1",
    counted_at: "now() - age"
  }),
  removal("payment_counts", by(Statistics), "92 days", "88 days", {
    ...tenant,
    day: "(now() - age)::date",
    pass: "0",
    slot: "now() - n * interval '1 second'",
    currency: "'brl'",
    kind: "'succeeded'",
    count: "1",
    amount: "1"
  }),
  removal("delivery_counts", by(Statistics), "92 days", "88 days", {
    ...tenant,
    day: "(now() - age)::date",
    pass: "0",
    slot: "now()",
    endpoint_id: id,
    delivered: "1",
    failed: "0",
    queued: "0"
  }),
  removal("receipts_undated", by(Receipts), "1000 days", "1 minute", {
    environment: "'sandbox'",
    provider_event_id: "'evt_' || n",
    type: "'payment_intent.succeeded'",
    livemode: "false",
    outcome: "'unlinked'",
    provider_created_at: "now()",
    received_at: "now() - age",
    month: "'infinity'::date"
  })
]

/** `OLD_ROWS=1000000` tries a million of each. */
const oldRows = Number(process.env["OLD_ROWS"] ?? 3 * batchSize + 7)

/** A statement's time is limited. */
const insertedAtOnce = 50_000

onService({ roles: { api: true, worker: false } })("housekeeping", (it) => {
  for (const { clean, old, table, values, young } of tables) {
    it.effect(
      `removes old rows of ${table} in batches, however many there are, and no others`,
      function* () {
        const { organization, services, sql } = yield* TestService
        const insert = (age: string, from: number, until: number) =>
          sql.withTransaction(
            Effect.zipRight(
              // Without what the rows refer to
              sql`SET LOCAL session_replication_role = replica`,
              sql.unsafe(
                `INSERT INTO payments.${table} (${Object.keys(values).join(", ")})
                 SELECT ${Object.values(values).join(", ")}
                 FROM generate_series(${from}, ${until}) AS n, (SELECT interval '${age}' AS age) AS a`,
                Object.values(values).some((value) => value.includes("$1")) ? [organization.id] : []
              )
            )
          )
        yield* sql.unsafe(`CREATE TABLE payments.removed_${table} (count int, millis float8)`)
        yield* sql.unsafe(`
          CREATE FUNCTION payments.note_${table}() RETURNS trigger LANGUAGE plpgsql AS $$
          BEGIN INSERT INTO payments.removed_${table}
            SELECT count(*), extract(epoch FROM clock_timestamp() - statement_timestamp()) * 1000 FROM gone; RETURN NULL; END $$`)
        yield* sql.unsafe(`
          CREATE TRIGGER note AFTER DELETE ON payments.${table} REFERENCING OLD TABLE AS gone
          FOR EACH STATEMENT EXECUTE FUNCTION payments.note_${table}()`)
        for (let from = 1; from <= oldRows; from += insertedAtOnce) {
          yield* insert(old, from, Math.min(oldRows, from + insertedAtOnce - 1))
        }
        yield* insert(young, oldRows + batchSize, oldRows + batchSize + 4)
        const [before] = yield* sql.unsafe<{ count: number }>(`SELECT count(*)::int AS count FROM payments.${table}`)
        yield* Effect.provideService(clean(services), SqlClient.SqlClient, sql)
        const [after] = yield* sql.unsafe<{ count: number }>(`SELECT count(*)::int AS count FROM payments.${table}`)
        expect((before?.count ?? 0) - (after?.count ?? 0)).toBe(oldRows)
        const batches = yield* sql.unsafe<{ count: number; millis: number }>(
          `SELECT count, millis FROM payments.removed_${table}`
        )
        if (oldRows >= 1_000_000) {
          const longest = Math.max(...batches.map(({ millis }) => millis))
          yield* Console.log(`${table}: ${batches.length} batches, the longest took ${Math.round(longest)} ms`)
        }
        expect(Math.max(...batches.map(({ count }) => count))).toBeLessThanOrEqual(batchSize)
        expect(batches.reduce((sum, { count }) => sum + count, 0)).toBeGreaterThanOrEqual(oldRows)
      },
      600_000
    )
  }

  it.effect("keeps what payment links sell", function* () {
    const { organization, services, sql } = yield* TestService
    yield* sql`
        INSERT INTO payments.sold_items (organization_id, environment, source_id, price_ids, product_ids, created_at)
        VALUES (${organization.id}, 'sandbox', 'plink_old', '{}', '{}', now() - interval '1000 days')`
    yield* Context.get(services, CheckoutSessions).clean
    expect(yield* sql`SELECT source_id FROM payments.sold_items WHERE source_id = ${"plink_old"}`).toHaveLength(1)
  })
})
