import type { SqlError } from "@effect/sql"
import { Context, Effect, Layer } from "effect"
import type { ServiceUnavailable } from "../errors/Errors.ts"
import type { OrganizationId } from "../kit/Ids.ts"
import type { Tenant } from "../kit/Tenant.ts"
import type { TakenElsewhere } from "./Directory.ts"

/** Runs a write of this cell; what it needs in the directory is claimed before, and released if the write fails. */
export type UnderClaim = <A, E, R>(
  write: Effect.Effect<A, E, R>
) => Effect.Effect<A, E | TakenElsewhere | ServiceUnavailable, R>

/** Whether this cell's database has what was claimed. */
export type IsHeld = Effect.Effect<boolean, SqlError.SqlError>

/**
 * What this cell has in the directory. Every write that needs something which is unique across cells runs under a claim:
 *
 * - The claim comes first, so that no two cells have the same thing at any time.
 * - A write that certainly did not happen releases its claim at once. If its outcome is unknown (the database is away,
 *   the request was interrupted), the claim stays until `isHeld` says, half a minute later and then again, that this
 *   cell does not have it. What a dying process leaves behind is found by `connected-payments cells reconcile`.
 * - Claims wait for the directory, and fail with 503 if it can't be reached; what ends a claim never does.
 *
 * Without a directory there is nothing to claim: each write runs alone, at no cost.
 */
export class Claims extends Context.Tag("connected-payments/cells/Claims")<
  Claims,
  {
    /** This process's cell; null without a directory. */
    readonly cell: string | null
    /** The routing tag of what belongs to an organization, or to a person without one; null without a directory. */
    readonly tagOf: (organizationId: OrganizationId | null) => string | null
    /** For writing a new organization. */
    readonly organization: (id: OrganizationId, isHeld: IsHeld) => UnderClaim
    /** For linking an account. */
    readonly account: (tenant: Tenant, accountId: string, isHeld: IsHeld) => UnderClaim
    /** Whether an account is another organization's in any cell, in any environment. */
    readonly isAnothersAccount: (tenant: Tenant, accountId: string) => Effect.Effect<boolean, ServiceUnavailable>
    /** For writing a new person, or a person's membership of an organization. */
    readonly person: (email: string, organizationId: OrganizationId | null, isHeld: IsHeld) => UnderClaim
    /** After an account was unlinked: it may be another organization's now. Never fails. */
    readonly accountEnded: (tenant: Tenant, accountId: string, isHeld: IsHeld) => Effect.Effect<void>
    /** After a person has left an organization: they may have another one now. Never fails. */
    readonly membershipEnded: (email: string, organizationId: OrganizationId, isHeld: IsHeld) => Effect.Effect<void>
  }
>() {
  /** Without a directory. */
  static readonly none: Layer.Layer<Claims> = Layer.sync(Claims, () => noClaims)
}

const alone: UnderClaim = (write) => write

const noClaims: Claims["Type"] = {
  cell: null,
  tagOf: () => null,
  organization: () => alone,
  account: () => alone,
  isAnothersAccount: () => Effect.succeed(false),
  person: () => alone,
  accountEnded: () => Effect.void,
  membershipEnded: () => Effect.void
}
