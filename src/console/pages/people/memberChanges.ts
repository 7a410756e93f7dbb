import { entersAll, type Role } from "./roles.ts"

export interface Membership {
  readonly role: Role
  readonly environments: ReadonlyArray<"sandbox" | "production">
}

/**
 * The changed fields of a member. Only these are sent, so that someone else's concurrent change is kept. A new role is
 * sent together with the workspaces that the form shows; owners and admins may enter all of them.
 */
export const memberChanges = (before: Membership, { environments, role }: Membership): Partial<Membership> => {
  const isSame = role === before.role
  const entersSame = [...environments].sort().join() === [...before.environments].sort().join()
  return {
    ...(isSame ? {} : { role }),
    ...(entersAll(role) || (isSame && entersSame) ? {} : { environments })
  }
}
