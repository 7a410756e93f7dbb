import { Context } from "effect"
import type { OrganizationId } from "../kit/Ids.ts"
import type { Environment } from "../Settings.ts"
import type { Permission } from "./Permissions.ts"

/** Whose data an operation touches: no query goes without both. */
export interface Tenant {
  readonly organizationId: OrganizationId
  readonly environment: Environment
}

/** Who is on record as the author of a change. */
export type Author =
  | { readonly kind: "api_key"; readonly id: string }
  | { readonly kind: "person"; readonly id: string }

/** The caller of a request: which organization and environment it acts in, what it may do, and who it is. */
export interface PrincipalShape extends Tenant {
  readonly permissions: ReadonlySet<Permission>
  readonly author: Author
}

/** The caller, provided by the authentication to every operation behind it. */
export class Principal extends Context.Tag("connected-payments/identity/Principal")<Principal, PrincipalShape>() {}
