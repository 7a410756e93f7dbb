import type { SqlClient, Statement } from "@effect/sql"
import { Duration } from "effect"
import type { OrganizationId } from "../../kit/Ids.ts"
import { type Taken, takeTokens } from "../../kit/RateLimit.ts"
import type { RateLimitPolicy } from "../../kit/TokenBucket.ts"

/** The limits on requests with a credential: its own, and one on all of its organization's together. */
export interface CredentialPolicies {
  readonly own: RateLimitPolicy
  readonly organization: RateLimitPolicy
}

/** An organization may send as much as so many credentials at their limits. */
const credentialsPerOrganization = 10

/** So many a minute. */
export const perMinute = (limit: number): RateLimitPolicy => ({ limit, per: Duration.minutes(1) })

/** The limits of credentials, by the requests per minute of one. */
export const credentialPolicies = (rateLimitPerMinute: number): CredentialPolicies => ({
  own: perMinute(rateLimitPerMinute),
  organization: perMinute(credentialsPerOrganization * rateLimitPerMinute)
})

/** What the database says of a credential's limits. */
export interface CredentialLimits {
  /** Null for a person without an organization. */
  readonly organizationId: OrganizationId | null
  readonly own: Taken
  /** Null where nothing was asked of it, or the credential's own limit had refused the request before. */
  readonly organization: Taken | null
}

/**
 * The parts `own` and `shared` of a statement whose part `caller` has the credential's `id` and `"organizationId"`: a
 * token of the credential's bucket and, where it had one, so many of its organization's. In this order, so that what a
 * credential sends beyond its own limit takes nothing from the others.
 */
export const takeCredentialTokens = (
  sql: SqlClient.SqlClient,
  kind: "key" | "session",
  policies: CredentialPolicies,
  organizationTokens: Statement.Fragment
): Statement.Fragment => {
  const own = sql`SELECT ${sql.literal(`'${kind}:'`)} || id AS bucket FROM caller`
  const shared = sql`
    SELECT 'organization:' || caller."organizationId" AS bucket FROM caller, own
    WHERE own.granted >= 1 AND ${organizationTokens}::float8 > 0 AND caller."organizationId" IS NOT NULL`
  return sql`
    own AS (${takeTokens(sql, own, policies.own)}),
    shared AS (${takeTokens(sql, shared, policies.organization, { wanted: sql`${organizationTokens}::float8` })})`
}

/** The columns of what those parts took. */
export const credentialLimitColumns = (sql: SqlClient.SqlClient): Statement.Fragment =>
  sql.literal(`own.tokens AS "ownTokens", own.granted AS "ownGranted",
    shared.tokens AS "sharedTokens", shared.granted AS "sharedGranted"`)

export interface CredentialLimitsRow {
  readonly organizationId: OrganizationId | null
  readonly ownTokens: number
  readonly ownGranted: number
  readonly sharedTokens: number | null
  readonly sharedGranted: number | null
}

export const toCredentialLimits = (row: CredentialLimitsRow): CredentialLimits => ({
  organizationId: row.organizationId,
  own: { tokens: row.ownTokens, granted: row.ownGranted },
  organization:
    row.sharedTokens === null || row.sharedGranted === null
      ? null
      : { tokens: row.sharedTokens, granted: row.sharedGranted }
})
