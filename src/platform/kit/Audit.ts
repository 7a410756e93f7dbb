import { SqlClient, type SqlError } from "@effect/sql"
import { Effect } from "effect"
import type { Environment } from "./Environment.ts"
import { newId, type OrganizationId } from "./Ids.ts"
import { RequestId } from "./Request.ts"
import type { Author } from "./Tenant.ts"

/** The action: `<object>.<past participle>`. */
export type AuditAction =
  | "organization.created"
  | "organization.updated"
  | "organization.closed"
  | "member.added"
  | "member.updated"
  | "member.removed"
  | "invitation.created"
  | "invitation.revoked"
  | "invitation.accepted"
  | "session.started"
  | "session.ended"
  | "api_key.created"
  | "api_key.revoked"
  | "return_urls.updated"
  | "account.onboarding_started"
  | "account.linked"
  | "account.unlinked"
  | "account.disconnected"
  | "endpoint.created"
  | "endpoint.updated"
  | "endpoint.deleted"
  | "endpoint.secret_rotated"
  | "endpoint.tested"
  | "event.triggered"
  | "delivery.resent"
  | "recovery.started"
  | "event_replay.started"
  | "event_replay.canceled"
  | "product.created"
  | "product.updated"
  | "price.created"
  | "price.updated"
  | "promotion_code.created"
  | "promotion_code.updated"
  | "payment_link.created"
  | "payment_link.updated"
  | "checkout_page.created"
  | "checkout_page.updated"
  | "checkout_page.deleted"
  | "checkout_session.created"
  | "checkout_session.expired"
  | "subscription.updated"
  | "subscription.canceled"
  | "refund.created"
  | "product_image.uploaded"
  | "product_image.removed"
  | "receipt.replayed"

export interface AuditEntry {
  readonly organizationId: OrganizationId
  /** Null if the change concerns the organization as a whole. */
  readonly environment: Environment | null
  readonly author: Author
  readonly action: AuditAction
  /** Default: the object that the action names. */
  readonly targetType?: string
  readonly targetId: string
}

const uuidForm = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i

/** Lower-case for UUIDs, which a path accepts in either case; the provider's ids are case-sensitive. */
export const auditedId = (id: string): string => (uuidForm.test(id) ? id.toLowerCase() : id)

/** Changes of one kind, by one author. */
export type AuditEntries = Omit<AuditEntry, "environment" | "targetId">

export interface AuditTarget {
  readonly environment: Environment | null
  readonly id: string
}

/** In the transaction of the changes, so that neither is stored without the other (contract 2.13). */
export const makeAuditAll = Effect.map(
  SqlClient.SqlClient,
  (sql) =>
    (entries: AuditEntries, targets: ReadonlyArray<AuditTarget>): Effect.Effect<void, SqlError.SqlError> =>
      Effect.gen(function* () {
        if (targets.length === 0) {
          return
        }
        const targetType = entries.targetType ?? entries.action.slice(0, entries.action.indexOf("."))
        const requestId = yield* RequestId
        const ids = yield* Effect.replicateEffect(newId, targets.length)
        const { action, author, organizationId } = entries
        yield* sql`
          INSERT INTO payments.audit_log
            (organization_id, id, environment, author_kind, author_id, action, target_type, target_id, request_id)
          SELECT ${organizationId}, t.id, t.environment, ${author.kind}, ${author.id},
            ${action}, ${targetType}, t.target, ${requestId}
          FROM unnest(${ids}::uuid[], ${targets.map(({ environment }) => environment)}::text[],
            ${targets.map(({ id }) => auditedId(id))}::text[]) AS t (id, environment, target)`
      })
)

/** Records one change; otherwise like `makeAuditAll`. */
export const makeAudit = Effect.map(
  makeAuditAll,
  (auditAll) =>
    ({ environment, targetId, ...entry }: AuditEntry): Effect.Effect<void, SqlError.SqlError> =>
      auditAll(entry, [{ environment, id: targetId }])
)
