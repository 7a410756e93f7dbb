import { SqlClient } from "@effect/sql"
import { Context, Effect, Layer, Option } from "effect"
import {
  type OrganizationAlreadyExists,
  type OrganizationNotEmpty,
  PermissionDenied,
  ResourceNotFound,
  type ServiceUnavailable
} from "../../platform/errors/Errors.ts"
import { makeAudit } from "../../platform/kit/Audit.ts"
import { newId, OrganizationId } from "../../platform/kit/Ids.ts"
import type { Author } from "../../platform/kit/Tenant.ts"
import { orUnavailable, transaction } from "../../platform/storage/Database.ts"
import { makeMemberships } from "../members/MembershipsRepo.ts"
import { makeClosing } from "./Closing.ts"

/** An organization: the tenant that owns all data. */
export interface Organization {
  readonly id: OrganizationId
  readonly name: string
}

export interface NewOrganization {
  /** 1 to 200 characters. */
  readonly name: string
  readonly ownerEmail: string
  /** Who creates it, for the audit log. Default: its owner. */
  readonly author?: Author
}

/** An organization under its new name. */
export interface ChangedOrganization extends Organization {
  readonly author: Author
}

const make = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const audit = yield* makeAudit
  const memberships = yield* makeMemberships
  const closing = yield* makeClosing

  /** Requires that the author is an owner. Locks the roles until the end of the transaction. */
  const requireOwner = Effect.fnUntraced(function* (id: OrganizationId, author: Author) {
    yield* memberships.lock(id)
    if ((yield* memberships.roleOf(id, author)) !== "owner") {
      return yield* new PermissionDenied({ message: "Only owners may rename or close the organization." })
    }
  })

  const isThere = (id: OrganizationId) =>
    Effect.map(sql`SELECT 1 FROM payments.organizations WHERE id = ${id}`, (rows) => rows.length > 0)

  const create = Effect.fn("Organizations.create")(function* ({ author, name, ownerEmail }: NewOrganization) {
    const id = OrganizationId.make(yield* newId)
    yield* transaction(sql)(
      Effect.gen(function* () {
        yield* sql`INSERT INTO payments.organizations (id, name) VALUES (${id}, ${name})`
        yield* sql`
          INSERT INTO payments.workspaces (organization_id, environment)
          VALUES (${id}, 'sandbox'), (${id}, 'production')`
        const personId = yield* memberships.ensurePerson(ownerEmail)
        yield* memberships.insert({ organizationId: id, personId, role: "owner", environments: [] })
        yield* audit({
          organizationId: id,
          environment: null,
          author: author ?? { kind: "person", id: personId },
          action: "organization.created",
          targetId: id
        })
      })
    )
    return { id, name }
  }, orUnavailable)

  const adopt = Effect.fn("Organizations.adopt")(function* ({ author, id, name }: ChangedOrganization) {
    yield* transaction(sql)(
      Effect.gen(function* () {
        const made = yield* sql`
          INSERT INTO payments.organizations (id, name) VALUES (${id}, ${name})
          ON CONFLICT (id) DO NOTHING RETURNING 1`
        if (made.length === 0) {
          return
        }
        yield* sql`
          INSERT INTO payments.workspaces (organization_id, environment)
          VALUES (${id}, 'sandbox'), (${id}, 'production')`
        yield* audit({ organizationId: id, environment: null, author, action: "organization.created", targetId: id })
      })
    )
  }, orUnavailable)

  const rename = Effect.fn("Organizations.rename")(function* ({ author, id, name }: ChangedOrganization) {
    yield* transaction(sql)(
      Effect.gen(function* () {
        yield* requireOwner(id, author)
        const renamed = yield* sql`
          UPDATE payments.organizations SET name = ${name} WHERE id = ${id} AND name <> ${name} RETURNING 1`
        if (renamed.length > 0) {
          yield* audit({ organizationId: id, environment: null, author, action: "organization.updated", targetId: id })
        }
      })
    )
    return { id, name }
  }, orUnavailable)

  const close = Effect.fn("Organizations.close")(function* (id: OrganizationId, author: Author) {
    yield* transaction(sql)(
      Effect.gen(function* () {
        yield* requireOwner(id, author)
        yield* closing.requireEmpty(id)
        yield* closing.end(id, author)
        yield* audit({ organizationId: id, environment: null, author, action: "organization.closed", targetId: id })
      })
    )
  }, orUnavailable)

  const get = Effect.fn("Organizations.get")(function* (id: OrganizationId) {
    const [found] = yield* sql<Organization>`SELECT id, name FROM payments.organizations WHERE id = ${id}`
    return found === undefined ? yield* new ResourceNotFound() : found
  }, orUnavailable)

  const list = sql<Organization>`SELECT id, name FROM payments.organizations ORDER BY created_at, id`.pipe(
    orUnavailable
  )

  const exists = Effect.fn("Organizations.exists")(function* (id: OrganizationId) {
    return yield* isThere(id)
  }, orUnavailable)

  const ofMember = Effect.fn("Organizations.ofMember")(function* (email: string) {
    const [found] = yield* sql<{ id: OrganizationId }>`
      SELECT m.organization_id AS id FROM payments.memberships m JOIN payments.people p ON p.id = m.person_id
      WHERE p.email = ${email.toLowerCase()}`
    return Option.map(Option.fromNullable(found), ({ id }) => id)
  }, orUnavailable)

  return { create, adopt, rename, close, get, list, exists, ofMember }
})

/** Organizations, each created with both of its workspaces (contract 14.3). */
export class Organizations extends Context.Tag("connected-payments/identity/Organizations")<
  Organizations,
  {
    /**
     * Creates an organization with its sandbox and production workspaces and its owner, who is created if unknown. A
     * person has one organization: fails if the owner is already a member of one, also under concurrency.
     */
    readonly create: (
      options: NewOrganization
    ) => Effect.Effect<Organization, OrganizationAlreadyExists | ServiceUnavailable>
    /**
     * Creates an organization under an embedding team's own id, with both workspaces and without members. Does nothing
     * if it exists already.
     */
    readonly adopt: (organization: ChangedOrganization) => Effect.Effect<void, ServiceUnavailable>
    /** Renames an organization. Owners only. Audited. */
    readonly rename: (
      organization: ChangedOrganization
    ) => Effect.Effect<Organization, PermissionDenied | ServiceUnavailable>
    /**
     * Closes an organization that has no connected account, no destination, no checkout page and no other member:
     * revokes its keys and invitations, releases its disconnected accounts, and ends the owner's membership. Its
     * records are kept. Owners only. Audited.
     */
    readonly close: (
      id: OrganizationId,
      author: Author
    ) => Effect.Effect<void, OrganizationNotEmpty | PermissionDenied | ServiceUnavailable>
    readonly get: (id: OrganizationId) => Effect.Effect<Organization, ResourceNotFound | ServiceUnavailable>
    /** Every organization, oldest first: for the operator. */
    readonly list: Effect.Effect<ReadonlyArray<Organization>, ServiceUnavailable>
    readonly exists: (id: OrganizationId) => Effect.Effect<boolean, ServiceUnavailable>
    /** The organization of the person with this e-mail address, if they are a member of one. For the operator. */
    readonly ofMember: (email: string) => Effect.Effect<Option.Option<OrganizationId>, ServiceUnavailable>
  }
>() {
  static readonly layer: Layer.Layer<Organizations, never, SqlClient.SqlClient> = Layer.effect(Organizations, make)
}
