import type { SqlClient } from "@effect/sql"
import { Effect } from "effect"
import type { OrganizationId } from "../kit/Ids.ts"
import type { Tenant } from "../kit/Tenant.ts"
import { orUnavailable, transaction } from "../storage/Database.ts"
import { type Claim, type Claiming, TakenElsewhere } from "./Directory.ts"
import { hashEmail } from "./EmailHash.ts"

/** Claims in the directory's database: each is one short transaction that holds the row that it decides on. */

interface PersonRow {
  readonly cell: string
  readonly organizationId: OrganizationId | null
}

/** What an insert or update of a claim returns. */
interface Versioned {
  readonly version: string
  readonly isNew: boolean
}

/** The claims of one cell. */
export const makeClaiming =
  (sql: SqlClient.SqlClient) =>
  (cell: string): Claiming => {
    /** Registers an organization, or raises the version of its record if it is this cell's. */
    const registered = Effect.fnUntraced(function* (id: OrganizationId) {
      const [mine] = yield* sql<Versioned>`
        INSERT INTO payments_directory.organizations AS o (id, cell) VALUES (${id}, ${cell})
        ON CONFLICT (id) DO UPDATE SET version = o.version + 1, changed_at = now() WHERE o.cell = excluded.cell
        RETURNING o.version::text AS version, o.version = 1 AS "isNew"`
      if (mine !== undefined) return mine
      const [other] = yield* sql<{ cell: string }>`SELECT cell FROM payments_directory.organizations WHERE id = ${id}`
      return yield* new TakenElsewhere({ cell: other?.cell ?? "", organizationId: id })
    })

    /** Requires that an organization is this cell's; registers it if the directory does not know it yet. */
    const requireOwn = Effect.fnUntraced(function* (id: OrganizationId) {
      yield* sql`
        INSERT INTO payments_directory.organizations (id, cell) VALUES (${id}, ${cell}) ON CONFLICT DO NOTHING`
      // Held until the end, so that a move ends before the claim or sees it
      const [place] = yield* sql<{ cell: string }>`
        SELECT cell FROM payments_directory.organizations WHERE id = ${id} FOR SHARE`
      if (place?.cell !== cell) {
        return yield* new TakenElsewhere({ cell: place?.cell ?? "", organizationId: id })
      }
    })

    const claimOrganization = Effect.fn("Directory.claimOrganization")(function* (id: OrganizationId) {
      const mine = yield* transaction(sql)(registered(id))
      return { kind: "organization", id, ...mine } satisfies Claim
    }, orUnavailable)

    const claimAccount = Effect.fn("Directory.claimAccount")(function* (tenant: Tenant, accountId: string) {
      const { environment, organizationId } = tenant
      const mine = yield* transaction(sql)(
        Effect.gen(function* () {
          yield* requireOwn(organizationId)
          const [mine] = yield* sql<Versioned>`
            INSERT INTO payments_directory.accounts AS a (environment, account_id, organization_id)
            VALUES (${environment}, ${accountId}, ${organizationId})
            ON CONFLICT (environment, account_id) DO UPDATE SET version = a.version + 1, changed_at = now()
              WHERE a.organization_id = excluded.organization_id
            RETURNING a.version::text AS version, a.version = 1 AS "isNew"`
          if (mine !== undefined) return mine
          const [other] = yield* sql<{ cell: string; organizationId: OrganizationId }>`
            SELECT o.cell, o.id AS "organizationId"
            FROM payments_directory.accounts a JOIN payments_directory.organizations o ON o.id = a.organization_id
            WHERE a.environment = ${environment} AND a.account_id = ${accountId}`
          return yield* new TakenElsewhere(other ?? { cell: "", organizationId: null })
        })
      )
      return { kind: "account", tenant, accountId, ...mine } satisfies Claim
    }, orUnavailable)

    const claimPerson = Effect.fn("Directory.claimPerson")(function* (
      email: string,
      organizationId: OrganizationId | null
    ) {
      const emailHash = hashEmail(email)
      return yield* transaction(sql)(
        Effect.gen(function* () {
          if (organizationId !== null) yield* requireOwn(organizationId)
          const [added] = yield* sql<{ version: string }>`
            INSERT INTO payments_directory.people (email_hash, cell, organization_id)
            VALUES (${emailHash}, ${cell}, ${organizationId}) ON CONFLICT DO NOTHING RETURNING version::text AS version`
          if (added !== undefined) {
            return { kind: "person", emailHash, version: added.version, earlier: null } satisfies Claim
          }
          const [earlier = null] = yield* sql<PersonRow>`
            SELECT cell, organization_id AS "organizationId" FROM payments_directory.people
            WHERE email_hash = ${emailHash} FOR UPDATE`
          if (earlier === null || !mayTake(earlier, { cell, organizationId })) {
            return yield* new TakenElsewhere(earlier ?? { cell: "", organizationId: null })
          }
          const [taken] = yield* sql<{ version: string }>`
            UPDATE payments_directory.people
            SET cell = ${cell}, organization_id = COALESCE(${organizationId}::uuid, organization_id),
              version = version + 1, changed_at = now()
            WHERE email_hash = ${emailHash} RETURNING version::text AS version`
          return { kind: "person", emailHash, version: taken?.version ?? "", earlier } satisfies Claim
        })
      )
    }, orUnavailable)

    const remove = (claim: Exclude<Claim, { readonly kind: "person" }>) =>
      claim.kind === "organization"
        ? sql`
            DELETE FROM payments_directory.organizations
            WHERE id = ${claim.id} AND cell = ${cell} AND version = ${claim.version}::bigint
              AND NOT EXISTS (SELECT 1 FROM payments_directory.people WHERE organization_id = ${claim.id})
              AND NOT EXISTS (SELECT 1 FROM payments_directory.accounts WHERE organization_id = ${claim.id})`
        : sql`
            DELETE FROM payments_directory.accounts
            WHERE environment = ${claim.tenant.environment} AND account_id = ${claim.accountId}
              AND organization_id = ${claim.tenant.organizationId} AND version = ${claim.version}::bigint`

    const restore = (claim: Extract<Claim, { readonly kind: "person" }>, to: PersonRow | null) =>
      to === null
        ? sql`
            DELETE FROM payments_directory.people
            WHERE email_hash = ${claim.emailHash} AND version = ${claim.version}::bigint`
        : sql`
            UPDATE payments_directory.people
            SET cell = ${to.cell}, organization_id = ${to.organizationId}, version = version + 1, changed_at = now()
            WHERE email_hash = ${claim.emailHash} AND version = ${claim.version}::bigint`

    const release = Effect.fn("Directory.release")(function* (claim: Claim) {
      if (claim.kind === "person") yield* restore(claim, claim.earlier)
      // What was there before the claim belongs to something that was written
      else if (claim.isNew) yield* remove(claim)
    }, orUnavailable)

    const end = Effect.fn("Directory.end")(function* (claim: Claim) {
      yield* claim.kind === "person" ? restore(claim, { cell, organizationId: null }) : remove(claim)
    }, orUnavailable)

    return { claimOrganization, claimAccount, claimPerson, release, end }
  }

/** Whether a person who is recorded like this may be claimed like that. */
const mayTake = (earlier: PersonRow, claimed: PersonRow): boolean =>
  earlier.organizationId === null
    ? claimed.organizationId !== null || claimed.cell === earlier.cell
    : claimed.cell === earlier.cell &&
      (claimed.organizationId === null || claimed.organizationId === earlier.organizationId)
