import type { SqlClient, SqlError } from "@effect/sql"
import { Effect } from "effect"

/** What a router looks up: `organization:<id>`, `account:<environment>:<id>` or `person:<hash in hexadecimal>`. */
export type RouteKey = `organization:${string}` | `account:${string}` | `person:${string}`

/** Where something is. */
export interface RouteRow {
  /** Null for a person without an organization. */
  readonly organizationId: string | null
  /** The organization's cell, or that of such a person. */
  readonly cell: string
}

export const isOrganizationKey = (key: string): key is `organization:${string}` => key.startsWith("organization:")
export const isAccountKey = (key: string): key is `account:${string}` => key.startsWith("account:")
export const isPersonKey = (key: string): key is `person:${string}` => key.startsWith("person:")

type Keyed = RouteRow & { readonly key: RouteKey }

/** What follows the kind of each key. */
const namesOf = (keys: ReadonlyArray<RouteKey>, isOfKind: (key: string) => boolean): ReadonlyArray<string> =>
  keys.filter(isOfKind).map((key) => key.slice(key.indexOf(":") + 1))

/** Looks keys up, with a statement for each kind among them; the answers are in the order of the keys. */
export const lookUp = (
  sql: SqlClient.SqlClient,
  keys: ReadonlyArray<RouteKey>
): Effect.Effect<ReadonlyArray<RouteRow | null>, SqlError.SqlError> => {
  const organizations = namesOf(keys, isOrganizationKey)
  const accounts = namesOf(keys, isAccountKey)
  const people = namesOf(keys, isPersonKey)
  const none: ReadonlyArray<Keyed> = []
  return Effect.all(
    [
      organizations.length === 0
        ? Effect.succeed(none)
        : sql<Keyed>`
            SELECT 'organization:' || id AS key, id AS "organizationId", cell
            FROM payments_directory.organizations WHERE id = ANY (${organizations}::uuid[])`,
      accounts.length === 0
        ? Effect.succeed(none)
        : sql<Keyed>`
            SELECT 'account:' || a.environment || ':' || a.account_id AS key, o.id AS "organizationId", o.cell
            FROM payments_directory.accounts a JOIN payments_directory.organizations o ON o.id = a.organization_id
            WHERE (a.environment, a.account_id) IN (
              SELECT split_part(name, ':', 1), substr(name, strpos(name, ':') + 1)
              FROM unnest(${accounts}::text[]) AS name)`,
      people.length === 0
        ? Effect.succeed(none)
        : sql<Keyed>`
            SELECT 'person:' || encode(p.email_hash, 'hex') AS key, p.organization_id AS "organizationId",
              COALESCE(o.cell, p.cell) AS cell
            FROM payments_directory.people p
            LEFT JOIN payments_directory.organizations o ON o.id = p.organization_id
            WHERE p.email_hash IN (SELECT decode(name, 'hex') FROM unnest(${people}::text[]) AS name)`
    ],
    { concurrency: 3 }
  ).pipe(
    Effect.map((found) => {
      const rows = new Map(found.flat().map(({ cell, key, organizationId }) => [key, { cell, organizationId }]))
      return keys.map((key) => rows.get(key) ?? null)
    })
  )
}
