import { Effect } from "effect"
import { PermissionDenied, WorkspaceAccessRequired } from "../../platform/errors/Errors.ts"
import { makeAuditAll } from "../../platform/kit/Audit.ts"
import type { Environment } from "../../platform/kit/Environment.ts"
import type { OrganizationId } from "../../platform/kit/Ids.ts"
import { makeInvitationsRepo } from "../invitations/InvitationsRepo.ts"
import { type Member, manages } from "../members/MembersRepo.ts"
import type { Author, Role } from "../Principal.ts"
import { makeKeysRepo } from "./KeysRepo.ts"
import {
  entrusted,
  expandGrants,
  type Grant,
  isPermission,
  type OwnPermission,
  PaymentPermission,
  type Permission,
  WebhookPermission
} from "./Permissions.ts"

const working: ReadonlySet<Permission> = new Set([...PaymentPermission.literals, ...WebhookPermission.literals])

const byRole: Readonly<Record<Role, ReadonlySet<Permission>>> = {
  owner: new Set([...working, ...entrusted]),
  admin: new Set([...working, ...entrusted]),
  developer: working,
  viewer: new Set([...working].filter((permission) => permission.endsWith(":read")))
}

/** Only owners and admins read the audit log and customers' personal data. */
export const permissionsOf = (role: Role): ReadonlySet<Permission> => byRole[role]

/** Who may create keys and invitations, and what is revoked when a member loses that right. */

type Place = Pick<Member, "role" | "environments">

/** Viewers manage no keys, and nobody those of a workspace without access to it. */
export const requireKeyManager = (
  { environments, role }: Place,
  environment: Environment
): Effect.Effect<void, PermissionDenied | WorkspaceAccessRequired> => {
  if (role === "viewer") {
    return new PermissionDenied({ message: "The role viewer may not manage API keys." })
  }
  return environments.includes(environment) ? Effect.void : new WorkspaceAccessRequired()
}

const beyond = ({ role }: Place, grants: ReadonlyArray<Grant | OwnPermission>) =>
  [...expandGrants(grants)].filter(isPermission).filter((permission) => !permissionsOf(role).has(permission))

export const requireMayGrant = (
  place: Place,
  environment: Environment,
  grants: ReadonlyArray<Grant | OwnPermission>
): Effect.Effect<void, PermissionDenied | WorkspaceAccessRequired> =>
  Effect.zipRight(
    requireKeyManager(place, environment),
    Effect.suspend(() => {
      const lacked = beyond(place, grants)
      return lacked.length === 0
        ? Effect.void
        : new PermissionDenied({ message: `You lack ${lacked.join(", ")}, and can't give it to a key.` })
    })
  )

export interface MembershipChange {
  readonly organizationId: OrganizationId
  readonly personId: string
  /** Their new role and workspaces; undefined if they are no longer a member. */
  readonly place: Place | undefined
  readonly keepKeys: boolean
  readonly author: Author
}

/**
 * Revokes the open invitations and the keys that a member created and could no longer create, each with an audit
 * record. Runs in the transaction that changes the membership, under the lock of the organization's members.
 */
export const makeRevokeGranted = Effect.gen(function* () {
  const keys = yield* makeKeysRepo
  const invitations = yield* makeInvitationsRepo
  const auditAll = yield* makeAuditAll

  const endInvitations = Effect.fnUntraced(function* ({ author, organizationId, personId, place }: MembershipChange) {
    const open = (yield* invitations.list(organizationId)).filter(
      ({ createdBy }) => createdBy?.kind === "person" && createdBy.id === personId
    )
    const lost = open.filter(({ role }) => place === undefined || !manages(place.role, role)).map(({ id }) => id)
    // Skips those that were accepted while this waited
    const revoked = yield* invitations.revoke(organizationId, lost)
    yield* auditAll(
      { organizationId, author, action: "invitation.revoked" },
      revoked.map(({ id }) => ({ environment: null, id }))
    )
  })

  const endKeys = Effect.fnUntraced(function* ({ author, organizationId, personId, place }: MembershipChange) {
    const lost = yield* Effect.filter(
      yield* keys.createdBy(organizationId, personId),
      ({ environment, permissions }) =>
        place === undefined
          ? Effect.succeed(false)
          : Effect.isSuccess(requireMayGrant(place, environment, permissions)),
      { negate: true }
    )
    const revoked = yield* keys.revokeThese(
      organizationId,
      lost.map(({ id }) => id)
    )
    yield* auditAll({ organizationId, author, action: "api_key.revoked" }, revoked)
  })

  return (ending: MembershipChange) =>
    Effect.zipRight(endInvitations(ending), ending.keepKeys ? Effect.void : endKeys(ending))
})
