import type { SqlError } from "@effect/sql"
import { Effect } from "effect"
import type { NonEmptyReadonlyArray } from "effect/Array"
import { secretContext } from "../../endpoints/Secrets.ts"
import type { Environment } from "../../events/Environment.ts"
import { Cipher } from "../../kit/Cipher.ts"
import { answerContext } from "../../kit/Idempotency.ts"
import type { OrganizationId } from "../../kit/Ids.ts"
import type { MasterKey } from "../../settings/Settings.ts"
import { migrations } from "../../storage/Migrations.ts"
import type { CellDatabase } from "./CellDatabase.ts"
import { MoveRefused } from "./MoveError.ts"
import { checkPartitions } from "./Partitions.ts"
import type { Ends } from "./Replication.ts"

/** What must be so before anything is copied. All of it only reads. */

/** Slots that a move needs at the source: its own, and those of tables that are copied at the same time. */
const slotsNeeded = 3

/** How far the databases' clocks may differ, in seconds. */
const clockDifference = 5

const refuse = (message: string) => new MoveRefused({ message })

const checkSchema = (cell: CellDatabase) =>
  Effect.gen(function* () {
    const [known] = yield* cell.query<{ exists: boolean }>(
      `SELECT to_regclass('payments.migrations') IS NOT NULL AS exists`
    )
    const applied =
      known?.exists === true
        ? yield* cell.query<{ name: string }>(
            `SELECT lpad(migration_id::text, 4, '0') || '_' || name AS name FROM payments.migrations`
          )
        : []
    const names = new Set(applied.map(({ name }) => name))
    const missing = Object.keys(migrations).filter((name) => !names.has(name))
    const unknown = [...names].filter((name) => migrations[name] === undefined)
    if (missing.length > 0 || unknown.length > 0) {
      return yield* refuse(
        `The schema of cell "${cell.name}" is not the one of this version: ${[
          ...missing.map((name) => `${name} is missing`),
          ...unknown.map((name) => `${name} is newer`)
        ].join(", ")}. Both cells and this command must have the same version.`
      )
    }
  })

/** Whether the role may create publications or subscriptions in its database; an SQL expression. */
const mayCreate = "has_database_privilege(current_database(), 'CREATE')"

const refuseWithoutCreate = (cell: CellDatabase, what: string, database: string | undefined) =>
  refuse(
    `The role of cell "${cell.name}" may not create ${what} in its database: GRANT CREATE ON DATABASE ${database} TO it, until the move has ended.`
  )

const checkReplication = ({ source, target }: Ends) =>
  Effect.gen(function* () {
    const [at] = yield* source.query<{
      level: string
      slots: number
      senders: number
      may: boolean
      creates: boolean
      database: string
    }>(
      `SELECT current_setting('wal_level') AS level,
        current_setting('max_replication_slots')::int - (SELECT count(*) FROM pg_replication_slots)::int AS slots,
        current_setting('max_wal_senders')::int - (SELECT count(*) FROM pg_stat_replication)::int AS senders,
        (SELECT rolsuper OR rolreplication FROM pg_roles WHERE rolname = current_user) AS may,
        ${mayCreate} AS creates, quote_ident(current_database()) AS database`
    )
    if (at?.level !== "logical") {
      return yield* refuse(
        `PostgreSQL of cell "${source.name}" has wal_level = ${at?.level}. Set wal_level = logical (on managed servers often a switch for logical replication) and restart it.`
      )
    }
    if (at.slots < slotsNeeded || at.senders < slotsNeeded) {
      return yield* refuse(
        `PostgreSQL of cell "${source.name}" has ${at.slots} free replication slots and ${at.senders} free senders; a move needs ${slotsNeeded} of each. Raise max_replication_slots and max_wal_senders.`
      )
    }
    if (!at.may) {
      return yield* refuse(
        `The role of cell "${source.name}" may not replicate: ALTER ROLE … REPLICATION (on managed servers, grant the role for replication).`
      )
    }
    if (!at.creates) {
      return yield* refuseWithoutCreate(source, "publications", at.database)
    }
    const [other] = yield* target.query<{ workers: number; may: boolean; creates: boolean; database: string }>(
      `SELECT current_setting('max_logical_replication_workers')::int AS workers,
        (SELECT rolsuper FROM pg_roles WHERE rolname = current_user) OR COALESCE((
          SELECT pg_has_role(current_user, oid, 'USAGE') FROM pg_roles WHERE rolname = 'pg_create_subscription'), false) AS may,
        ${mayCreate} AS creates, quote_ident(current_database()) AS database`
    )
    if ((other?.workers ?? 0) < 2) {
      return yield* refuse(
        `PostgreSQL of cell "${target.name}" has max_logical_replication_workers = ${other?.workers}; a move needs 2 at least.`
      )
    }
    if (other?.may !== true) {
      return yield* refuse(
        `The role of cell "${target.name}" may not create subscriptions: GRANT pg_create_subscription TO it.`
      )
    }
    if (!other.creates) {
      return yield* refuseWithoutCreate(target, "subscriptions", other.database)
    }
  })

