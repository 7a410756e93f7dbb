import { Context } from "effect"
import type { Author, Tenant } from "../kit/Tenant.ts"
import type { Permission } from "./keys/Permissions.ts"

export type { Author, Tenant } from "../kit/Tenant.ts"

/** What a member may do in an organization (contract 2.7, 2.8). */
export type Role = "owner" | "admin" | "developer" | "viewer"

/** The caller of a request: its organization and environment, its permissions, and who it is. */
export interface PrincipalShape extends Tenant {
  readonly permissions: ReadonlySet<Permission>
  readonly author: Author
  /** The role of a signed-in person; a key has none. */
  readonly role?: Role
}

/** The caller, provided by the authentication to every operation behind it. */
export class Principal extends Context.Tag("connected-payments/identity/Principal")<Principal, PrincipalShape>() {}
