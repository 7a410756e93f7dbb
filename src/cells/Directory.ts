import { Context, Data, type Effect, type Option } from "effect"
import type { ServiceUnavailable } from "../errors/Errors.ts"
import type { OrganizationId } from "../kit/Ids.ts"
import type { Tenant } from "../kit/Tenant.ts"

/**
 * The directory of cells. A cell is a complete installation on its own PostgreSQL with a group of organizations; the
 * directory is a small database beside all of them. It says which cell an organization, a provider account or a person
 * belongs to, and holds what must be unique across cells: an account per environment, one organization per person.
 */

/** The name of a cell: it appears in tokens, host names and exported maps. */
export const cellNameForm = /^[a-z][a-z0-9-]{0,31}$/

/** A cell, as the directory lists it. */
export interface Cell {
  readonly name: string
  /** The base URL at which a router reaches it, without a trailing slash. Not public. */
  readonly url: string
  /** Whether it takes what no other cell is known to have. Exactly one cell does. */
  readonly home: boolean
}

/** Where an organization is. */
export interface OrganizationPlace {
  readonly cell: string
  /** The cell that it is being moved to; null if it is not being moved. */
  readonly movingTo: string | null
  /** Changes with every change of this record; `flip` is conditional on it. */
  readonly version: string
}

/** The state that a claim found, and that releasing it restores; null if there was nothing. */
type Earlier = { readonly cell: string; readonly organizationId: OrganizationId | null } | null

/** A claim, as the directory recorded it. Every claim of the same thing gets a higher version. */
export type Claim =
  | { readonly kind: "organization"; readonly id: OrganizationId; readonly version: string; readonly isNew: boolean }
  | {
      readonly kind: "account"
      readonly tenant: Tenant
      readonly accountId: string
      readonly version: string
      readonly isNew: boolean
    }
  | { readonly kind: "person"; readonly emailHash: Buffer; readonly version: string; readonly earlier: Earlier }

/** What was to be claimed is another's already. */
export class TakenElsewhere extends Data.TaggedError("TakenElsewhere")<{
  /** The cell that has it. */
  readonly cell: string
  /** The organization that has it; null if it is a person without one. */
  readonly organizationId: OrganizationId | null
}> {}

/** The organization's record is not as the caller last saw it: it is in another cell, or another move has begun. */
export class PlaceChanged extends Data.TaggedError("PlaceChanged")<{
  readonly organizationId: OrganizationId
  /** None if the directory does not know the organization. */
  readonly place: Option.Option<OrganizationPlace>
}> {}

/** The calls of a cell's service: each claim comes before the cell's own write (see `Claims.ts`). */
export interface Claiming {
  /**
   * Claims a new organization for this cell. A repeat changes nothing but the version. Fails if it is in another cell.
   */
  readonly claimOrganization: (id: OrganizationId) => Effect.Effect<Claim, TakenElsewhere | ServiceUnavailable>
  /**
   * Claims an account in its environment for an organization of this cell, which is registered if it was not yet. A
   * repeat changes nothing but the version. Fails if another organization has the account.
   */
  readonly claimAccount: (
    tenant: Tenant,
    accountId: string
  ) => Effect.Effect<Claim, TakenElsewhere | ServiceUnavailable>
  /**
   * Claims a person for this cell: as a member of an organization of this cell, or without one. A person who has no
   * organization, in whatever cell, may be claimed for one; a person who has one may not. Claimed without an
   * organization, a member of one of this cell stays its member. The case of the address does not matter.
   */
  readonly claimPerson: (
    email: string,
    organizationId: OrganizationId | null
  ) => Effect.Effect<Claim, TakenElsewhere | ServiceUnavailable>
  /**
   * Undoes a claim: its record becomes what it was before. Does nothing if the same has been claimed again since. Only
   * for a claim whose write in the cell did not happen.
   */
  readonly release: (claim: Claim) => Effect.Effect<void, ServiceUnavailable>
  /**
   * Ends what was claimed: the organization or account is removed from the directory, the person no longer has an
   * organization. Does nothing if the same has been claimed again since.
   */
  readonly end: (claim: Claim) => Effect.Effect<void, ServiceUnavailable>
}

/**
 * The directory. Methods ask its database each time: what a router remembers is in `Routes.ts`. All of them fail with
 * 503 while the directory cannot be reached.
 */
export class Directory extends Context.Tag("connected-payments/cells/Directory")<
  Directory,
  {
    /** Every cell, by name. */
    readonly cells: Effect.Effect<ReadonlyArray<Cell>, ServiceUnavailable>
    /** Adds a cell, or changes its URL. The first cell is the home; `home` makes another one so. */
    readonly putCell: (cell: Cell) => Effect.Effect<Cell, ServiceUnavailable>
    /** Claims on behalf of a cell. */
    readonly claimingFor: (cell: string) => Claiming
    /** None if the directory does not know the organization. */
    readonly cellOfOrganization: (
      id: OrganizationId
    ) => Effect.Effect<Option.Option<OrganizationPlace>, ServiceUnavailable>
    /** The cell and organization that have a provider account. */
    readonly cellOfAccount: (
      environment: Tenant["environment"],
      accountId: string
    ) => Effect.Effect<Option.Option<{ readonly cell: string; readonly organizationId: string }>, ServiceUnavailable>
    /** The cell of a person, by the e-mail address in any case. */
    readonly cellOfPerson: (email: string) => Effect.Effect<Option.Option<string>, ServiceUnavailable>
    /**
     * Records that an organization is being moved; repeated for the same cell, it changes nothing. Fails if it is not in
     * `from`, or is being moved to a third cell. The version that it returns is the one for `flip`.
     */
    readonly setMoving: (
      id: OrganizationId,
      from: string,
      to: string
    ) => Effect.Effect<OrganizationPlace, PlaceChanged | ServiceUnavailable>
    /**
     * Ends a move: from now on the organization and its people are in `to`, in one transaction; accounts follow their
     * organization. Fails, and changes nothing, if the record does not have this version.
     */
    readonly flip: (
      id: OrganizationId,
      move: { readonly from: string; readonly to: string; readonly version: string }
    ) => Effect.Effect<OrganizationPlace, PlaceChanged | ServiceUnavailable>
    /** Gives up a move: the organization stays where it is. Does nothing if it is not being moved. */
    readonly clearMoving: (id: OrganizationId) => Effect.Effect<void, ServiceUnavailable>
  }
>() {}