const checkClocks = ({ source, target }: Ends) =>
  Effect.gen(function* () {
    const now = `SELECT date_part('epoch', clock_timestamp())::float8 AS now`
    const [[here], [there]] = yield* Effect.all(
      [source.query<{ now: number }>(now), target.query<{ now: number }>(now)],
      {
        concurrency: 2
      }
    )
    const difference = Math.abs((here?.now ?? 0) - (there?.now ?? 0))
    if (difference > clockDifference) {
      return yield* refuse(
        `The clocks of both databases differ by ${difference.toFixed(1)} seconds; up to ${clockDifference} are accepted.`
      )
    }
  })

/** Whether the target has something that must be unique. */
const checkUnique = ({ source, target }: Ends, organizationId: string) =>
  Effect.gen(function* () {
    const [known] = yield* target.query(`SELECT 1 FROM payments.organizations WHERE id = $1`, [organizationId])
    if (known !== undefined) return yield* refuse(`Cell "${target.name}" has this organization already.`)
    const accounts = yield* source.query<{ environment: string; account: string }>(
      `SELECT environment, account_id AS account FROM payments.provider_accounts WHERE organization_id = $1`,
      [organizationId]
    )
    for (const { account, environment } of accounts) {
      const [taken] = yield* target.query<{ id: string }>(
        `SELECT organization_id AS id FROM payments.provider_accounts WHERE environment = $1 AND account_id = $2`,
        [environment, account]
      )
      if (taken !== undefined) {
        return yield* refuse(`In cell "${target.name}", ${account} is the account of organization ${taken.id}.`)
      }
    }
    const people = yield* source.query<{ email: string }>(
      `SELECT p.email FROM payments.memberships m JOIN payments.people p ON p.id = m.person_id WHERE m.organization_id = $1`,
      [organizationId]
    )
    const taken = yield* target.query<{ email: string }>(
      `SELECT email FROM payments.people WHERE email = ANY ($1::text[])`,
      [people.map(({ email }) => email)]
    )
    if (taken.length > 0) {
      return yield* refuse(
        `Cell "${target.name}" has people of the organization: ${taken.map(({ email }) => email).join(", ")}. A person is in one cell.`
      )
    }
  })

interface Sample {
  readonly kind: "secret" | "answer"
  readonly organizationId: OrganizationId
  readonly environment: Environment
  readonly id: string
  readonly masterKeyId: string
  readonly ciphertext: Buffer
}

/** One stored ciphertext for each kind and master key, of one organization or of any. */
const samplesOf = (cell: CellDatabase, organizationId: string | null) =>
  cell.query<Sample>(
    `(SELECT DISTINCT ON (master_key_id) 'secret' AS kind, organization_id AS "organizationId", environment, id::text AS id,
        master_key_id AS "masterKeyId", ciphertext FROM payments.endpoint_secrets
      WHERE $1::uuid IS NULL OR organization_id = $1::uuid)
    UNION ALL
    (SELECT DISTINCT ON (master_key_id) 'answer', organization_id, environment, key, master_key_id, answer
      FROM payments.idempotency_keys WHERE answer IS NOT NULL AND ($1::uuid IS NULL OR organization_id = $1::uuid))`,
    [organizationId]
  )

/**
 * Whether the target can decrypt what comes: the keys are those that its processes have. They must decrypt a sample of the
 * organization under each of its keys; and under keys of the same name in the target's own database, a sample of that.
 */
const checkMasterKeys = (
  { source, target }: Ends,
  organizationId: string,
  masterKeys: NonEmptyReadonlyArray<MasterKey>
) =>
  Effect.gen(function* () {
    const cipher = yield* Cipher
    const coming = yield* samplesOf(source, organizationId)
    const needed = new Set(coming.map(({ masterKeyId }) => masterKeyId))
    const there = (yield* samplesOf(target, null)).filter(({ masterKeyId }) => needed.has(masterKeyId))
    const decrypts = (cell: CellDatabase, { ciphertext, kind, masterKeyId, ...row }: Sample) =>
      cipher
        .decrypt(
          { masterKeyId, ciphertext },
          kind === "secret" ? secretContext(row, row.id) : answerContext(row, row.id)
        )
        .pipe(
          Effect.mapError(() =>
            refuse(
              `What cell "${cell.name}" has encrypted under master key "${masterKeyId}" can't be decrypted with MASTER_KEYS, which has to be the setting of cell "${target.name}". Add the key to it (its processes too), or re-encrypt at the source: keys rotate-master.`
            )
          )
        )
    for (const sample of coming) yield* decrypts(source, sample)
    for (const sample of there) yield* decrypts(target, sample)
  }).pipe(Effect.provide(Cipher.layer(masterKeys)))

/** Refuses a move that can't succeed, before it changes anything. */
export const checkMove = (
  ends: Ends,
  organizationId: string,
  masterKeys: NonEmptyReadonlyArray<MasterKey>
): Effect.Effect<void, SqlError.SqlError | MoveRefused> =>
  Effect.gen(function* () {
    yield* checkSchema(ends.source)
    yield* checkSchema(ends.target)
    yield* checkReplication(ends)
    yield* checkClocks(ends)
    yield* checkUnique(ends, organizationId)
    yield* checkPartitions(ends, organizationId)
    yield* checkMasterKeys(ends, organizationId, masterKeys)
  })
