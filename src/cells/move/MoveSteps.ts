import type { SqlError } from "@effect/sql"
import { Clock, Effect, Option, Ref } from "effect"
import { type CellDatabase, reopenCell } from "./CellDatabase.ts"
import { type ComparedHours, compareAhead, compareRest } from "./ComparedHours.ts"
import { awaitCounts } from "./Counts.ts"
import { renewFence } from "./Fence.ts"
import { copyImages, copyLast } from "./LastCopy.ts"
import type { MoveRefused } from "./MoveError.ts"
import { findMove, forgetMove, lockMove, type Move, recordMove, setPhase } from "./MoveState.ts"
import { parkDeliveries, releaseDeliveries } from "./Parking.ts"
import { addPartitions, removeForgotten } from "./Partitions.ts"
import { removeOrganization } from "./Removal.ts"
import {
  awaitCaughtUp,
  awaitCopy,
  beginReplication,
  type Ends,
  endReplication,
  findReplication
} from "./Replication.ts"

/** The steps of a move until the target has all: see `Move.ts`. Up to there, each can be undone. */

interface Told extends Ends {
  readonly onProgress: (text: string) => Effect.Effect<void>
}

/** Tells each text once. */
const onNews = (tell: Told["onProgress"]) => {
  let told = ""
  return (text: string): Effect.Effect<void> =>
    Effect.suspend(() => {
      if (text === told) return Effect.void
      told = text
      return tell(text)
    })
}

/** 1. Copies ahead, or goes on with it. */
export const copyAhead = (parts: Told, move: Move) =>
  Effect.gen(function* () {
    const { onProgress, source, target } = parts
    const { organizationId } = move
    yield* recordMove(target, move, "arriving")
    yield* renewFence(target)
    yield* renewFence(source)
    yield* addPartitions(parts, organizationId)
    const found = yield* findReplication(parts, move)
    yield* onProgress(`Copying from "${source.name}" to "${target.name}" while the organization works`)
    if (!(found.publication && found.slot && found.subscription)) {
      // What a killed attempt has left
      yield* endReplication(parts, move)
      yield* removeOrganization(target, organizationId)
      yield* beginReplication(parts, move)
    }
    yield* copyImages(parts, organizationId)
    const tell = onNews(onProgress)
    yield* awaitCopy(parts, move, ({ copied, rows, tables }) =>
      tell(`${copied} of ${tables} tables copied${rows > 0 ? `, and ${rows} rows of others` : ""}`)
    )
    yield* removeForgotten(parts, organizationId, awaitCaughtUp(parts, move))
    yield* awaitCounts(parts)
  })

const tellSame =
  ({ onProgress }: Told) =>
  (table: string, rows: number) =>
    rows === 0 ? Effect.void : onProgress(`${table}: ${rows} rows, the same at both ends`)

/** 2. Compares what is copied, while the organization works. */
export const compareCopied = (parts: Told, move: Move) =>
  Effect.zipRight(
    parts.onProgress("Comparing what is copied while the organization works"),
    compareAhead(parts, move, tellSame(parts))
  )

/** Gives the organization its writes at the source back. The target has not all yet, and the copy goes on. */
export const retreat = ({ source }: Pick<Ends, "source">, move: Move) =>
  Effect.zipRight(setPhase(source, move, "copying"), releaseDeliveries(source, move.organizationId))

/** How long a connection that may be lost is waited for before there is another one. */
const patienceWithLost = "10 seconds"

/** Does something by a connection, or by a new one in its place if that is lost. */
const byAnyConnection = <A, E>(
  cell: CellDatabase,
  act: (cell: CellDatabase) => Effect.Effect<A, E>,
  first: (again: CellDatabase) => Effect.Effect<unknown, SqlError.SqlError | MoveRefused> = () => Effect.void
) =>
  cell.query("SELECT 1").pipe(
    Effect.interruptible,
    Effect.timeout(patienceWithLost),
    Effect.as(cell),
    Effect.catchAll(() => Effect.tap(reopenCell(cell), first)),
    Effect.flatMap(act),
    Effect.scoped
  )

/**
 * Retreats after a failure, unless the target has all: then the same command goes on.
 *
 * @param mayHaveAll whether the last copy had begun; before that, the state of the target does not matter
 */
const retreatIfPossible = (parts: Told, move: Move, mayHaveAll: boolean) =>
  Effect.gen(function* () {
    const { onProgress, source, target } = parts
    const { organizationId } = move
    const there = mayHaveAll ? yield* byAnyConnection(target, (cell) => findMove(cell, organizationId)) : Option.none()
    if (Option.exists(there, ({ phase }) => phase === "moved")) return
    yield* byAnyConnection(
      source,
      (cell) => retreat({ source: cell }, move),
      // The lock was the lost connection's
      (again) => lockMove(again, organizationId)
    )
    yield* onProgress("Writes are accepted again where they were before")
  }).pipe(
    Effect.catchAll((error) =>
      Effect.logError("Writes are still refused: run the same command again, or give the move up with --abort", error)
    )
  )

/** @param onLastCopy run before the target may have all */
const behindTheFence = (parts: Told, move: Move, compared: ComparedHours, onLastCopy: Effect.Effect<void>) =>
  Effect.gen(function* () {
    const { onProgress, source } = parts
    const { organizationId } = move
    yield* setPhase(source, move, "parking")
    const tell = onNews(onProgress)
    yield* parkDeliveries(source, organizationId, (underWay) => tell(`Attempts under way: ${underWay}`))
    const fencedAt = yield* Clock.currentTimeMillis
    yield* onProgress("Writes are refused from now on")
    yield* setPhase(source, move, "fenced")
    yield* addPartitions(parts, organizationId)
    yield* awaitCaughtUp(parts, move)
    const rows = yield* compareRest(parts, organizationId, compared, tellSame(parts))
    yield* copyImages(parts, organizationId)
    yield* awaitCounts(parts)
    yield* onLastCopy
    yield* copyLast(parts, move)
    return { fencedAt, rows }
  })

/** 3 to 5. Parks, fences, compares and copies the rest; gives all writes back if that fails. */
export const fenceAndCopy = (parts: Told, move: Move, compared: ComparedHours) =>
  Effect.flatMap(Ref.make(false), (mayHaveAll) =>
    behindTheFence(parts, move, compared, Ref.set(mayHaveAll, true)).pipe(
      Effect.onError(() => Effect.flatMap(Ref.get(mayHaveAll), (may) => retreatIfPossible(parts, move, may)))
    )
  )

/** Undoes all of these steps. Repeating it goes on; after it, a move begins anew. */
export const undoTarget = (parts: Ends, move: Move) =>
  Effect.gen(function* () {
    const { target } = parts
    const { organizationId } = move
    // First, so that what is left of the copy is never taken for all
    yield* setPhase(target, move, "copying")
    yield* endReplication(parts, move)
    yield* retreat(parts, move)
    yield* removeOrganization(target, organizationId)
    yield* forgetMove(target, move)
    yield* renewFence(target)
  })
