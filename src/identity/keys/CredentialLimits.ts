import type { SqlError } from "@effect/sql"
import { Duration, Effect } from "effect"
import type { ServiceUnavailable } from "../../platform/errors/Errors.ts"
import { Batcher } from "../../platform/kit/Batcher.ts"
import { maxPermitWaiters, permitRefused, permitTimeoutMillis } from "../../platform/kit/BoundedSemaphore.ts"
import type { OrganizationId } from "../../platform/kit/Ids.ts"
import type { RateLimitPolicy, Taken } from "../../platform/kit/RateLimitStatements.ts"
import { orUnavailable } from "../../platform/storage/Database.ts"

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

/**
 * Finds out which hashes belong to credentials, in one statement for all concurrent callers. A credential that a
 * process sees for the first time may be made up, and only the database can tell: looked up one by one, a flood of
 * made-up ones would queue ahead of the real ones.
 */

const maxHashes = 500

/**
 * Creates a search.
 *
 * @param find returns the hashes that belong to credentials
 */
export const makeCredentialSearch = (
  find: (hashes: ReadonlyArray<Buffer>) => Effect.Effect<ReadonlyArray<{ readonly hash: Buffer }>, SqlError.SqlError>
): Effect.Effect<(hash: Buffer) => Effect.Effect<boolean, ServiceUnavailable>> =>
  Effect.map(
    Batcher.make<Buffer, boolean, ServiceUnavailable>({
      run: (hashes) =>
        Effect.map(orUnavailable(find(hashes)), (rows) => {
          const found = new Set(rows.map(({ hash }) => hash.toString("base64url")))
          return hashes.map((hash) => found.has(hash.toString("base64url")))
        }),
      keyOf: (hash) => hash.toString("base64url"),
      concurrency: 1,
      maxBatch: maxHashes,
      interval: () => 0,
      patience: { millis: permitTimeoutMillis, error: permitRefused },
      maxWaiting: maxPermitWaiters,
      isOfOne: () => false
    }),
    ({ submit }) =>
      (hash) =>
        // The statement itself may take longer than a request should wait
        Effect.timeoutFail(submit(hash), { duration: permitTimeoutMillis, onTimeout: permitRefused })
  )
