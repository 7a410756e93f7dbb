import { SqlClient, type SqlError } from "@effect/sql"
import { Duration, Effect } from "effect"
import { entersEverything, makeMembersRepo } from "../../identity/members/MembersRepo.ts"
import type { Role } from "../../identity/Principal.ts"
import { PermissionDenied, RateLimitExceeded, type ServiceUnavailable } from "../../platform/errors/Errors.ts"
import { RateLimits } from "../../platform/kit/RateLimit.ts"
import type { Author, Tenant } from "../../platform/kit/Tenant.ts"
import { orUnavailable, transaction } from "../../platform/storage/Database.ts"

/** Who may connect and disconnect accounts, and how often. */

/** How often an organization may start or resume connecting an account: each time costs the platform several calls. */
export const connectingLimits = { perTenMinutes: 10, perDay: 50 } as const

const policies = [
  {
    bucket: "account-connecting",
    limit: connectingLimits.perTenMinutes,
    per: Duration.minutes(10),
    words: "10 minutes"
  },
  { bucket: "account-connecting-of-day", limit: connectingLimits.perDay, per: Duration.days(1), words: "a day" }
] as const

export const makeConnectingPolicy = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const limits = yield* RateLimits
  const memberships = yield* makeMembersRepo

  const requireRole = Effect.fnUntraced(function* (
    { organizationId }: Tenant,
    author: Author,
    may: (role: Role) => boolean,
    who: string
  ): Effect.fn.Return<void, PermissionDenied | SqlError.SqlError> {
    yield* memberships.lock(organizationId)
    if (!may(yield* memberships.roleOf(organizationId, author))) {
      return yield* new PermissionDenied({ message: `Only ${who} the provider account.` })
    }
  })

  const requireManager = (tenant: Tenant, author: Author) =>
    requireRole(tenant, author, entersEverything, "owners and admins may connect")

  return {
    /** Requires an owner or admin, by the author's current role. Run it in a transaction. */
    requireManager,

    /** Like `requireManager`, in its own transaction. */
    requireManagerNow: (tenant: Tenant, author: Author): Effect.Effect<void, PermissionDenied | ServiceUnavailable> =>
      orUnavailable(transaction(sql)(requireManager(tenant, author))),

    requireOwner: (tenant: Tenant, author: Author) =>
      requireRole(tenant, author, (role) => role === "owner", "owners may disconnect"),

    /** Counts against the organization's rate limits, which both environments share. */
    takeTurn: ({ organizationId }: Tenant): Effect.Effect<void, RateLimitExceeded | ServiceUnavailable> =>
      Effect.forEach(
        policies,
        ({ bucket, limit, per, words }) =>
          Effect.catchTag(
            limits.take(`${bucket}:${organizationId}`, { limit, per }),
            "BucketEmpty",
            ({ retryAfter }) =>
              new RateLimitExceeded({
                message: `An organization may begin to connect an account ${limit} times in ${words}; wait as long as Retry-After says.`,
                retryAfter
              })
          ),
        { discard: true }
      )
  }
})
