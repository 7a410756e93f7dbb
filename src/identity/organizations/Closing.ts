import { SqlClient } from "@effect/sql"
import { Effect } from "effect"
import { OrganizationNotEmpty } from "../../platform/errors/Errors.ts"
import { makeAuditAll } from "../../platform/kit/Audit.ts"
import type { Environment } from "../../platform/kit/Environment.ts"
import type { OrganizationId } from "../../platform/kit/Ids.ts"
import type { Author } from "../../platform/kit/Tenant.ts"

/** The parts of an organization that others still rely on: money, notifications, people. */
interface Left {
  readonly accounts: ReadonlyArray<Environment>
  readonly destinations: boolean
  readonly pages: boolean
  readonly members: boolean
}

const inWords = ({ accounts, destinations, members, pages }: Left): ReadonlyArray<string> => [
  ...accounts.map((environment) => `disconnect the account in ${environment}`),
  ...(destinations ? ["delete its destinations"] : []),
  ...(pages ? ["delete its checkout pages"] : []),
  ...(members ? ["remove its other members"] : [])
]

/**
 * Closes an organization. It must be empty first, since each deletion has its own consequences, which the owner should
 * see one by one. Records are kept as long as usual, for the operator. Run it in a transaction, under the lock of the
 * organization's members.
 */
export const makeClosing = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const auditAll = yield* makeAuditAll

  const requireEmpty = Effect.fnUntraced(function* (organizationId: OrganizationId) {
    // Blocks additions until the transaction ends: each one references the workspace
    yield* sql`SELECT 1 FROM payments.workspaces WHERE organization_id = ${organizationId} FOR UPDATE`
    const [left] = yield* sql<Left>`
      SELECT
        -- Also one whose access could not be ended yet, unless that is needed elsewhere
        ARRAY(SELECT environment FROM payments.provider_accounts a WHERE organization_id = ${organizationId}
          AND (status = 'connected' OR ends_at_provider AND NOT EXISTS (
            SELECT 1 FROM payments.provider_accounts o WHERE o.account_id = a.account_id AND o.status = 'connected'
          )) ORDER BY environment DESC) AS accounts,
        EXISTS (SELECT 1 FROM payments.endpoints
          WHERE organization_id = ${organizationId} AND environment IN ('sandbox', 'production')
            AND deleted_at IS NULL) AS destinations,
        EXISTS (SELECT 1 FROM payments.checkout_pages
          WHERE organization_id = ${organizationId} AND environment IN ('sandbox', 'production')
            AND deleted_at IS NULL) AS pages,
        (SELECT count(*) > 1 FROM payments.memberships WHERE organization_id = ${organizationId}) AS members`
    const steps = left === undefined ? [] : inWords(left)
    if (steps.length > 0) {
      return yield* new OrganizationNotEmpty({
        message: `Before the organization can be closed: ${steps.join("; ")}.`
      })
    }
  })

  /**
   * Revokes all keys and invitations, whoever created them, ends the memberships, and releases the accounts for other
   * organizations.
   */
  const end = Effect.fnUntraced(function* (organizationId: OrganizationId, author: Author) {
    const invitations = yield* sql<{ readonly id: string }>`
      UPDATE payments.invitations SET revoked_at = now()
      WHERE organization_id = ${organizationId} AND accepted_at IS NULL AND revoked_at IS NULL RETURNING id`
    yield* auditAll(
      { organizationId, author, action: "invitation.revoked" },
      invitations.map(({ id }) => ({ environment: null, id }))
    )
    const keys = yield* sql<{ readonly id: string; readonly environment: Environment }>`
      UPDATE payments.api_keys SET revoked_at = now()
      WHERE organization_id = ${organizationId} AND revoked_at IS NULL RETURNING id, environment`
    yield* auditAll({ organizationId, author, action: "api_key.revoked" }, keys)
    const accounts = yield* sql<{ readonly id: string; readonly environment: Environment }>`
      DELETE FROM payments.provider_accounts WHERE organization_id = ${organizationId}
      RETURNING account_id AS id, environment`
    yield* auditAll({ organizationId, author, action: "account.unlinked" }, accounts)
    yield* sql`DELETE FROM payments.memberships WHERE organization_id = ${organizationId}`
  })

  return { requireEmpty, end }
})
