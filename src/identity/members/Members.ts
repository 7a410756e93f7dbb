import { SqlClient } from "@effect/sql"
import { Effect } from "effect"
import { PermissionDenied, ResourceNotFound, ValidationFailed } from "../../platform/errors/Errors.ts"
import { type AuditAction, makeAudit } from "../../platform/kit/Audit.ts"
import type { Environment } from "../../platform/kit/Environment.ts"
import type { OrganizationId } from "../../platform/kit/Ids.ts"
import { service } from "../../platform/kit/Service.ts"
import type { Author } from "../../platform/kit/Tenant.ts"
import { orUnavailable, transaction } from "../../platform/storage/Database.ts"
import { makeRevokeGranted } from "../keys/GrantPolicy.ts"
import type { Role } from "../Principal.ts"
import { entersEverything, makeMembersRepo, manages } from "./MembersRepo.ts"

export { entersEverything, type Member, manages } from "./MembersRepo.ts"

export interface MemberChange {
  readonly role?: Role
  /** Replaces the granted workspaces; for developers and viewers only. */
  readonly environments?: ReadonlyArray<Environment>
}

interface NewMember {
  readonly organizationId: OrganizationId
  readonly email: string
  readonly role: Role
  readonly environments: ReadonlyArray<Environment>
  readonly author: Author
}

interface ExistingMember {
  readonly organizationId: OrganizationId
  readonly personId: string
  readonly author: Author
  /** Keeps the member's keys. Nobody may choose this for their own. Default: false. */
  readonly keepKeys?: boolean
}

export const requireGrantable = (
  role: Role,
  environments: ReadonlyArray<Environment>
): Effect.Effect<void, ValidationFailed> =>
  entersEverything(role) && environments.length > 0
    ? new ValidationFailed({
        message: "`environments` is only for developers and viewers: owners and admins enter every workspace.",
        fields: ["environments"]
      })
    : Effect.void

export const requireManages = (actor: Role, other: Role): Effect.Effect<void, PermissionDenied> =>
  manages(actor, other)
    ? Effect.void
    : new PermissionDenied({ message: `The role ${actor} may not decide on members of the role ${other}.` })

const sameEnvironments = (a: ReadonlyArray<Environment>, b: ReadonlyArray<Environment>): boolean =>
  a.length === b.length && a.every((environment) => b.includes(environment))

const makeParts = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const audit = yield* makeAudit
  const memberships = yield* makeMembersRepo
  const revokeGranted = yield* makeRevokeGranted
  const record = (organizationId: OrganizationId, author: Author, action: AuditAction, personId: string) =>
    audit({ organizationId, environment: null, author, action, targetId: personId })
  const find = Effect.fnUntraced(function* (organizationId: OrganizationId, personId: string) {
    const member = yield* memberships.find(organizationId, personId)
    return member === undefined ? yield* new ResourceNotFound({ message: "There is no such member." }) : member
  })
  /** Nobody removes the last owner, not even themselves. Run after the change, in its transaction. */
  const requireOwner = (organizationId: OrganizationId) =>
    Effect.filterOrFail(
      memberships.owners(organizationId),
      (owners) => owners.length > 0,
      () =>
        new PermissionDenied({
          message: "An organization keeps at least one owner: name another one first, or close the organization."
        })
    )
  /** Refuses to let people keep their own keys, since they would keep a right that they lose. */
  const requireMayKeep = (author: Author, personId: string, keepKeys: boolean) =>
    keepKeys && author.kind === "person" && author.id === personId
      ? new PermissionDenied({ message: "Only another owner or admin can decide to keep your keys." })
      : Effect.void
  return { sql, audit, memberships, revokeGranted, record, find, requireOwner, requireMayKeep }
})

type Parts = Effect.Effect.Success<typeof makeParts>

