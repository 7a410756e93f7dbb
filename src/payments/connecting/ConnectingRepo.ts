import { timingSafeEqual } from "node:crypto"
import { SqlClient, type SqlError } from "@effect/sql"
import { Effect, Option } from "effect"
import type { Environment } from "../../platform/kit/Environment.ts"
import type { OrganizationId } from "../../platform/kit/Ids.ts"
import { existingOf, ofTenant, type Tenant } from "../../platform/kit/Tenant.ts"
import { removeOld } from "../../platform/storage/Batches.ts"
import { anyRow, firstRow, oneRow } from "../../platform/storage/Database.ts"
import type { AccountStatus } from "../account/AccountStatus.ts"

/** The creation of a tenant's account, in progress or done. */
export interface Onboarding {
  /** Part of the idempotency key of its creation. */
  readonly generation: number
  /** Null until the provider has answered. */
  readonly accountId: string | null
  readonly begunAt: Date
  /** Whether the provider may have forgotten the key; then an account already created must be searched for. */
  readonly outlivesKey: boolean
}

export interface Dependents {
  readonly endpointCount: number
  readonly checkoutPageCount: number
  readonly pendingDeliveryCount: number
}

/** How long the provider is sure to keep idempotency keys: 24 hours less a margin. */
const keyLifetime = "23 hours"

export const mostDeliveriesCounted = 1000

export const authorizationMinutes = 10

type Sql = SqlClient.SqlClient

const accountStatements = (sql: Sql) => ({
  reportedStatus: (tenant: Tenant, accountId: string) =>
    Effect.map(
      sql<{ status: AccountStatus | null }>`
          SELECT reported_status AS status FROM payments.provider_accounts
          WHERE ${ofTenant(sql, tenant)} AND account_id = ${accountId}`,
      ([row]) => Option.fromNullable(row?.status)
    ),

  dependents: (tenant: Tenant) =>
    oneRow(sql<Dependents>`
        SELECT
          (SELECT count(*)::int FROM payments.endpoints e
            WHERE ${existingOf(sql, tenant, "e")} AND active) AS "endpointCount",
          (SELECT count(*)::int FROM payments.checkout_pages p
            WHERE ${existingOf(sql, tenant, "p")} AND active) AS "checkoutPageCount",
          (SELECT count(*)::int FROM (
            SELECT 1 FROM payments.delivery_queue WHERE ${ofTenant(sql, tenant)} LIMIT ${mostDeliveriesCounted}
          ) AS pending) AS "pendingDeliveryCount"`)
})

const accessStatements = (sql: Sql) => ({
  accessToEnd: (tenant: Tenant) =>
    Effect.map(
      sql<{ accountId: string }>`
          SELECT account_id AS "accountId" FROM payments.provider_accounts
          WHERE ${ofTenant(sql, tenant)} AND status = 'disconnected' AND ends_at_provider`,
      ([row]) => Option.map(Option.fromNullable(row), ({ accountId }) => accountId)
    ),

  /**
   * Whether an account is linked to an organization, or was created for one, in any environment: access to it is the
   * platform's, so ending it would end it for all of them. The tenant's own disconnected account does not count.
   */
  isUsed: (tenant: Tenant, accountId: string) =>
    anyRow(sql`
        SELECT 1 FROM payments.provider_accounts
        WHERE account_id = ${accountId} AND environment IN ('sandbox', 'production')
          AND NOT (${ofTenant(sql, tenant)} AND status = 'disconnected')
        UNION ALL SELECT 1 FROM payments.account_onboardings WHERE account_id = ${accountId}
        LIMIT 1`),

  /**
   * Whether an account is linked to another organization, or was created for one, or the tenant is a sandbox and the
   * account is connected in production: live access includes the test mode, so the sandbox adds no access.
   */
  isNeeded: ({ environment, organizationId }: Tenant, accountId: string) =>
    anyRow(sql`
        SELECT 1 FROM payments.provider_accounts
        WHERE account_id = ${accountId} AND environment IN ('sandbox', 'production')
          AND (organization_id <> ${organizationId}
            OR ${environment} = 'sandbox' AND environment = 'production' AND status = 'connected')
        UNION ALL SELECT 1 FROM payments.account_onboardings
        WHERE account_id = ${accountId} AND organization_id <> ${organizationId}
        LIMIT 1`),

  isInBoth: (organizationId: OrganizationId, accountId: string) =>
    Effect.map(
      sql`
          SELECT 1 FROM payments.provider_accounts
          WHERE organization_id = ${organizationId} AND environment IN ('sandbox', 'production')
            AND account_id = ${accountId}`,
      (rows) => rows.length > 1
    )
})

