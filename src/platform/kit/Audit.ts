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

/** A change to record. */
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

/**
 * An object's id as audit records store it. UUIDs are lowercased: a path accepts either case, and a search for an
 * object's records must find them all. Other ids, such as the provider's, are case-sensitive.
 */
export const auditedId = (id: string): string => (uuidForm.test(id) ? id.toLowerCase() : id)

const targetTypeOf = ({ action, targetType }: Pick<AuditEntry, "action" | "targetType">): string =>
  targetType ?? action.slice(0, action.indexOf("."))

/**
 * Records a change: who, what, which object, when, in which request (contract 2.13). Run it in the transaction of the
 * change, so that neither is stored without the other.
 */
export const makeAudit = Effect.map(
  SqlClient.SqlClient,
  (sql) =>
    (entry: AuditEntry): Effect.Effect<void, SqlError.SqlError> =>
      Effect.gen(function* () {
        const id = yield* newId
        const requestId = yield* RequestId
        yield* sql`
          INSERT INTO payments.audit_log
            (organization_id, id, environment, author_kind, author_id, action, target_type, target_id, request_id)
          VALUES (${entry.organizationId}, ${id}, ${entry.environment}, ${entry.author.kind}, ${entry.author.id},
            ${entry.action}, ${targetTypeOf(entry)}, ${auditedId(entry.targetId)}, ${requestId})`
      })
)

/** Changes of one kind, by one author. */
export type AuditEntries = Omit<AuditEntry, "environment" | "targetId">

/** The changed object. */
export interface AuditTarget {
  readonly environment: Environment | null
  readonly id: string
}

/** Records many changes in one statement; otherwise like `makeAudit`. */
export const makeAuditAll = Effect.map(
  SqlClient.SqlClient,
  (sql) =>
    (entries: AuditEntries, targets: ReadonlyArray<AuditTarget>): Effect.Effect<void, SqlError.SqlError> =>
      Effect.gen(function* () {
        if (targets.length === 0) {
          return
        }
        const ids = yield* Effect.forEach(targets, () => newId)
        const requestId = yield* RequestId
        yield* sql`
          INSERT INTO payments.audit_log
            (organization_id, id, environment, author_kind, author_id, action, target_type, target_id, request_id)
          SELECT ${entries.organizationId}, t.id, t.environment, ${entries.author.kind}, ${entries.author.id},
            ${entries.action}, ${targetTypeOf(entries)}, t.target, ${requestId}
          FROM unnest(${ids}::uuid[], ${targets.map(({ environment }) => environment)}::text[],
            ${targets.map(({ id }) => id)}::text[]) AS t (id, environment, target)`
      })
)
