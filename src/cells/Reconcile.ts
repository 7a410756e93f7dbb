import type { SqlClient, SqlError } from "@effect/sql"
import { Effect } from "effect"
import type { ServiceUnavailable } from "../errors/Errors.ts"
import type { Environment } from "../events/Environment.ts"
import type { OrganizationId } from "../kit/Ids.ts"
import type { Claim, Claiming, TakenElsewhere } from "./Directory.ts"

/**
 * Compares what a cell has with what the directory says that it has, and repairs it if asked to: what is not claimed is
 * claimed, and what was claimed and never written, or is gone, is released. A new cell's organizations are registered so,
 * too. What another cell has is reported, never taken.
 */

/** What differs. */
export interface Difference {
  readonly kind: "organization" | "account" | "person"
  /** The organization's or account's id, with the environment; of a person only a hash is known everywhere. */
  readonly name: string
  /**
   * `unclaimed`: this cell has it, the directory does not know. `unused`: the directory says that this cell has it, and
   * it has not. `taken`: this cell and another organization or cell have it.
   */
  readonly problem: "unclaimed" | "unused" | "taken"
}

/** The result of a comparison. */
export interface Reconciliation {
  /** How many of the cell's and the directory's records were compared. */
  readonly compared: number
  /** How many differ, by problem. */
  readonly counts: Readonly<Record<Difference["problem"], number>>
  /** The first of them. */
  readonly differences: ReadonlyArray<Difference>
}

/** How many records are compared at a time. */
const batchSize = 500

/** How many differences are named. */
const maxNamed = 100

/** Claims younger than this may belong to a write that is under way. */
const underWay = "10 minutes"

interface Options {
  readonly cell: string
  readonly cellSql: SqlClient.SqlClient
  readonly directorySql: SqlClient.SqlClient
  readonly claiming: Claiming
  readonly repair: boolean
}

interface Account {
  readonly environment: Environment
  readonly accountId: string
  readonly organizationId: OrganizationId
}

interface Person {
  readonly hash: string
  readonly email: string
  readonly organizationId: OrganizationId | null
}

type Failure = SqlError.SqlError | ServiceUnavailable

/** Reads pages in the order of their keys, and handles each. */
const inPages = <Row, E>(
  read: (after: Row | undefined) => Effect.Effect<ReadonlyArray<Row>, E>,
  handle: (rows: ReadonlyArray<Row>) => Effect.Effect<void, E>
): Effect.Effect<void, E> =>
  Effect.gen(function* () {
    let last: Row | undefined
    while (true) {
      const rows = yield* read(last)
      yield* handle(rows)
      last = rows.at(-1)
      if (rows.length < batchSize) return
    }
  })

/** The nil UUID, which is before every organization's. */
const beforeAll = "00000000-0000-0000-0000-000000000000"

