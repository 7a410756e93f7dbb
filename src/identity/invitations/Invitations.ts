import { SqlClient } from "@effect/sql"
import { Effect, type Redacted } from "effect"
import { PermissionDenied, ResourceNotFound, SessionInvalid, ValidationFailed } from "../../platform/errors/Errors.ts"
import { type AuditAction, makeAudit } from "../../platform/kit/Audit.ts"
import { newId } from "../../platform/kit/Ids.ts"
import { Mailer } from "../../platform/kit/Mailer.ts"
import { RateLimits } from "../../platform/kit/RateLimit.ts"
import { serviceWith } from "../../platform/kit/Service.ts"
import { orUnavailable, transaction } from "../../platform/storage/Database.ts"
import { requireGrantable, requireManages } from "../members/Members.ts"
import { entersEverything, makeMembersRepo } from "../members/MembersRepo.ts"
import { takeInvitation } from "../sign-in/MailLimits.ts"
import { invitationMail } from "../sign-in/Mails.ts"
import { newToken, Sessions, tokenHash } from "../sign-in/Sessions.ts"
import { type Invitation, makeInvitationsRepo, type NewInvitation } from "./InvitationsRepo.ts"

type Acting = Pick<NewInvitation, "organizationId" | "author">

const makeParts = Effect.fnUntraced(function* (publicUrl: string) {
  const sql = yield* SqlClient.SqlClient
  const repo = yield* makeInvitationsRepo
  const sessions = yield* Sessions
  const limits = yield* RateLimits
  const mailer = yield* Mailer
  const audit = yield* makeAudit
  const memberships = yield* makeMembersRepo
  const record = ({ author, organizationId }: Acting, action: AuditAction, id: string) =>
    audit({ organizationId, environment: null, author, action, targetId: id })
  const requireInviter = ({ author, organizationId }: Acting) =>
    Effect.filterOrFail(
      memberships.roleOf(organizationId, author),
      entersEverything,
      () => new PermissionDenied({ message: "Only owners and admins may see and send invitations." })
    )
  return { publicUrl, sql, repo, sessions, limits, mailer, audit, memberships, record, requireInviter }
})

type Parts = Effect.Effect.Success<ReturnType<typeof makeParts>>

const makeCreate = ({ limits, mailer, memberships, publicUrl, record, repo, requireInviter, sql }: Parts) => {
  /** Stores a new invitation in place of the open one of the same address, if there is one. */
  const insert = Effect.fnUntraced(function* (options: NewInvitation, token: Redacted.Redacted) {
    const { author, email, organizationId, role } = options
    const [organization] = yield* memberships.lock(organizationId)
    yield* requireManages(yield* requireInviter(options), role)
    const members = yield* memberships.list(organizationId)
    if (members.some((member) => member.email === email)) {
      return yield* new ValidationFailed({ message: "`email` already belongs to a member.", fields: ["email"] })
    }
    const replaced = yield* repo.revokeOf(organizationId, email)
    yield* Effect.forEach(replaced, ({ id }) => record(options, "invitation.revoked", id))
    const id = yield* newId
    const [invitation] = yield* repo.insert(id, tokenHash(token), options)
    yield* record(options, "invitation.created", id)
    if (invitation === undefined || organization === undefined) {
      return yield* Effect.dieMessage("INSERT … RETURNING answered no row")
    }
    const inviter = members.find(({ personId }) => personId === author.id)?.email ?? null
    return { invitation, organization: organization.name, inviter }
  }, transaction(sql))

  const create = Effect.fn("Invitations.create")(function* (options: NewInvitation) {
    yield* requireGrantable(options.role, options.environments)
    // Checked again in the transaction; here so that a person who may not invite uses none of the organization's limit
    yield* requireInviter(options)
    yield* takeInvitation(limits, { ...options, vouched: yield* repo.isVouchedFor(options.organizationId) })
    const token = newToken()
    const { invitation, ...mail } = yield* insert(options, token)
    yield* mailer.queue(invitationMail({ ...mail, publicUrl, to: options.email, token, ...options }))
    return invitation
  }, orUnavailable)

  return create
}

