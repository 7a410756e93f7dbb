import { Duration } from "effect"
import type { OrganizationId } from "../../platform/kit/Ids.ts"
import type { Taken } from "../../platform/kit/RateLimitStatements.ts"
import type { RateLimitPolicy } from "../../platform/kit/TokenBucket.ts"

/** The limits on requests with a credential: its own, and one shared by all of its organization's credentials. */
export interface CredentialPolicies {
  readonly own: RateLimitPolicy
  readonly organization: RateLimitPolicy
}

/** An organization's limit, as a multiple of one credential's. */
const credentialsPerOrganization = 10

export const perMinute = (limit: number): RateLimitPolicy => ({ limit, per: Duration.minutes(1) })

/** Derives the limits from the requests per minute of one credential. */
export const credentialPolicies = (rateLimitPerMinute: number): CredentialPolicies => ({
  own: perMinute(rateLimitPerMinute),
  organization: perMinute(credentialsPerOrganization * rateLimitPerMinute)
})

/** The tokens that a request takes from the buckets in the database. */
export interface TokensToTake {
  /** From the credential's own bucket; 0 if the process has a prefetched one. */
  readonly own: number
  /** Prefetched from the credential's own bucket, unused, and returned. */
  readonly returned: number
  /** From its organization's bucket; 0 if the process has a prefetched one. */
  readonly organization: number
  /** Prefetched from its organization's bucket, unused, and returned if others are taken. */
  readonly organizationReturned: number
}

/** Whether a request leaves the buckets in the database unchanged. */
export const takesNothing = ({ organization, own, returned }: TokensToTake): boolean =>
  own === 0 && organization === 0 && returned === 0

/** The database's answer about a credential's limits. */
export interface CredentialLimits {
  /** Null for a person without an organization. */
  readonly organizationId: OrganizationId | null
  /** Null if no token was asked for. */
  readonly own: Taken | null
  /** Null if no token was asked for, or the credential's own limit had already refused the request. */
  readonly organization: Taken | null
}
