import type { SqlClient, Statement } from "@effect/sql"
import type { OrganizationId } from "../../platform/kit/Ids.ts"
import { type Taken, takeTokens } from "../../platform/kit/RateLimitStatements.ts"
import type { CredentialLimits, CredentialPolicies, TokensToTake } from "../RequestAdmission.ts"

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
