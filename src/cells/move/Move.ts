import type { SqlClient, SqlError } from "@effect/sql"
import { Clock, type Context, Effect, Option } from "effect"
import type { NonEmptyReadonlyArray } from "effect/Array"
import type { ServiceUnavailable } from "../../errors/Errors.ts"
import { newId, type OrganizationId } from "../../kit/Ids.ts"
import type { MasterKey } from "../../settings/Settings.ts"
import type { Directory, PlaceChanged } from "../Directory.ts"
import { renewFence } from "./Fence.ts"
import { cleanSource, cleanTarget, leaveTombstone, startTarget } from "./Handing.ts"
import { checkMove } from "./MoveChecks.ts"
import { MoveRefused } from "./MoveError.ts"
import { findMove, forgetMove, lockMove, type Move, type MoveHere, recordMove } from "./MoveState.ts"
import { compareCopied, copyAhead, fenceAndCopy, retreat, undoTarget } from "./MoveSteps.ts"
import { isOf, movedTables } from "./MoveTables.ts"
import { keepDays } from "./Partitions.ts"
import { type Ends, endReplication } from "./Replication.ts"

/**
 * Moves an organization to another cell. Each step can be repeated, and how far the move is, is in both databases: after a
 * kill at any point, the same call goes on.
 *
 * 1. Copy ahead: the history is replicated while the organization works.
 * 2. Compare ahead: so is what does not change any longer.
 * 3. Park: new deliveries wait, and attempts under way end.
 * 4. Fence: writes are refused with 503. The target catches up, and the rest is compared.
 * 5. Copy last: the organization itself and what is small, in one transaction.
 * 6. Flip: the directory says the target. From here on, the move can only go on.
 * 7. The replication ends, the target begins to work, and the source is cleaned.
 */
export interface MoveParts extends Ends {
  readonly directory: Pick<Context.Tag.Service<Directory>, "cellOfOrganization" | "setMoving" | "flip" | "clearMoving">
  /** Those that the target's processes have. */
  readonly masterKeys: NonEmptyReadonlyArray<MasterKey>
  readonly author: string
  /** Told what is done, in sentences for the operator. */
  readonly onProgress: (text: string) => Effect.Effect<void>
}

/** What was moved. */
export interface Moved {
  readonly organizationId: OrganizationId
  readonly from: string
  readonly to: string
  /** Rows that were replicated; null if a call before this one did that. */
  readonly rows: number | null
  /** How long writes were refused, in milliseconds; null if a call before this one began that. */
  readonly fencedMillis: number | null
}

export type MoveFailure = SqlError.SqlError | ServiceUnavailable | MoveRefused

/** The record of the directory is not what the move has left there. */
const changed = ({ organizationId, place }: PlaceChanged) =>
  new MoveRefused({
    message: `The directory says something else by now: organization ${organizationId} is ${Option.match(place, {
      onNone: () => "unknown",
      onSome: ({ cell, movingTo }) => `in cell "${cell}"${movingTo === null ? "" : `, on its way to "${movingTo}"`}`
    })}.`
  })

/** Whether the directory says that the organization is at the target already. */
const isFlipped = ({ directory, target }: Pick<MoveParts, "directory" | "target">, organizationId: OrganizationId) =>
  Effect.map(
    directory.cellOfOrganization(organizationId),
    Option.exists(({ cell }) => cell === target.name)
  )

/**
 * Requires that a move is from the source to the target. Of any other, the "target" may be the cell that the organization
 * leaves: what is removed there is replicated to where the organization is, for as long as that move's replication lasts.
 */
const requireThis = ({ source, target }: Ends, { from, to }: Move): Effect.Effect<void, MoveRefused> =>
  from === source.name && to === target.name
    ? Effect.void
    : new MoveRefused({
        message: `A move from "${from}" to "${to}" is under way: finish it with --to ${to}, or give it up with --to ${to} --abort.`
      })

/** Begins a move, or finds the one that was begun. */
const begin = (parts: MoveParts, organizationId: OrganizationId) =>
  Effect.gen(function* () {
    const { author, directory, masterKeys, source, target } = parts
    const known = yield* findMove(source, organizationId)
    if (Option.isSome(known)) {
      yield* requireThis(parts, known.value)
      return known.value
    }
    yield* checkMove(parts, organizationId, masterKeys)
    yield* Effect.catchTag(directory.setMoving(organizationId, source.name, target.name), "PlaceChanged", changed)
    const move: MoveHere = {
      organizationId,
      id: yield* newId,
      from: source.name,
      to: target.name,
      author,
      role: "leaving",
      phase: "copying"
    }
    yield* recordMove(source, move, "leaving")
    return move
  })

