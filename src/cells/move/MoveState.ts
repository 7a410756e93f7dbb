import type { SqlError } from "@effect/sql"
import { Effect, Option, Schedule } from "effect"
import type { OrganizationId } from "../../kit/Ids.ts"
import { isWithoutLock } from "../../storage/Database.ts"
import type { CellDatabase } from "./CellDatabase.ts"
import { MoveRefused } from "./MoveError.ts"

/**
 * How far a move is, in the databases of both cells: `copying` ahead; `parking` new deliveries while those under way end;
 * `fenced`, when no writes are accepted; `moved`, when the source has nothing to say any longer, or the target has all. At
 * the target, no writes are accepted until the move ends there.
 */
export type Phase = "copying" | "parking" | "fenced" | "moved"

/** A move under way, as its row says. */
export interface Move {
  readonly organizationId: OrganizationId
  readonly id: string
  readonly from: string
  readonly to: string
  readonly author: string
}

/** A move with how far this cell's side is. */
export interface MoveHere extends Move {
  readonly role: "leaving" | "arriving"
  readonly phase: Phase
}

/** One mover at a time: the lock ends with its connection. */
export const lockMove = (source: CellDatabase, organizationId: string) =>
  Effect.filterOrFail(
    source.query<{ taken: boolean }>(`SELECT pg_try_advisory_lock(hashtextextended($1, 5190277306)) AS taken`, [
      organizationId
    ]),
    ([row]) => row?.taken === true,
    () => new MoveRefused({ message: "Another process is moving this organization." })
  )

/** The move of an organization in a cell's database; none if there is none under way. */
export const findMove = (
  cell: CellDatabase,
  organizationId: string
): Effect.Effect<Option.Option<MoveHere>, SqlError.SqlError> =>
  Effect.map(
    cell.query<MoveHere>(
      `SELECT organization_id AS "organizationId", id, role, phase, from_cell AS from, to_cell AS to, author
      FROM payments.moves WHERE organization_id = $1`,
      [organizationId]
    ),
    ([row]) => Option.fromNullable(row)
  )

/** Records a move at one end, unless it is recorded already. */
export const recordMove = (cell: CellDatabase, move: Move, role: MoveHere["role"]) =>
  cell.query(
    `INSERT INTO payments.moves (organization_id, id, role, from_cell, to_cell, phase, author)
    VALUES ($1, $2, $3, $4, $5, 'copying', $6) ON CONFLICT (organization_id) DO NOTHING`,
    [move.organizationId, move.id, role, move.from, move.to, move.author]
  )

/** How long a change waits for the organization's writes under way, which others wait behind; then it is tried again. */
const writesEndWithin = "500ms"

/** Runs a statement once the organization's writes under way have ended: none is in between. */
export const betweenWrites = <Row extends object>(
  cell: CellDatabase,
  organizationId: string,
  statement: string,
  values: ReadonlyArray<unknown>
): Effect.Effect<ReadonlyArray<Row>, SqlError.SqlError> =>
  cell
    .transaction(
      Effect.gen(function* () {
        yield* cell.query(`SET LOCAL lock_timeout = '${writesEndWithin}'`)
        // The writers' lock: see payments.moving_phase()
        yield* cell.query(`SELECT pg_advisory_xact_lock(hashtextextended($1, 5190277307))`, [organizationId])
        return yield* cell.query<Row>(statement, values)
      })
    )
    .pipe(
      Effect.retry({ while: isWithoutLock, schedule: Schedule.spaced("100 millis").pipe(Schedule.upTo("5 minutes")) })
    )

/** Records how far a side is. */
export const setPhase = (cell: CellDatabase, { organizationId }: Pick<Move, "organizationId">, phase: Phase) =>
  betweenWrites(
    cell,
    organizationId,
    `UPDATE payments.moves SET phase = $2, changed_at = now() WHERE organization_id = $1`,
    [organizationId, phase]
  )

/** Ends a move at one end. */
export const forgetMove = (cell: CellDatabase, { organizationId }: Pick<Move, "organizationId">) =>
  betweenWrites(
    cell,
    organizationId,
    `WITH changes AS (DELETE FROM payments.move_changed_hours WHERE organization_id = $1)
    DELETE FROM payments.moves WHERE organization_id = $1`,
    [organizationId]
  )