const onboardingColumns = `
  generation, account_id AS "accountId", begun_at AS "begunAt",
  begun_at < now() - interval '${keyLifetime}' AS "outlivesKey"`

const onboardingStatements = (sql: Sql) => ({
  onboarding: (tenant: Tenant) =>
    firstRow(sql<Onboarding>`
        SELECT ${sql.literal(onboardingColumns)} FROM payments.account_onboardings WHERE ${ofTenant(sql, tenant)}`),

  /**
   * Starts the creation of an account, or resumes one whose answer is missing. Returns none if another request has
   * changed the record since it was read: then that request's account is to be used.
   *
   * @param seen the recorded account, which can't be used any more; null if there was none
   */
  begin: (tenant: Tenant, seen: string | null) =>
    firstRow(sql<Onboarding>`
        INSERT INTO payments.account_onboardings AS o (organization_id, environment)
        VALUES (${tenant.organizationId}, ${tenant.environment})
        ON CONFLICT (organization_id, environment) DO UPDATE SET
          generation = CASE WHEN o.account_id IS NULL THEN o.generation ELSE o.generation + 1 END,
          begun_at = CASE WHEN o.account_id IS NULL THEN o.begun_at ELSE now() END,
          account_id = NULL
        WHERE o.account_id IS NOT DISTINCT FROM ${seen}::text
        RETURNING ${sql.literal(onboardingColumns)}`),

  /** Stores the created account; returns false if its creation was given up in the meantime. */
  remember: (tenant: Tenant, { generation }: Onboarding, accountId: string) =>
    anyRow(sql`
        UPDATE payments.account_onboardings SET account_id = ${accountId}
        WHERE ${ofTenant(sql, tenant)} AND generation = ${generation}
          AND (account_id IS NULL OR account_id = ${accountId})
        RETURNING 1`),

  /** Gives up a creation that was refused or has no account to be found; the next one gets a new idempotency key. */
  giveUp: (tenant: Tenant, { generation }: Onboarding) =>
    Effect.asVoid(sql`
        UPDATE payments.account_onboardings SET generation = generation + 1, begun_at = now()
        WHERE ${ofTenant(sql, tenant)} AND generation = ${generation} AND account_id IS NULL`)
})

const authorizationStatements = (sql: Sql) => ({
  /** Starts an authorization in a session, replacing an earlier one. Returns its expiry. */
  authorize: (tenant: Tenant, sessionId: string, stateHash: Buffer) =>
    Effect.map(
      oneRow(sql<{ expiresAt: Date }>`
        INSERT INTO payments.account_authorizations AS a (organization_id, environment, session_id, state_hash)
        VALUES (${tenant.organizationId}, ${tenant.environment}, ${sessionId}, ${stateHash})
        ON CONFLICT (organization_id, environment, session_id) DO UPDATE SET
          state_hash = excluded.state_hash, created_at = now()
        RETURNING a.created_at + ${authorizationMinutes} * interval '1 minute' AS "expiresAt"`),
      ({ expiresAt }) => expiresAt
    ),

  takeAuthorization: Effect.fnUntraced(function* (
    organizationId: OrganizationId,
    sessionId: string,
    stateHash: Buffer
  ): Effect.fn.Return<Option.Option<Environment>, SqlError.SqlError> {
    const open = yield* sql<{ environment: Environment; stateHash: Buffer }>`
        SELECT environment, state_hash AS "stateHash" FROM payments.account_authorizations
        WHERE organization_id = ${organizationId} AND environment IN ('sandbox', 'production')
          AND session_id = ${sessionId} AND created_at > now() - ${authorizationMinutes} * interval '1 minute'`
    const found = open.find((one) => timingSafeEqual(one.stateHash, stateHash))
    if (found === undefined) {
      return Option.none()
    }
    const taken = yield* sql`
        DELETE FROM payments.account_authorizations
        WHERE ${ofTenant(sql, { organizationId, environment: found.environment })}
          AND session_id = ${sessionId} AND state_hash = ${stateHash}
        RETURNING 1`
    return taken.length === 0 ? Option.none() : Option.some(found.environment)
  }),

  clean: removeOld(sql, {
    table: "account_authorizations",
    key: ["organization_id", "environment", "session_id"],
    old: sql`r.created_at < now() - ${authorizationMinutes} * interval '1 minute'`,
    by: "created_at"
  })
})

export const makeConnectingRepo = Effect.map(SqlClient.SqlClient, (sql) => ({
  ...accountStatements(sql),
  ...accessStatements(sql),
  ...onboardingStatements(sql),
  ...authorizationStatements(sql)
}))
