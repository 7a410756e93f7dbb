import { entersAll, type Role } from "./roles.ts"

/** A member, as a form shows them. */
export interface Membership {
  readonly role: Role
  readonly environments: ReadonlyArray<"sandbox" | "production">
}

/**
 * The fields of a member that a form has changed. Only these are sent, so that a change that somebody else makes at the same
 * time is kept. A new role is sent with the workspaces, which the form shows beside it; owners and admins enter all.
 */
export const memberChanges = (before: Membership, { environments, role }: Membership): Partial<Membership> => {
  const isSame = role === before.role
  const entersSame = [...environments].sort().join() === [...before.environments].sort().join()
  return {
    ...(isSame ? {} : { role }),
    ...(entersAll(role) || (isSame && entersSame) ? {} : { environments })
  }
}
