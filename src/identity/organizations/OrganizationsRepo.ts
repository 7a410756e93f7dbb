import { SqlClient } from "@effect/sql"
import { Effect } from "effect"
import type { Environment } from "../../platform/kit/Environment.ts"
import type { OrganizationId } from "../../platform/kit/Ids.ts"
import { anyRow } from "../../platform/storage/Database.ts"

/** An organization: the tenant that owns all data. */
export interface Organization {
  readonly id: OrganizationId
  readonly name: string
}

/** The parts of an organization that others still rely on: money, notifications, people. */
export interface Remains {
  readonly accounts: ReadonlyArray<Environment>
  readonly destinations: boolean
  readonly pages: boolean
  readonly members: boolean
}

export const makeOrganizationsRepo = Effect.map(SqlClient.SqlClient, (sql) => ({
  /** Inserts an organization with its workspaces; returns whether it is new. */
  insert: ({ id, name }: Organization) =>
    anyRow(sql`
        WITH added AS (
          INSERT INTO payments.organizations (id, name) VALUES (${id}, ${name}) ON CONFLICT (id) DO NOTHING RETURNING id
        )
        INSERT INTO payments.workspaces (organization_id, environment)
        SELECT id, environment FROM added CROSS JOIN (VALUES ('sandbox'), ('production')) AS e (environment)
        RETURNING 1`),

  rename: ({ id, name }: Organization) =>
    anyRow(sql`UPDATE payments.organizations SET name = ${name} WHERE id = ${id} AND name <> ${name} RETURNING 1`),

  find: (id: OrganizationId) => sql<Organization>`SELECT id, name FROM payments.organizations WHERE id = ${id}`,

  list: sql<Organization>`SELECT id, name FROM payments.organizations ORDER BY created_at, id`,

  ofMember: (email: string) => sql<Pick<Organization, "id">>`
    SELECT m.organization_id AS id FROM payments.memberships m JOIN payments.people p ON p.id = m.person_id
    WHERE p.email = ${email.toLowerCase()}`,

  /** Blocks additions to an organization until the transaction ends: each one references the workspace. */
  lockWorkspaces: (id: OrganizationId) =>
    sql`SELECT 1 FROM payments.workspaces WHERE organization_id = ${id} FOR UPDATE`,

  remains: (id: OrganizationId) => sql<Remains>`
    SELECT
      -- Also one whose access could not be ended yet, unless that is needed elsewhere
      ARRAY(SELECT environment FROM payments.provider_accounts a WHERE organization_id = ${id}
        AND (status = 'connected' OR ends_at_provider AND NOT EXISTS (
          SELECT 1 FROM payments.provider_accounts o WHERE o.account_id = a.account_id AND o.status = 'connected'
        )) ORDER BY environment DESC) AS accounts,
      EXISTS (SELECT 1 FROM payments.endpoints
        WHERE organization_id = ${id} AND environment IN ('sandbox', 'production')
          AND deleted_at IS NULL) AS destinations,
      EXISTS (SELECT 1 FROM payments.checkout_pages
        WHERE organization_id = ${id} AND environment IN ('sandbox', 'production')
          AND deleted_at IS NULL) AS pages,
      (SELECT count(*) > 1 FROM payments.memberships WHERE organization_id = ${id}) AS members`,

  deleteAccounts: (id: OrganizationId) => sql<{ readonly id: string; readonly environment: Environment }>`
    DELETE FROM payments.provider_accounts WHERE organization_id = ${id} RETURNING account_id AS id, environment`,

  deleteMemberships: (id: OrganizationId) => sql`DELETE FROM payments.memberships WHERE organization_id = ${id}`
}))
