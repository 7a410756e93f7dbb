import type { Environment } from "../events/Environment.ts"
import type { OrganizationId } from "./Ids.ts"

/** Whose data an operation touches: no query goes without both. */
export interface Tenant {
  readonly organizationId: OrganizationId
  readonly environment: Environment
}

/**
 * Who is on record as the author of a change. An operator acts at the console of the service itself; the provider acts by
 * what it says of an account.
 */
export interface Author {
  readonly kind: "api_key" | "person" | "operator" | "provider"
  readonly id: string
}
