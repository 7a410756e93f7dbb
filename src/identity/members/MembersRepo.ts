import { SqlClient, type SqlError } from "@effect/sql"
import { Effect } from "effect"
import { OrganizationAlreadyExists, PermissionDenied } from "../../platform/errors/Errors.ts"
import type { Environment } from "../../platform/kit/Environment.ts"
import { newId, type OrganizationId } from "../../platform/kit/Ids.ts"
import type { Author } from "../../platform/kit/Tenant.ts"
import { violates } from "../../platform/storage/Database.ts"
import type { Role } from "../Principal.ts"
import type { Member as MemberShown } from "./Api.ts"

export type Member = typeof MemberShown.Type

/** Whether a role has access to every workspace, so that none can be granted to it. */
export const entersEverything = (role: Role): boolean => role === "owner" || role === "admin"

/** Whether a role may assign, change and remove another: an owner all of them, an admin developers and viewers. */
export const manages = (actor: Role, other: Role): boolean =>
  actor === "owner" || (actor === "admin" && !entersEverything(other))

export const enteredEnvironments = `
  CASE WHEN m.role IN ('owner', 'admin') THEN ARRAY['sandbox', 'production'] ELSE ARRAY(
    SELECT a.environment FROM payments.workspace_access a
    WHERE a.organization_id = m.organization_id AND a.person_id = m.person_id ORDER BY a.environment DESC
  ) END`

const reads = (sql: SqlClient.SqlClient) => {
  const members = sql.literal(`
    SELECT m.person_id AS "personId", p.email, m.role, m.created_at AS "joinedAt",
      ${enteredEnvironments} AS environments
    FROM payments.memberships m JOIN payments.people p ON p.id = m.person_id`)

  const find = (organizationId: OrganizationId, personId: string) =>
    Effect.map(
      sql<Member>`${members} WHERE m.organization_id = ${organizationId} AND m.person_id = ${personId}`,
      ([member]) => member
    )

  return {
    find,

    list: (organizationId: OrganizationId) =>
      sql<Member>`${members} WHERE m.organization_id = ${organizationId} ORDER BY m.created_at, m.person_id`,

    /** Read in the action's transaction, since it may have been lost. The operator acts like an owner. */
    roleOf: Effect.fnUntraced(function* (organizationId: OrganizationId, author: Author) {
      if (author.kind === "operator") {
        return "owner" as const
      }
      const member = author.kind === "person" ? yield* find(organizationId, author.id) : undefined
      return member === undefined ? yield* new PermissionDenied() : member.role
    }),

    owners: (organizationId: OrganizationId) =>
      sql`SELECT 1 FROM payments.memberships WHERE organization_id = ${organizationId} AND role = 'owner' LIMIT 1`
  }
}

const changes = (sql: SqlClient.SqlClient) => {
  const ofPerson = (organizationId: OrganizationId, personId: string) =>
    sql`organization_id = ${organizationId} AND person_id = ${personId}`

  const grant = (organizationId: OrganizationId, personId: string, environments: ReadonlyArray<Environment>) =>
    Effect.zipRight(
      sql`DELETE FROM payments.workspace_access WHERE ${ofPerson(organizationId, personId)}`,
      sql`INSERT INTO payments.workspace_access (organization_id, environment, person_id)
        SELECT ${organizationId}, environment, ${personId} FROM unnest(${environments}::text[]) AS environment`
    )

  return {
    grant,

    /** Serializes changes of an organization's members, since the rules apply to all of them together. */
    lock: (organizationId: OrganizationId) => sql<{ readonly name: string }>`
      SELECT name FROM payments.organizations WHERE id = ${organizationId} FOR NO KEY UPDATE`,

    ensurePerson: Effect.fnUntraced(function* (email: string) {
      const id = yield* newId
      // An update that changes nothing, so that the row is returned even if another request has just created it
      const [person] = yield* sql<{ readonly id: string }>`
        INSERT INTO payments.people (id, email) VALUES (${id}, ${email.toLowerCase()})
        ON CONFLICT (email) DO UPDATE SET email = EXCLUDED.email RETURNING id`
      return person?.id ?? id
    }),

    /** Inserts a membership of a person, who must have none elsewhere: a person has one organization. */
    insert: ({
      environments,
      organizationId,
      personId,
      role
    }: Pick<Member, "personId" | "role" | "environments"> & { readonly organizationId: OrganizationId }): Effect.Effect<
      void,
      OrganizationAlreadyExists | SqlError.SqlError
    > =>
      sql`INSERT INTO payments.memberships (organization_id, person_id, role)
        VALUES (${organizationId}, ${personId}, ${role})`.pipe(
        Effect.mapError((error) =>
          violates(error, "memberships_one_per_person") || violates(error, "memberships_pkey")
            ? new OrganizationAlreadyExists({ cause: error })
            : error
        ),
        Effect.zipRight(grant(organizationId, personId, environments)),
        Effect.asVoid
      ),

    setRole: (organizationId: OrganizationId, personId: string, role: Role) =>
      sql`UPDATE payments.memberships SET role = ${role} WHERE ${ofPerson(organizationId, personId)}`,

    remove: (organizationId: OrganizationId, personId: string) =>
      sql`DELETE FROM payments.memberships WHERE ${ofPerson(organizationId, personId)}`
  }
}

export const makeMembersRepo = Effect.map(SqlClient.SqlClient, (sql) => ({ ...reads(sql), ...changes(sql) }))
