import { SqlClient, type Statement } from "@effect/sql"
import { Effect } from "effect"
import type { OrganizationId } from "../../platform/kit/Ids.ts"
import type { Author } from "../../platform/kit/Tenant.ts"
import { removeOld } from "../../platform/storage/Batches.ts"
import { anyRow } from "../../platform/storage/Database.ts"
import { invitationDays } from "../sign-in/Mails.ts"
import type { Invitation as InvitationShown } from "./Api.ts"

/** An invitation, never with its token. */
export interface Invitation extends Omit<typeof InvitationShown.Type, "createdBy"> {
  readonly organizationId: OrganizationId
  readonly createdBy: Author | null
}

export interface NewInvitation extends Pick<Invitation, "organizationId" | "email" | "role" | "environments"> {
  readonly author: Author
}

/** How long an expired invitation is kept: then the address is no longer needed. The audit log keeps its record. */
const keepEnded = "30 days"

/** The statements on invitations. Open ones are neither accepted nor revoked; they may have expired. */
export const makeInvitationsRepo = Effect.map(SqlClient.SqlClient, (sql) => {
  const columns = sql.literal(`id, email, role, environments, created_at AS "createdAt", expires_at AS "expiresAt",
    CASE WHEN created_by_id IS NOT NULL THEN json_build_object('kind', created_by_kind, 'id', created_by_id) END
      AS "createdBy", organization_id AS "organizationId"`)
  const open = sql.literal("accepted_at IS NULL AND revoked_at IS NULL")
  const valid = (hash: Buffer) => sql`token_hash = ${hash} AND ${open} AND expires_at > now()`

  const revoke = (organizationId: OrganizationId, which: Statement.Fragment) => sql<Pick<Invitation, "id" | "role">>`
    UPDATE payments.invitations SET revoked_at = now()
    WHERE organization_id = ${organizationId} AND ${which} AND ${open} RETURNING id, role`

  return {
    insert: (id: string, hash: Buffer, invitation: NewInvitation) => sql<Invitation>`
      INSERT INTO payments.invitations
        (organization_id, id, email, role, environments, token_hash, expires_at, created_by_kind, created_by_id)
      VALUES (${invitation.organizationId}, ${id}, ${invitation.email}, ${invitation.role},
        ${invitation.environments}::text[], ${hash}, now() + ${invitationDays} * interval '1 day',
        ${invitation.author.kind}, ${invitation.author.id}) RETURNING ${columns}`,

    list: (organizationId: OrganizationId) => sql<Invitation>`
      SELECT ${columns} FROM payments.invitations
      WHERE organization_id = ${organizationId} AND ${open} AND expires_at > now() ORDER BY id DESC`,

    find: (hash: Buffer) => sql<Invitation & { readonly organization: string }>`
      SELECT ${columns}, (SELECT name FROM payments.organizations o WHERE o.id = organization_id) AS organization
      FROM payments.invitations WHERE ${valid(hash)}`,

    accept: (hash: Buffer) => sql<Invitation>`
      UPDATE payments.invitations SET accepted_at = now() WHERE ${valid(hash)} RETURNING ${columns}`,

    revoke: (organizationId: OrganizationId, ids: ReadonlyArray<string>) =>
      revoke(organizationId, sql`id = ANY (${ids}::uuid[])`),

    revokeOf: (organizationId: OrganizationId, email: string) => revoke(organizationId, sql`email = ${email}`),

    revokeAll: (organizationId: OrganizationId) => revoke(organizationId, sql.literal("true")),

    /**
     * Whether the operator linked an account of the organization, or the provider lets one charge in production: anybody
     * can connect an account in the sandbox.
     */
    isVouchedFor: (organizationId: OrganizationId) =>
      anyRow(sql`
          SELECT 1 FROM payments.provider_accounts
          WHERE organization_id = ${organizationId} AND environment IN ('sandbox', 'production')
            AND status = 'connected'
            AND (COALESCE(linked_by, 'operator') = 'operator'
              OR environment = 'production' AND reported_status @> '{"charges_enabled": true}')
          LIMIT 1`),

    clean: removeOld(sql, {
      table: "invitations",
      key: ["organization_id", "id"],
      old: sql`r.expires_at < now() - ${keepEnded}::interval`,
      by: "expires_at"
    })
  }
})
