import type { Environment } from "../events/Environment.ts"
import type { OrganizationId } from "./Ids.ts"

/** The owner of the data that an operation uses: every query names both parts. */
export interface Tenant {
  readonly organizationId: OrganizationId
  readonly environment: Environment
}

/**
 * The recorded author of a change. An operator acts through the service's command line; the provider acts through its
 * notifications about an account.
 */
export interface Author {
  readonly kind: "api_key" | "person" | "operator" | "provider"
  readonly id: string
}
