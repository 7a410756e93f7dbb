import { SqlClient } from "@effect/sql"
import { Effect, Layer, Option } from "effect"
import type { OrganizationId } from "../kit/Ids.ts"
import { orUnavailable, transaction } from "../storage/Database.ts"
import { type Cell, Directory, type OrganizationPlace, PlaceChanged } from "./Directory.ts"
import { makeClaiming } from "./DirectoryClaims.ts"
import { hashEmail } from "./EmailHash.ts"

const make = Effect.map(SqlClient.SqlClient, (sql): Directory["Type"] => {
  const place = sql.literal(`cell, moving_to AS "movingTo", version::text AS version`)

  const cells = orUnavailable(sql<Cell>`SELECT name, url, home FROM payments_directory.cells ORDER BY name`)

  const putCell = Effect.fn("Directory.putCell")(function* ({ home, name, url }: Cell) {
    return yield* transaction(sql)(
      Effect.gen(function* () {
        // Two that change the home at the same time wait for each other
        yield* sql`LOCK TABLE payments_directory.cells IN SHARE ROW EXCLUSIVE MODE`
        const [other] = yield* sql`SELECT 1 FROM payments_directory.cells WHERE home AND name <> ${name}`
        const isHome = home || other === undefined
        if (isHome) yield* sql`UPDATE payments_directory.cells SET home = false WHERE home AND name <> ${name}`
        yield* sql`
          INSERT INTO payments_directory.cells AS c (name, url, home) VALUES (${name}, ${url}, ${isHome})
          ON CONFLICT (name) DO UPDATE SET url = excluded.url, home = excluded.home, changed_at = now()`
        return { name, url, home: isHome }
      })
    )
  }, orUnavailable)

  const cellOfOrganization = Effect.fn("Directory.cellOfOrganization")(function* (id: OrganizationId) {
    const [found] = yield* sql<OrganizationPlace>`
      SELECT ${place} FROM payments_directory.organizations WHERE id = ${id}`
    return Option.fromNullable(found)
  }, orUnavailable)

  const cellOfAccount: Directory["Type"]["cellOfAccount"] = Effect.fn("Directory.cellOfAccount")(function* (
    environment,
    accountId
  ) {
    const [found] = yield* sql<{ cell: string; organizationId: string }>`
      SELECT o.cell, a.organization_id AS "organizationId"
      FROM payments_directory.accounts a JOIN payments_directory.organizations o ON o.id = a.organization_id
      WHERE a.environment = ${environment} AND a.account_id = ${accountId}`
    return Option.fromNullable(found)
  }, orUnavailable)

  const cellOfPerson = Effect.fn("Directory.cellOfPerson")(function* (email: string) {
    const [found] = yield* sql<{ cell: string }>`
      SELECT COALESCE(o.cell, p.cell) AS cell
      FROM payments_directory.people p LEFT JOIN payments_directory.organizations o ON o.id = p.organization_id
      WHERE p.email_hash = ${hashEmail(email)}`
    return Option.map(Option.fromNullable(found), ({ cell }) => cell)
  }, orUnavailable)

  const changed = (organizationId: OrganizationId) =>
    Effect.flatMap(cellOfOrganization(organizationId), (place) => new PlaceChanged({ organizationId, place }))

  const setMoving: Directory["Type"]["setMoving"] = Effect.fn("Directory.setMoving")(function* (id, from, to) {
    const [set] = yield* sql<OrganizationPlace>`
      UPDATE payments_directory.organizations SET moving_to = ${to}, changed_at = now(),
        version = version + CASE WHEN moving_to IS NULL THEN 1 ELSE 0 END
      WHERE id = ${id} AND cell = ${from} AND (moving_to IS NULL OR moving_to = ${to}) RETURNING ${place}`
    return set ?? (yield* changed(id))
  }, orUnavailable)

  const flip: Directory["Type"]["flip"] = Effect.fn("Directory.flip")(function* (id, { from, to, version }) {
    const flipped = yield* transaction(sql)(
      Effect.gen(function* () {
        const [place_] = yield* sql<OrganizationPlace>`
          UPDATE payments_directory.organizations
          SET cell = ${to}, moving_to = NULL, version = version + 1, changed_at = now()
          WHERE id = ${id} AND cell = ${from} AND moving_to = ${to} AND version = ${version}::bigint
          RETURNING ${place}`
        if (place_ === undefined) return undefined
        yield* sql`
          UPDATE payments_directory.people SET cell = ${to}, version = version + 1, changed_at = now()
          WHERE organization_id = ${id}`
        return place_
      })
    )
    return flipped ?? (yield* changed(id))
  }, orUnavailable)

  const clearMoving = Effect.fn("Directory.clearMoving")(function* (id: OrganizationId) {
    yield* sql`
      UPDATE payments_directory.organizations SET moving_to = NULL, version = version + 1, changed_at = now()
      WHERE id = ${id} AND moving_to IS NOT NULL`
  }, orUnavailable)

  return {
    cells,
    putCell,
    claimingFor: makeClaiming(sql),
    cellOfOrganization,
    cellOfAccount,
    cellOfPerson,
    setMoving,
    flip,
    clearMoving
  }
})

/** The directory on its database, whose schema is up to date (`migrateDirectory`). */
export const directoryLayer: Layer.Layer<Directory, never, SqlClient.SqlClient> = Layer.effect(Directory, make)