const makeAdd = ({ find, memberships, record, sql }: Parts) =>
  Effect.fn("Members.add")(
    function* ({ author, email, ...options }: NewMember) {
      const { environments, organizationId, role } = options
      yield* requireGrantable(role, environments)
      const [organization] = yield* memberships.lock(organizationId)
      if (organization === undefined) {
        return yield* new ResourceNotFound({ message: "There is no such organization." })
      }
      yield* requireManages(yield* memberships.roleOf(organizationId, author), role)
      const personId = yield* memberships.ensurePerson(email)
      yield* memberships.insert({ ...options, personId })
      yield* record(organizationId, author, "member.added", personId)
      return yield* find(organizationId, personId)
    },
    transaction(sql),
    orUnavailable
  )

const makeUpdate = ({ find, memberships, record, requireMayKeep, requireOwner, revokeGranted, sql }: Parts) =>
  Effect.fn("Members.update")(
    function* (options: ExistingMember & { readonly change: MemberChange }) {
      const { author, change, keepKeys = false, organizationId, personId } = options
      yield* requireMayKeep(author, personId, keepKeys)
      yield* memberships.lock(organizationId)
      const actor = yield* memberships.roleOf(organizationId, author)
      if (!entersEverything(actor)) {
        return yield* new PermissionDenied({ message: "Only owners and admins may change members." })
      }
      const member = yield* find(organizationId, personId)
      const role = change.role ?? member.role
      yield* requireManages(actor, member.role)
      yield* requireManages(actor, role)
      yield* requireGrantable(role, change.environments ?? [])
      const granted = entersEverything(member.role) ? [] : member.environments
      const environments = entersEverything(role) ? [] : (change.environments ?? granted)
      if (role === member.role && sameEnvironments(environments, granted)) {
        return member
      }
      yield* memberships.setRole(organizationId, personId, role)
      yield* memberships.grant(organizationId, personId, environments)
      yield* requireOwner(organizationId)
      yield* record(organizationId, author, "member.updated", personId)
      const place = yield* find(organizationId, personId)
      yield* revokeGranted({ organizationId, personId, place, keepKeys, author })
      return place
    },
    transaction(sql),
    orUnavailable
  )

const makeRemove = ({ find, memberships, record, requireMayKeep, requireOwner, revokeGranted, sql }: Parts) =>
  Effect.fn("Members.remove")(
    function* (options: ExistingMember) {
      const { author, keepKeys = false, organizationId, personId } = options
      yield* requireMayKeep(author, personId, keepKeys)
      yield* memberships.lock(organizationId)
      const actor = yield* memberships.roleOf(organizationId, author)
      const leaves = author.kind === "person" && author.id === personId
      if (!leaves && !entersEverything(actor)) {
        return yield* new PermissionDenied({ message: "Only owners and admins may remove other members." })
      }
      const member = yield* find(organizationId, personId)
      if (!leaves) {
        yield* requireManages(actor, member.role)
      }
      yield* memberships.remove(organizationId, personId)
      yield* requireOwner(organizationId)
      yield* record(organizationId, author, "member.removed", personId)
      yield* revokeGranted({ organizationId, personId, place: undefined, keepKeys, author })
    },
    transaction(sql),
    orUnavailable
  )

const make = Effect.gen(function* () {
  const parts = yield* makeParts
  /** Adds a person without an invitation, and creates them if they are unknown: for the operator. */
  const add = makeAdd(parts)
  /** A role with access to every workspace clears the granted ones; a change back starts with none. */
  const update = makeUpdate(parts)
  /** Removes a member; any member may remove themselves. */
  const remove = makeRemove(parts)
  const list = Effect.fn("Members.list")(parts.memberships.list, orUnavailable)

  return { list, add, update, remove }
})

/**
 * The members of organizations: roles and access to workspaces (contract 2.7, 2.8).
 *
 * Who may change whom: an owner changes everybody, an admin developers and viewers, and nobody assigns a role that they
 * could not change; the operator acts like an owner. An organization keeps at least one owner. Changes take effect with
 * the next request of the member's sessions, which continue: a removed person is signed in without an organization.
 *
 * When a member loses the right to create them, the open invitations that they sent and the keys that they created are
 * revoked: all of them on a removal, and on a change those that they could no longer create.
 */
export class Members extends service<Members>()("connected-payments/identity/Members", make) {}
