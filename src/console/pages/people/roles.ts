export const roleWords = {
  owner: "everything, including other owners and admins",
  admin: "everything in both workspaces, except appointing owners and admins",
  developer: "payments, catalog, destinations and keys, in the workspaces given to them",
  viewer: "reads everything in the workspaces given to them, and changes nothing"
} as const

export type Role = keyof typeof roleWords

export const roles: ReadonlyArray<Role> = ["owner", "admin", "developer", "viewer"]

export const entersAll = (role: Role): boolean => role === "owner" || role === "admin"
