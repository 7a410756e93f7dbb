import { entersAll, type Role } from "./roles.ts"

export interface Membership {
  readonly role: Role
  readonly environments: ReadonlyArray<"sandbox" | "production">
}

/** Only the changed fields are sent, so that someone else's concurrent change is kept. */
export const memberChanges = (before: Membership, { environments, role }: Membership): Partial<Membership> => {
  const isSame = role === before.role
  const entersSame = [...environments].sort().join() === [...before.environments].sort().join()
  return {
    ...(isSame ? {} : { role }),
    ...(entersAll(role) || (isSame && entersSame) ? {} : { environments })
  }
}
