import type { SqlClient, SqlError, Statement } from "@effect/sql"
import { Duration, Effect } from "effect"
import type { ServiceUnavailable } from "../../platform/errors/Errors.ts"
import { Batcher, maxPermitWaiters, permitRefused, permitTimeoutMillis } from "../../platform/kit/Concurrency.ts"
import type { OrganizationId } from "../../platform/kit/Ids.ts"
import { type RateLimitPolicy, type Taken, takeTokens } from "../../platform/kit/RateLimit.ts"
import { orUnavailable } from "../../platform/storage/Database.ts"

/** The limits on requests with a credential: its own, and one shared by all of its organization's credentials. */
export interface CredentialPolicies {
  readonly own: RateLimitPolicy
  readonly organization: RateLimitPolicy
}

const credentialsPerOrganization = 10

export const perMinute = (limit: number): RateLimitPolicy => ({ limit, per: Duration.minutes(1) })

export const credentialPolicies = (rateLimitPerMinute: number): CredentialPolicies => ({
  own: perMinute(rateLimitPerMinute),
  organization: perMinute(credentialsPerOrganization * rateLimitPerMinute)
})

/** The tokens that a request takes from the buckets in the database. */
export interface TokensToTake {
  /** From the credential's own bucket; 0 if the process has a prefetched one. */
  readonly own: number
  /** Prefetched from the credential's own bucket, unused, and returned. */
  readonly returned: number
  /** From its organization's bucket; 0 if the process has a prefetched one. */
  readonly organization: number
  /** Prefetched from its organization's bucket, unused, and returned if others are taken. */
  readonly organizationReturned: number
}

/** Whether a request leaves the buckets in the database unchanged. */
export const takesNothing = ({ organization, own, returned }: TokensToTake): boolean =>
  own === 0 && organization === 0 && returned === 0

export interface CredentialLimits {
  /** Null for a person without an organization. */
  readonly organizationId: OrganizationId | null
  /** Null if no token was asked for. */
  readonly own: Taken | null
  /** Null if no token was asked for, or the credential's own limit had already refused the request. */
  readonly organization: Taken | null
}

/**
 * Finds out which hashes belong to credentials, in one statement for all concurrent callers. A credential that a
 * process sees for the first time may be made up, and only the database can tell: looked up one by one, a flood of
 * made-up ones would queue ahead of the real ones.
 */

const maxHashes = 500

/** `find` returns the hashes that belong to credentials. */
export const makeCredentialSearch = (
  find: (hashes: ReadonlyArray<Buffer>) => Effect.Effect<ReadonlyArray<{ readonly hash: Buffer }>, SqlError.SqlError>
): Effect.Effect<(hash: Buffer) => Effect.Effect<boolean, ServiceUnavailable>> =>
  Effect.map(
    Batcher.make<Buffer, boolean, ServiceUnavailable>({
      run: (hashes) =>
        Effect.map(orUnavailable(find(hashes)), (rows) => {
          const found = new Set(rows.map(({ hash }) => hash.toString("base64url")))
          return hashes.map((hash) => found.has(hash.toString("base64url")))
        }),
      keyOf: (hash) => hash.toString("base64url"),
      concurrency: 1,
      maxBatch: maxHashes,
      interval: () => 0,
      timeout: { millis: permitTimeoutMillis, error: permitRefused },
      maxWaiting: maxPermitWaiters,
      isOfOne: () => false
    }),
    ({ submit }) =>
      (hash) =>
        // The statement itself may take longer than a request should wait
        Effect.timeoutFail(submit(hash), { duration: permitTimeoutMillis, onTimeout: permitRefused })
  )

/**
 * The common table expressions `own` and `shared` of a statement whose `caller` has the credential's `id` and
 * `"organizationId"`: they take tokens from the credential's bucket and, unless that was empty, from its
 * organization's. In this order, so that requests beyond a credential's own limit take nothing from the others.
 */
export const takeCredentialTokens = (
  sql: SqlClient.SqlClient,
  kind: "key" | "session",
  policies: CredentialPolicies,
  tokens: Readonly<Record<keyof TokensToTake, Statement.Fragment | number>>
): Statement.Fragment => {
  const wanted = sql`${tokens.own}::float8`
  const own = sql`SELECT ${sql.literal(`'${kind}:'`)} || id AS bucket FROM caller WHERE ${wanted} > 0`
  const shared = sql`
    SELECT 'organization:' || caller."organizationId" AS bucket FROM caller
    WHERE (${wanted} = 0 OR EXISTS (SELECT 1 FROM own WHERE granted >= 1))
      AND ${tokens.organization}::float8 > 0 AND caller."organizationId" IS NOT NULL`
  return sql`
    own AS (${takeTokens(sql, own, policies.own, { wanted, returned: sql`${tokens.returned}::float8` })}),
    shared AS (${takeTokens(sql, shared, policies.organization, {
      wanted: sql`${tokens.organization}::float8`,
      returned: sql`${tokens.organizationReturned}::float8`
    })})`
}

export const credentialLimitColumns = (sql: SqlClient.SqlClient): Statement.Fragment =>
  sql.literal(`own.tokens AS "ownTokens", own.granted AS "ownGranted",
    shared.tokens AS "sharedTokens", shared.granted AS "sharedGranted"`)

export interface CredentialLimitsRow {
  readonly organizationId: OrganizationId | null
  readonly ownTokens: number | null
  readonly ownGranted: number | null
  readonly sharedTokens: number | null
  readonly sharedGranted: number | null
}

/** A look-up that took no tokens lacks the token columns. */
export const toCredentialLimits = ({
  organizationId,
  ...row
}: Pick<CredentialLimitsRow, "organizationId"> & Partial<CredentialLimitsRow>): CredentialLimits => ({
  organizationId,
  own: toTaken(row.ownTokens, row.ownGranted),
  organization: toTaken(row.sharedTokens, row.sharedGranted)
})

const toTaken = (tokens: number | null | undefined, granted: number | null | undefined): Taken | null =>
  typeof tokens === "number" && typeof granted === "number" ? { tokens, granted } : null