/** Compares, and repairs if asked to. */
export const reconcile = (options: Options): Effect.Effect<Reconciliation, Failure> =>
  Effect.gen(function* () {
    const { cell, cellSql, claiming, directorySql, repair } = options
    const differences: Array<Difference> = []
    const counts = { unclaimed: 0, unused: 0, taken: 0 }
    let compared = 0

    const note = (difference: Difference): void => {
      counts[difference.problem] += 1
      if (differences.length < maxNamed) differences.push(difference)
    }

    /** Claims what the cell has; if another has it meanwhile, it is taken. */
    const unclaimed = (
      named: Omit<Difference, "problem">,
      claim: Effect.Effect<Claim, TakenElsewhere | ServiceUnavailable>
    ) =>
      (repair ? Effect.as(claim, "unclaimed" as const) : Effect.succeed("unclaimed" as const)).pipe(
        Effect.catchTag("TakenElsewhere", () => Effect.succeed("taken" as const)),
        Effect.map((problem) => note({ ...named, problem }))
      )

    const unused = (named: Omit<Difference, "problem">, end: Effect.Effect<void, ServiceUnavailable>) =>
      Effect.zipRight(
        Effect.sync(() => note({ ...named, problem: "unused" })),
        repair ? end : Effect.void
      )

    yield* inPages<{ id: OrganizationId }, Failure>(
      (after) => cellSql<{ id: OrganizationId }>`
        SELECT id FROM payments.organizations WHERE id > ${after?.id ?? beforeAll} ORDER BY id LIMIT ${batchSize}`,
      (rows) =>
        Effect.gen(function* () {
          compared += rows.length
          const ids = rows.map(({ id }) => id)
          const known = yield* directorySql<{ id: string; cell: string }>`
            SELECT id, cell FROM payments_directory.organizations WHERE id = ANY (${ids}::uuid[])`
          const cells = new Map(known.map((row) => [row.id, row.cell]))
          for (const id of ids) {
            const named = { kind: "organization", name: id } as const
            const found = cells.get(id)
            if (found === undefined) yield* unclaimed(named, claiming.claimOrganization(id))
            else if (found !== cell) note({ ...named, problem: "taken" })
          }
        })
    )

    yield* inPages<Account, Failure>(
      (after) => cellSql<Account>`
        SELECT environment, account_id AS "accountId", organization_id AS "organizationId"
        FROM payments.provider_accounts
        WHERE (organization_id, environment) > (${after?.organizationId ?? beforeAll}, ${after?.environment ?? ""})
        ORDER BY organization_id, environment LIMIT ${batchSize}`,
      (rows) =>
        Effect.gen(function* () {
          compared += rows.length
          const known = yield* directorySql<Account>`
            SELECT a.environment, a.account_id AS "accountId", a.organization_id AS "organizationId"
            FROM payments_directory.accounts a
            JOIN unnest(${rows.map(({ environment }) => environment)}::text[],
              ${rows.map(({ accountId }) => accountId)}::text[]) AS asked (environment, account_id)
              USING (environment, account_id)`
          const owners = new Map(known.map((row) => [`${row.environment} ${row.accountId}`, row.organizationId]))
          for (const { accountId, environment, organizationId } of rows) {
            const name = `${environment} ${accountId}`
            const owner = owners.get(name)
            if (owner === undefined) {
              yield* unclaimed(
                { kind: "account", name },
                claiming.claimAccount({ organizationId, environment }, accountId)
              )
            } else if (owner !== organizationId) {
              note({ kind: "account", name, problem: "taken" })
            }
          }
        })
    )

    yield* inPages<Person, Failure>(
      (after) => cellSql<Person>`
        SELECT encode(sha256(convert_to(p.email, 'UTF8')), 'hex') AS hash, p.email, m.organization_id AS "organizationId"
        FROM payments.people p LEFT JOIN payments.memberships m ON m.person_id = p.id
        WHERE p.email > ${after?.email ?? ""} ORDER BY p.email LIMIT ${batchSize}`,
      (rows) =>
        Effect.gen(function* () {
          compared += rows.length
          const known = yield* directorySql<{
            hash: string
            cell: string
            organizationId: OrganizationId | null
            version: string
            isOld: boolean
          }>`
            SELECT encode(email_hash, 'hex') AS hash, cell, organization_id AS "organizationId",
              version::text AS version, changed_at < now() - ${underWay}::interval AS "isOld"
            FROM payments_directory.people
            WHERE email_hash IN (SELECT decode(hash, 'hex') FROM unnest(${rows.map(({ hash }) => hash)}::text[]) AS hash)`
          const found = new Map(known.map((row) => [row.hash, row]))
          for (const { email, hash, organizationId } of rows) {
            const named = { kind: "person", name: hash } as const
            const row = found.get(hash)
            if (row === undefined || (organizationId !== null && row.organizationId === null)) {
              yield* unclaimed(named, claiming.claimPerson(email, organizationId))
            } else if (organizationId === null) {
              // Without an organization here, they may be another cell's by now
              if (row.cell === cell && row.organizationId !== null && row.isOld) {
                const emailHash = Buffer.from(hash, "hex")
                yield* unused(named, claiming.end({ kind: "person", emailHash, version: row.version, earlier: null }))
              }
            } else if (row.organizationId !== organizationId || row.cell !== cell) {
              note({ ...named, problem: "taken" })
            }
          }
        })
    )

    yield* inPages<Account & { version: string }, Failure>(
      (after) => directorySql<Account & { version: string }>`
        SELECT a.environment, a.account_id AS "accountId", a.organization_id AS "organizationId", a.version::text AS version
        FROM payments_directory.accounts a JOIN payments_directory.organizations o ON o.id = a.organization_id
        WHERE o.cell = ${cell} AND o.moving_to IS NULL AND a.changed_at < now() - ${underWay}::interval
          AND (a.environment, a.account_id) > (${after?.environment ?? ""}, ${after?.accountId ?? ""})
        ORDER BY a.environment, a.account_id LIMIT ${batchSize}`,
      (rows) =>
        Effect.gen(function* () {
          const there = yield* cellSql<Account>`
            SELECT environment, account_id AS "accountId", organization_id AS "organizationId"
            FROM payments.provider_accounts
            WHERE account_id = ANY (${rows.map(({ accountId }) => accountId)}::text[])`
          const held = new Set(there.map((row) => `${row.environment} ${row.accountId} ${row.organizationId}`))
          for (const { accountId, environment, organizationId, version } of rows) {
            const name = `${environment} ${accountId}`
            if (held.has(`${name} ${organizationId}`)) continue
            const tenant = { organizationId, environment }
            yield* unused(
              { kind: "account", name },
              claiming.end({ kind: "account", tenant, accountId, version, isNew: true })
            )
          }
        })
    )

    yield* inPages<{ hash: string; version: string }, Failure>(
      (after) => directorySql<{ hash: string; version: string }>`
        SELECT encode(email_hash, 'hex') AS hash, version::text AS version FROM payments_directory.people
        WHERE cell = ${cell} AND changed_at < now() - ${underWay}::interval
          AND email_hash > decode(${after?.hash ?? ""}, 'hex') ORDER BY email_hash LIMIT ${batchSize}`,
      (rows) =>
        Effect.gen(function* () {
          const there = yield* cellSql<{ hash: string }>`
            SELECT encode(sha256(convert_to(email, 'UTF8')), 'hex') AS hash FROM payments.people
            WHERE encode(sha256(convert_to(email, 'UTF8')), 'hex') = ANY (${rows.map(({ hash }) => hash)}::text[])`
          const held = new Set(there.map(({ hash }) => hash))
          for (const { hash, version } of rows) {
            if (held.has(hash)) continue
            const emailHash = Buffer.from(hash, "hex")
            yield* unused(
              { kind: "person", name: hash },
              claiming.release({ kind: "person", emailHash, version, earlier: null })
            )
          }
        })
    )

    yield* inPages<{ id: OrganizationId; version: string }, Failure>(
      (after) => directorySql<{ id: OrganizationId; version: string }>`
        SELECT id, version::text AS version FROM payments_directory.organizations
        WHERE cell = ${cell} AND moving_to IS NULL AND changed_at < now() - ${underWay}::interval
          AND id > ${after?.id ?? beforeAll} ORDER BY id LIMIT ${batchSize}`,
      (rows) =>
        Effect.gen(function* () {
          const there = yield* cellSql<{ id: string }>`
            SELECT id FROM payments.organizations WHERE id = ANY (${rows.map(({ id }) => id)}::uuid[])`
          const held = new Set(there.map(({ id }) => id))
          for (const { id, version } of rows) {
            if (held.has(id)) continue
            yield* unused(
              { kind: "organization", name: id },
              claiming.end({ kind: "organization", id, version, isNew: true })
            )
          }
        })
    )

    return { compared, counts, differences }
  })