/** The target's side of this move: whether it has all already. */
const hasAll = ({ target }: Ends, move: Move) =>
  Effect.flatMap(findMove(target, move.organizationId), (there) =>
    Option.isNone(there) || there.value.id === move.id
      ? Effect.succeed(Option.exists(there, ({ phase }) => phase === "moved"))
      : new MoveRefused({
          message: `Cell "${target.name}" has begun another move of this organization, from "${there.value.from}" to "${there.value.to}": give that up first, with --abort.`
        })
  )

/** 6. The directory says the target from now on. */
const flip = ({ directory, source, target }: MoveParts, { organizationId }: Move) =>
  Effect.gen(function* () {
    const { version } = yield* directory.setMoving(organizationId, source.name, target.name)
    yield* directory.flip(organizationId, { from: source.name, to: target.name, version })
  }).pipe(Effect.catchTag("PlaceChanged", changed))

/** 7. What follows the flip. */
const finish = (parts: MoveParts, move: Move) =>
  Effect.gen(function* () {
    const { onProgress, source, target } = parts
    yield* leaveTombstone(source, move)
    yield* endReplication(parts, move)
    yield* startTarget(parts, move)
    yield* onProgress(`The organization works in "${target.name}"`)
    const startedAt = yield* Clock.currentTimeMillis
    yield* cleanTarget(parts, move)
    yield* cleanSource(parts, move, (table) => onProgress(`Removing ${table} from "${source.name}"`))
    return startedAt
  })

/** Moves an organization, or goes on with its move. */
export const moveOrganization = (
  parts: MoveParts,
  organizationId: OrganizationId
): Effect.Effect<Moved, MoveFailure, SqlClient.SqlClient> =>
  Effect.gen(function* () {
    const { source, target } = parts
    yield* lockMove(source, organizationId)
    const result = { organizationId, from: source.name, to: target.name }
    if (yield* isFlipped(parts, organizationId)) {
      const known = yield* findMove(source, organizationId)
      if (Option.isSome(known)) yield* finish(parts, known.value)
      return { ...result, rows: null, fencedMillis: null }
    }
    const move = yield* begin(parts, organizationId)
    if (yield* hasAll(parts, move)) {
      yield* flip(parts, move)
      yield* finish(parts, move)
      return { ...result, rows: null, fencedMillis: null }
    }
    // The copy may take long again: not behind a fence
    if (move.phase !== "copying") yield* retreat(parts, move)
    const { fencedAt, rows } = yield* keepDays(
      parts,
      Effect.gen(function* () {
        yield* copyAhead(parts, move)
        return yield* fenceAndCopy(parts, move, yield* compareCopied(parts, move))
      })
    )
    yield* flip(parts, move)
    const startedAt = yield* finish(parts, move)
    return { ...result, rows, fencedMillis: startedAt - fencedAt }
  })

/**
 * Gives a move up: removes at the target what was copied. Only before the directory says the target, and only a move from
 * this source to this target.
 */
export const abortMove = (
  parts: Omit<MoveParts, "masterKeys" | "author">,
  organizationId: OrganizationId
): Effect.Effect<void, MoveFailure> =>
  Effect.gen(function* () {
    const { directory, source, target } = parts
    yield* lockMove(source, organizationId)
    if (yield* isFlipped(parts, organizationId)) {
      return yield* new MoveRefused({
        message: `The organization is in "${target.name}" already: a move can't be given up any longer, only finished by the same command without --abort.`
      })
    }
    const known = yield* findMove(source, organizationId)
    const there = yield* findMove(target, organizationId)
    for (const move of [...Option.toArray(known), ...Option.toArray(there)]) yield* requireThis(parts, move)
    for (const move of Option.toArray(Option.orElse(known, () => there))) {
      yield* undoTarget(parts, move)
      yield* forgetMove(source, move)
      yield* renewFence(source)
    }
    yield* directory.clearMoving(organizationId)
  })

/** How much a move would copy: rows by table. Fails as the move itself would, and changes nothing. */
export const rehearseMove = (
  parts: MoveParts,
  organizationId: OrganizationId
): Effect.Effect<ReadonlyArray<{ readonly table: string; readonly rows: number }>, MoveFailure> =>
  Effect.gen(function* () {
    yield* checkMove(parts, organizationId, parts.masterKeys)
    return yield* Effect.forEach(movedTables, (table) =>
      Effect.map(
        parts.source.query<{ rows: number }>(
          `SELECT count(*)::float8 AS rows FROM payments.${table.name} t WHERE ${isOf(table, organizationId)}`
        ),
        ([row]) => ({ table: table.name, rows: row?.rows ?? 0 })
      )
    )
  })
