import { SqlClient } from "@effect/sql"
import { Context, Effect, Layer, Option } from "effect"
import {
  type OrganizationAlreadyExists,
  OrganizationNotEmpty,
  PermissionDenied,
  ResourceNotFound,
  type ServiceUnavailable
} from "../../platform/errors/Errors.ts"
import { type AuditAction, makeAuditAll } from "../../platform/kit/Audit.ts"
import { newId, OrganizationId } from "../../platform/kit/Ids.ts"
import type { Author } from "../../platform/kit/Tenant.ts"
import { orUnavailable, transaction } from "../../platform/storage/Database.ts"
import { makeInvitationsRepo } from "../invitations/InvitationsRepo.ts"
import { makeKeysRepo } from "../keys/KeysRepo.ts"
import { makeMembersRepo } from "../members/MembersRepo.ts"
import { makeOrganizationsRepo, type Organization, type Remains } from "./OrganizationsRepo.ts"

export type { Organization } from "./OrganizationsRepo.ts"

export interface NewOrganization {
  /** 1 to 200 characters. */
  readonly name: string
  readonly ownerEmail: string
  /** Who creates it, for the audit log. Default: its owner. */
  readonly author?: Author
}

export interface ChangedOrganization extends Organization {
  readonly author: Author
}

/** The steps left to an owner before an organization can be closed. */
const stepsBeforeClosing = ({ accounts, destinations, members, pages }: Remains): ReadonlyArray<string> => [
  ...accounts.map((environment) => `disconnect the account in ${environment}`),
  ...(destinations ? ["delete its destinations"] : []),
  ...(pages ? ["delete its checkout pages"] : []),
  ...(members ? ["remove its other members"] : [])
]

const makeParts = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const repo = yield* makeOrganizationsRepo
  const memberships = yield* makeMembersRepo
  const auditAll = yield* makeAuditAll

  const record = (id: OrganizationId, author: Author, action: AuditAction) =>
    auditAll({ organizationId: id, author, action }, [{ environment: null, id }])

  const requireOwner = Effect.fnUntraced(function* (id: OrganizationId, author: Author) {
    yield* memberships.lock(id)
    if ((yield* memberships.roleOf(id, author)) !== "owner") {
      return yield* new PermissionDenied({ message: "Only owners may rename or close the organization." })
    }
  })

  return { sql, repo, memberships, auditAll, record, requireOwner }
})

type Parts = Effect.Effect.Success<typeof makeParts>

const changes = ({ memberships, record, repo, requireOwner, sql }: Parts) => {
  const create = Effect.fn("Organizations.create")(
    function* ({ author, name, ownerEmail }: NewOrganization) {
      const id = OrganizationId.make(yield* newId)
      yield* repo.insert({ id, name })
      const personId = yield* memberships.ensurePerson(ownerEmail)
      yield* memberships.insert({ organizationId: id, personId, role: "owner", environments: [] })
      yield* record(id, author ?? { kind: "person", id: personId }, "organization.created")
      return { id, name }
    },
    transaction(sql),
    orUnavailable
  )

  const adopt = Effect.fn("Organizations.adopt")(
    function* (organization: ChangedOrganization) {
      if (yield* repo.insert(organization)) {
        yield* record(organization.id, organization.author, "organization.created")
      }
    },
    transaction(sql),
    orUnavailable
  )

  const rename = Effect.fn("Organizations.rename")(
    function* ({ author, id, name }: ChangedOrganization) {
      yield* requireOwner(id, author)
      if (yield* repo.rename({ id, name })) {
        yield* record(id, author, "organization.updated")
      }
      return { id, name }
    },
    transaction(sql),
    orUnavailable
  )

  return { create, adopt, rename }
}

const makeClose = Effect.fnUntraced(function* ({ auditAll, record, repo, requireOwner, sql }: Parts) {
  const keys = yield* makeKeysRepo
  const invitations = yield* makeInvitationsRepo

  /** It must be empty, since each deletion has its own consequences, which the owner should see one by one. */
  const requireEmpty = Effect.fnUntraced(function* (id: OrganizationId) {
    yield* repo.lockWorkspaces(id)
    const steps = (yield* repo.remains(id)).flatMap(stepsBeforeClosing)
    if (steps.length > 0) {
      return yield* new OrganizationNotEmpty({
        message: `Before the organization can be closed: ${steps.join("; ")}.`
      })
    }
  })

  return Effect.fn("Organizations.close")(
    function* (id: OrganizationId, author: Author) {
      yield* requireOwner(id, author)
      yield* requireEmpty(id)
      const by = { organizationId: id, author }
      const invited = yield* invitations.revokeAll(id)
      yield* auditAll(
        { ...by, action: "invitation.revoked" },
        invited.map(({ id }) => ({ environment: null, id }))
      )
      yield* auditAll({ ...by, action: "api_key.revoked" }, yield* keys.revokeAll(id))
      yield* auditAll({ ...by, action: "account.unlinked" }, yield* repo.deleteAccounts(id))
      yield* repo.deleteMemberships(id)
      yield* record(id, author, "organization.closed")
    },
    transaction(sql),
    orUnavailable
  )
})

const reads = ({ repo }: Parts) => {
  const get = Effect.fn("Organizations.get")(function* (id: OrganizationId) {
    const [found] = yield* repo.find(id)
    return found ?? (yield* new ResourceNotFound())
  }, orUnavailable)

  const exists = Effect.fn("Organizations.exists")(function* (id: OrganizationId) {
    return (yield* repo.find(id)).length > 0
  }, orUnavailable)

  const ofMember = Effect.fn("Organizations.ofMember")(function* (email: string) {
    const [found] = yield* repo.ofMember(email)
    return Option.map(Option.fromNullable(found), ({ id }) => id)
  }, orUnavailable)

  return { get, list: orUnavailable(repo.list), exists, ofMember }
}

const make = Effect.gen(function* () {
  const parts = yield* makeParts
  return { ...changes(parts), close: yield* makeClose(parts), ...reads(parts) }
})

export class Organizations extends Context.Tag("connected-payments/identity/Organizations")<
  Organizations,
  {
    /** With both workspaces and an owner, created if unknown, who is a member of no other one. */
    readonly create: (
      options: NewOrganization
    ) => Effect.Effect<Organization, OrganizationAlreadyExists | ServiceUnavailable>
    /** Under an embedding team's own id, without members. Does nothing if it exists already. */
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