const makeRevoke = ({ memberships, record, repo, requireInviter, sql }: Parts) =>
  Effect.fn("Invitations.revoke")(
    function* (options: Acting & { readonly id: string }) {
      yield* memberships.lock(options.organizationId)
      const actor = yield* requireInviter(options)
      const [revoked] = yield* repo.revoke(options.organizationId, [options.id])
      if (revoked === undefined) {
        return yield* new ResourceNotFound({ message: "There is no such open invitation." })
      }
      yield* requireManages(actor, revoked.role)
      yield* record(options, "invitation.revoked", options.id)
    },
    transaction(sql),
    orUnavailable
  )

const makeAccept = ({ memberships, record, repo, sessions, sql }: Parts) => {
  const invalid = () =>
    new SessionInvalid({
      message:
        "The invitation is not valid: it is unknown, was used or revoked, has expired, or its sender may no longer invite."
    })

  const requireInvited = ({ createdBy, organizationId, role }: Invitation) =>
    createdBy === null
      ? Effect.void
      : memberships.roleOf(organizationId, createdBy).pipe(
          Effect.flatMap((inviter) => requireManages(inviter, role)),
          Effect.catchTag("PermissionDenied", invalid)
        )

  const find = Effect.fnUntraced(function* (token: Redacted.Redacted) {
    const [found] = yield* repo.find(tokenHash(token))
    return found ?? (yield* invalid())
  })

  /** Shows an invitation without using it. Fails with the same errors as `accept`. */
  const preview = Effect.fn("Invitations.preview")(function* (token: Redacted.Redacted) {
    const found = yield* find(token)
    yield* requireInvited(found)
    const { email, expiresAt, organization, role } = found
    return { email, organization, role, expiresAt }
  }, orUnavailable)

  const accept = Effect.fn("Invitations.accept")(
    function* (token: Redacted.Redacted, client: string | null) {
      const { organizationId } = yield* find(token)
      // Serialized with a removal of the inviter: one of the two comes first
      yield* memberships.lock(organizationId)
      const [accepted] = yield* repo.accept(tokenHash(token))
      if (accepted === undefined) {
        return yield* invalid()
      }
      yield* requireInvited(accepted)
      const personId = yield* memberships.ensurePerson(accepted.email)
      yield* memberships.insert({ ...accepted, personId })
      yield* record({ organizationId, author: { kind: "person", id: personId } }, "invitation.accepted", accepted.id)
      return yield* sessions.create(personId, client)
    },
    transaction(sql),
    orUnavailable
  )

  return { preview, accept }
}

const make = Effect.fnUntraced(function* ({ publicUrl }: { readonly publicUrl: string }) {
  const parts = yield* makeParts(publicUrl)
  const create = makeCreate(parts)
  /** Revokes an invitation: from then on its link is refused. */
  const revoke = makeRevoke(parts)
  /**
   * Makes the invited person a member and creates their session, since the token came by mail like a sign-in link.
   * Unknown, accepted, revoked and expired invitations get the same refusal, and so do those whose inviter could no
   * longer send them. A person with an organization is refused, and the invitation stays open.
   */
  const accept = makeAccept(parts)
  const list = Effect.fn("Invitations.list")(function* (acting: Acting) {
    yield* parts.requireInviter(acting)
    return yield* parts.repo.list(acting.organizationId)
  }, orUnavailable)

  return {
    create,
    list,
    revoke,
    preview: accept.preview,
    accept: accept.accept,
    /** Removes invitations 30 days after their expiry. */
    clean: orUnavailable(parts.repo.clean)
  }
})

/** Invitations by e-mail link, valid 7 days. Owners and admins invite; only owners invite admins. */
export class Invitations extends serviceWith<Invitations>()("connected-payments/identity/Invitations", make) {}
