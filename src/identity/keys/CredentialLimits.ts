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

/** An organization may send as much as this many credentials at their limits. */
const credentialsPerOrganization = 10

/** A limit per minute. */
export const perMinute = (limit: number): RateLimitPolicy => ({ limit, per: Duration.minutes(1) })

/** The limits of credentials, from the requests per minute of one. */
export const credentialPolicies = (rateLimitPerMinute: number): CredentialPolicies => ({
  own: perMinute(rateLimitPerMinute),
  organization: perMinute(credentialsPerOrganization * rateLimitPerMinute)
})

/** The database's answer about a credential's limits. */
export interface CredentialLimits {
  /** Null for a person without an organization. */
  readonly organizationId: OrganizationId | null
  readonly own: Taken
  /** Null if no token was asked for, or the credential's own limit had already refused the request. */
  readonly organization: Taken | null
}

/**
 * The common table expressions `own` and `shared` of a statement whose `caller` has the credential's `id` and
 * `"organizationId"`: a token of the credential's bucket and, if it had one, `organizationTokens` of its
 * organization's. In this order, so that requests beyond a credential's own limit take nothing from the others.
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

/** The columns of what those expressions took. */
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
