import { entersAll, type Role } from "./roles.ts"

/** What a form says of a member. */
export interface Membership {
  readonly role: Role
  readonly environments: ReadonlyArray<"sandbox" | "production">
}

/**
 * What a form has changed of a member: only that is sent, so that another's change at the same time stays. The workspaces go
 * with a new role, since the form shows them beside it; owners and admins enter all.
 */
export const memberChanges = (before: Membership, { environments, role }: Membership): Partial<Membership> => {
  const isSame = role === before.role
  const entersSame = [...environments].sort().join() === [...before.environments].sort().join()
  return {
    ...(isSame ? {} : { role }),
    ...(entersAll(role) || (isSame && entersSame) ? {} : { environments })
  }
}
