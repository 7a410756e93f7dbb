import { Context } from "effect"
import type { Environment } from "../platform/kit/Environment.ts"
import type { OrganizationId } from "../platform/kit/Ids.ts"
import type { Author, Tenant } from "../platform/kit/Tenant.ts"
import type { OwnPermission, Permission } from "./keys/Permissions.ts"

export type { Author, Tenant } from "../platform/kit/Tenant.ts"

export type Role = "owner" | "admin" | "developer" | "viewer"

export interface Membership {
  readonly organizationId: OrganizationId
  readonly role: Role
  /** The environments whose workspaces the person has access to: all for owners and admins, otherwise those granted. */
  readonly environments: ReadonlyArray<Environment>
}

export interface Session {
  readonly id: string
  readonly personId: string
  readonly email: string
  readonly environment: Environment
  readonly expiresAt: Date
  /** Null for a person without an organization yet. */
  readonly membership: Membership | null
}

export interface PrincipalShape extends Tenant {
  readonly permissions: ReadonlySet<Permission | OwnPermission>
  readonly author: Author
  /** The role of a signed-in person; a key has none. */
  readonly role?: Role
}

export class Principal extends Context.Tag("connected-payments/identity/Principal")<Principal, PrincipalShape>() {}
