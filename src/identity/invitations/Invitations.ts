import { SqlClient } from "@effect/sql"
import { Context, Effect, Layer, type Redacted } from "effect"
import {
  type OrganizationAlreadyExists,
  PermissionDenied,
  type RateLimitExceeded,
  ResourceNotFound,
  type ServiceUnavailable,
  SessionInvalid,
  ValidationFailed
} from "../../platform/errors/Errors.ts"
import { type AuditAction, makeAudit } from "../../platform/kit/Audit.ts"
import type { Environment } from "../../platform/kit/Environment.ts"
import { newId, type OrganizationId } from "../../platform/kit/Ids.ts"
import { Mailer } from "../../platform/kit/Mailer.ts"
import { RateLimits } from "../../platform/kit/RateLimit.ts"
import type { Author } from "../../platform/kit/Tenant.ts"
import { removeOld } from "../../platform/storage/Batches.ts"
import { orUnavailable, transaction } from "../../platform/storage/Database.ts"
import { requireGrantable, requireManages } from "../members/Members.ts"
import { entersEverything, makeMemberships } from "../members/MembershipsRepo.ts"
import type { InvitedRole } from "../Schemas.ts"
import { takeInvitation } from "../sign-in/MailLimits.ts"
import { invitationDays, invitationMail } from "../sign-in/Mails.ts"
import { newToken, Sessions, tokenHash } from "../sign-in/Sessions.ts"
import type { BegunSession } from "../sign-in/SignIn.ts"

/** An open invitation, as the API shows it: never its token. */
export interface Invitation {
  readonly id: string
  readonly email: string
  readonly role: InvitedRole
  readonly environments: ReadonlyArray<Environment>
  readonly createdAt: Date
  /** Null if it was created before this was recorded. */
  readonly createdBy: Author | null
  readonly expiresAt: Date
}

/** An invitation as the holder of its link sees it. */
export interface InvitationPreview {
  readonly email: string
  readonly organization: string
  readonly role: InvitedRole
  readonly expiresAt: Date
}

/** The actor, and the organization whose invitations it acts on. */
interface Acting {
  readonly organizationId: OrganizationId
  readonly author: Author
}

export interface NewInvitation extends Acting {
  readonly email: string
  readonly role: InvitedRole
  /** For developers and viewers; owners and admins have access to every workspace. */
  readonly environments: ReadonlyArray<Environment>
}

/** Invitations by e-mail link, valid 7 days. Owners and admins invite; only owners invite admins. */
export class Invitations extends Context.Tag("connected-payments/identity/Invitations")<
  Invitations,
  {
    /** Invites by mail, and replaces an open invitation of the same address. Within `invitationLimits`. */
    readonly create: (
      options: NewInvitation
    ) => Effect.Effect<Invitation, PermissionDenied | ValidationFailed | RateLimitExceeded | ServiceUnavailable>
    /** The invitations that can still be accepted, newest first. */
    readonly list: (options: Acting) => Effect.Effect<ReadonlyArray<Invitation>, PermissionDenied | ServiceUnavailable>
    /** Revokes an invitation: from then on its link is refused. */
    readonly revoke: (
      options: Acting & { readonly id: string }
    ) => Effect.Effect<void, PermissionDenied | ResourceNotFound | ServiceUnavailable>
    /** Shows an invitation without using it. Fails with the same errors as `accept`. */
    readonly preview: (
      token: Redacted.Redacted
    ) => Effect.Effect<InvitationPreview, SessionInvalid | ServiceUnavailable>
    /**
     * Makes the invited person a member and creates their session, since the token came by mail like a sign-in link.
     * Unknown, accepted, revoked and expired invitations get the same refusal, and so do those whose inviter could no
     * longer send them. A person with an organization is refused, and the invitation stays open.
     */
    readonly accept: (
      token: Redacted.Redacted,
      client: string | null
    ) => Effect.Effect<BegunSession, SessionInvalid | OrganizationAlreadyExists | ServiceUnavailable>
    /** Removes invitations 30 days after their expiry. */
    readonly clean: Effect.Effect<void, ServiceUnavailable>
  }
>() {
  static readonly layer = (options: {
    /** The public URL of the service, without a trailing slash. */
    readonly publicUrl: string
  }): Layer.Layer<Invitations, never, SqlClient.SqlClient | Sessions | RateLimits | Mailer> =>
    Layer.effect(Invitations, make(options.publicUrl))
}

