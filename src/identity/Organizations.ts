import { SqlClient } from "@effect/sql"
import { Context, Effect, Layer } from "effect"
import type { ServiceUnavailable } from "../Errors.ts"
import { newId, OrganizationId } from "../kit/Ids.ts"
import { orUnavailable, transaction } from "../storage/Database.ts"

/** An organization: the tenant of everything. */
export interface Organization {
  readonly id: OrganizationId
  readonly name: string
}

/** Organizations, each made with both of its workspaces (contract, Versioning, rule 3). */
export class Organizations extends Context.Tag("connected-payments/identity/Organizations")<
  Organizations,
  {
    /** Makes an organization with its sandbox and production workspaces and its owner, who is made where unknown. */
    readonly create: (options: {
      /** 1 to 200 characters. */
      readonly name: string
      readonly ownerEmail: string
    }) => Effect.Effect<Organization, ServiceUnavailable>
    readonly exists: (id: OrganizationId) => Effect.Effect<boolean, ServiceUnavailable>
  }
>() {
  static readonly layer: Layer.Layer<Organizations, never, SqlClient.SqlClient> = Layer.effect(
    Organizations,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient

      const create = Effect.fn("Organizations.create")(function* (options: { name: string; ownerEmail: string }) {
        const id = OrganizationId.make(yield* newId)
        const personId = yield* newId
        yield* transaction(sql)(
          Effect.gen(function* () {
            yield* sql`INSERT INTO payments.organizations (id, name) VALUES (${id}, ${options.name})`
            yield* sql`
              INSERT INTO payments.workspaces (organization_id, environment)
              VALUES (${id}, 'sandbox'), (${id}, 'production')`
            yield* sql`
              INSERT INTO payments.people (id, email) VALUES (${personId}, ${options.ownerEmail.toLowerCase()})
              ON CONFLICT (email) DO NOTHING`
            yield* sql`
              INSERT INTO payments.memberships (organization_id, person_id, role)
              SELECT ${id}, id, 'owner' FROM payments.people WHERE email = ${options.ownerEmail.toLowerCase()}`
          })
        )
        return { id, name: options.name }
      }, orUnavailable)

      const exists = Effect.fn("Organizations.exists")(function* (id: OrganizationId) {
        const rows = yield* sql`SELECT 1 FROM payments.organizations WHERE id = ${id}`
        return rows.length > 0
      }, orUnavailable)

      return { create, exists }
    })
  )
}