/**
 * How long an invitation is kept after its expiry, whether it was used or not: the invited person's address is no
 * longer needed. The audit log still records that somebody was invited.
 */
const keepEnded = "30 days"

const make = Effect.fnUntraced(function* (publicUrl: string) {
  const sql = yield* SqlClient.SqlClient
  const sessions = yield* Sessions
  const limits = yield* RateLimits
  const mailer = yield* Mailer
  const audit = yield* makeAudit
  const memberships = yield* makeMemberships

  const columns = sql.literal(`id, email, role, environments, created_at AS "createdAt", expires_at AS "expiresAt",
    CASE WHEN created_by_id IS NOT NULL THEN json_build_object('kind', created_by_kind, 'id', created_by_id) END
      AS "createdBy"`)
  const open = sql.literal("accepted_at IS NULL AND revoked_at IS NULL")

  const record = ({ author, organizationId }: Acting, action: AuditAction, id: string) =>
    audit({ organizationId, environment: null, author, action, targetId: id })

  /** The role of the actor; fails if it may not invite. */
  const requireInviter = ({ author, organizationId }: Acting) =>
    Effect.filterOrFail(
      memberships.roleOf(organizationId, author),
      entersEverything,
      () => new PermissionDenied({ message: "Only owners and admins may see and send invitations." })
    )

  /** Revokes the open invitation of an address, if there is one, so that a new one can replace it. */
  const replaceOpen = (acting: Acting, email: string) =>
    sql<{ readonly id: string }>`
      UPDATE payments.invitations SET revoked_at = now()
      WHERE organization_id = ${acting.organizationId} AND email = ${email} AND ${open} RETURNING id`.pipe(
      Effect.flatMap((replaced) => Effect.forEach(replaced, ({ id }) => record(acting, "invitation.revoked", id)))
    )

  const insert = Effect.fnUntraced(function* (options: NewInvitation, token: Redacted.Redacted) {
    const { author, email, environments, organizationId, role } = options
    yield* memberships.lock(organizationId)
    yield* requireManages(yield* requireInviter(options), role)
    const members = yield* memberships.list(organizationId)
    if (members.some((member) => member.email === email)) {
      return yield* new ValidationFailed({ message: "`email` already belongs to a member.", fields: ["email"] })
    }
    yield* replaceOpen(options, email)
    const id = yield* newId
    const [invitation] = yield* sql<Invitation>`
      INSERT INTO payments.invitations
        (organization_id, id, email, role, environments, token_hash, expires_at, created_by_kind, created_by_id)
      VALUES (${organizationId}, ${id}, ${email}, ${role}, ${environments}::text[], ${tokenHash(token)},
        now() + ${invitationDays} * interval '1 day', ${author.kind}, ${author.id}) RETURNING ${columns}`
    yield* record(options, "invitation.created", id)
    const [organization] = yield* sql<{ readonly name: string }>`
      SELECT name FROM payments.organizations WHERE id = ${organizationId}`
    if (invitation === undefined || organization === undefined) {
      return yield* Effect.dieMessage("INSERT … RETURNING answered no row")
    }
    const inviter = members.find(({ personId }) => personId === options.author.id)?.email ?? null
    return { invitation, organization: organization.name, inviter }
  })

  const create = Effect.fn("Invitations.create")(function* (options: NewInvitation) {
    yield* requireGrantable(options.role, options.environments)
    // Checked again in the transaction; here so that a person who may not invite uses none of the organization's limit
    yield* requireInviter(options)
    // Anybody can connect an account in the sandbox; in production the provider has checked who may charge
    const [vouched] = yield* sql`
      SELECT 1 FROM payments.provider_accounts
      WHERE organization_id = ${options.organizationId} AND environment IN ('sandbox', 'production')
        AND status = 'connected'
        AND (COALESCE(linked_by, 'operator') = 'operator'
          OR environment = 'production' AND reported_status @> '{"charges_enabled": true}')
      LIMIT 1`
    yield* takeInvitation(limits, { ...options, vouched: vouched !== undefined })
    const token = newToken()
    const { invitation, ...mail } = yield* transaction(sql)(insert(options, token))
    yield* mailer.queue(invitationMail({ ...mail, publicUrl, to: options.email, token, ...options }))
    return invitation
  }, orUnavailable)

  const list = Effect.fn("Invitations.list")(function* (acting: Acting) {
    yield* requireInviter(acting)
    return yield* sql<Invitation>`
      SELECT ${columns} FROM payments.invitations
      WHERE organization_id = ${acting.organizationId} AND ${open} AND expires_at > now() ORDER BY id DESC`
  }, orUnavailable)

  const revoke = Effect.fn("Invitations.revoke")(function* (options: Acting & { readonly id: string }) {
    yield* transaction(sql)(
      Effect.gen(function* () {
        yield* memberships.lock(options.organizationId)
        const actor = yield* requireInviter(options)
        const [revoked] = yield* sql<{ readonly role: InvitedRole }>`
          UPDATE payments.invitations SET revoked_at = now()
          WHERE organization_id = ${options.organizationId} AND id = ${options.id} AND ${open} RETURNING role`
        if (revoked === undefined) {
          return yield* new ResourceNotFound({ message: "There is no such open invitation." })
        }
        yield* requireManages(actor, revoked.role)
        yield* record(options, "invitation.revoked", options.id)
      })
    )
  }, orUnavailable)

  const invalid = () =>
    new SessionInvalid({
      message:
        "The invitation is not valid: it is unknown, was used or revoked, has expired, or its sender may no longer invite."
    })

  /** Requires that the inviter may still invite. Older invitations have no recorded inviter. */
  const requireInvited = ({ createdBy, role }: Invitation, organizationId: OrganizationId) =>
    createdBy === null
      ? Effect.void
      : memberships.roleOf(organizationId, createdBy).pipe(
          Effect.flatMap((inviter) => requireManages(inviter, role)),
          Effect.catchTag("PermissionDenied", invalid)
        )

  const preview = Effect.fn("Invitations.preview")(function* (token: Redacted.Redacted) {
    const [found] = yield* sql<Invitation & { readonly organizationId: OrganizationId; readonly organization: string }>`
      SELECT ${columns}, organization_id AS "organizationId",
        (SELECT name FROM payments.organizations o WHERE o.id = organization_id) AS organization
      FROM payments.invitations WHERE token_hash = ${tokenHash(token)} AND ${open} AND expires_at > now()`
    if (found === undefined) {
      return yield* invalid()
    }
    yield* requireInvited(found, found.organizationId)
    const { email, expiresAt, organization, role } = found
    return { email, organization, role, expiresAt }
  }, orUnavailable)

  const accept = Effect.fn("Invitations.accept")(
    (token: Redacted.Redacted, client: string | null) =>
      transaction(sql)(
        Effect.gen(function* () {
          const [found] = yield* sql<{ readonly organizationId: OrganizationId }>`
          SELECT organization_id AS "organizationId" FROM payments.invitations
          WHERE token_hash = ${tokenHash(token)} AND ${open} AND expires_at > now()`
          if (found === undefined) {
            return yield* invalid()
          }
          // Serialized with a removal of the inviter: one of the two comes first
          yield* memberships.lock(found.organizationId)
          const [accepted] = yield* sql<Invitation & { readonly organizationId: OrganizationId }>`
          UPDATE payments.invitations SET accepted_at = now()
          WHERE token_hash = ${tokenHash(token)} AND ${open} AND expires_at > now()
          RETURNING ${columns}, organization_id AS "organizationId"`
          if (accepted === undefined) {
            return yield* invalid()
          }
          const { environments, organizationId, role } = accepted
          yield* requireInvited(accepted, organizationId)
          const personId = yield* memberships.ensurePerson(accepted.email)
          yield* memberships.insert({ organizationId, personId, role, environments })
          const author = { kind: "person", id: personId } as const
          yield* record({ organizationId, author }, "invitation.accepted", accepted.id)
          return yield* sessions.create(personId, client)
        })
      ),
    orUnavailable
  )

  const clean = removeOld(sql, {
    table: "invitations",
    key: ["organization_id", "id"],
    old: sql`r.expires_at < now() - ${keepEnded}::interval`,
    by: "expires_at"
  }).pipe(orUnavailable)

  return { create, list, revoke, preview, accept, clean }
})
