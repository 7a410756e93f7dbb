import { Command, Options } from "@effect/cli"
import { SqlClient } from "@effect/sql"
import { Array, Console, Context, Effect, Layer, Option, type Redacted } from "effect"
import { cellNameForm, Directory } from "../cells/Directory.ts"
import { directoryLayer } from "../cells/DirectoryLive.ts"
import { migrateDirectory } from "../cells/DirectoryMigrations.ts"
import { type CellDatabase, openCell } from "../cells/move/CellDatabase.ts"
import { abortMove, moveOrganization, rehearseMove } from "../cells/move/Move.ts"
import { readMoveSettings } from "../cells/move/MoveSettings.ts"
import { findMove } from "../cells/move/MoveState.ts"
import { OrganizationId } from "../kit/Ids.ts"
import { databaseLayer } from "../storage/Database.ts"
import { CommandFailed } from "./Failure.ts"
import { formOption, idArgument } from "./Fields.ts"
import { operator } from "./Operator.ts"
import { fields, jsonOption, show, table } from "./Output.ts"
import { described, exampleOrganization } from "./Synopsis.ts"

/** `organizations move`: from one cell to another, while it works. */

/** Longer than any statement of a move, whose tables may be large. */
const statementTimeout = "12 hours"

const toOption = formOption(
  "to",
  (text) => Option.liftPredicate(text, (name) => cellNameForm.test(name)),
  "must be the name of a cell"
).pipe(Options.withPseudoName("<cell>"), Options.withDescription("The cell to move to, as the directory names it."))

const dryRunOption = Options.boolean("dry-run").pipe(
  Options.withDescription("Check everything, show what would be copied, and change nothing.")
)

const abortOption = Options.boolean("abort").pipe(
  Options.withDescription("Give a move up that has not ended, and remove what was copied.")
)

/** The directory, on its own database. */
const openDirectory = (url: Redacted.Redacted) =>
  Effect.map(
    Layer.build(
      directoryLayer.pipe(
        Layer.provide(Layer.effectDiscard(migrateDirectory)),
        Layer.provide(databaseLayer({ url, poolSize: 2, applicationName: "connected-payments move" }))
      )
    ),
    (services) => Context.get(services, Directory)
  )

/**
 * The cell that the organization leaves: the directory's, or the one with a move that the directory knows to be done. None
 * if the organization is at its target, and no other cell has anything of the move.
 */
const sourceOf = (
  directory: Directory["Type"],
  id: OrganizationId,
  to: string,
  named: ReadonlyMap<string, unknown>,
  open: (name: string) => OpenCell
) =>
  Effect.gen(function* () {
    const place = yield* directory.cellOfOrganization(id)
    if (Option.isNone(place)) {
      return yield* new CommandFailed({ message: `The directory does not know organization ${id}.` })
    }
    if (place.value.cell !== to) return Option.some(yield* open(place.value.cell))
    // Those that can be looked at first: the move was most likely between two of them
    const others = (yield* directory.cells).filter(({ name }) => name !== to)
    const [unnamed, reachable] = Array.partition(others, ({ name }) => named.has(name))
    for (const { name } of [...reachable, ...unnamed]) {
      const cell = yield* open(name)
      const move = yield* findMove(cell, id)
      if (Option.exists(move, (one) => one.to === to)) return Option.some(cell)
    }
    return Option.none<CellDatabase>()
  })

type OpenCell = ReturnType<ReturnType<typeof opener>>

const opener = (cells: ReadonlyMap<string, Redacted.Redacted>) =>
  Effect.fnUntraced(function* (name: string) {
    const url = cells.get(name)
    if (url !== undefined) return yield* openCell(name, url)
    return yield* new CommandFailed({
      message: `CELL_DATABASE_URLS does not name cell "${name}": add ${name}=postgresql://…`
    })
  })

/** The statistics' statements use a client of the service's own kind. */
const clientOf = ({ url }: CellDatabase) =>
  Effect.map(
    Layer.build(databaseLayer({ url, poolSize: 2, statementTimeout, applicationName: "connected-payments move" })),
    (services) => Context.get(services, SqlClient.SqlClient)
  )

const seconds = (millis: number): string => `${(millis / 1000).toFixed(1)} s`

const run = (options: {
  readonly id: OrganizationId
  readonly to: string
  readonly dryRun: boolean
  readonly abort: boolean
  readonly json: boolean
}) =>
  Effect.gen(function* () {
    const { abort, dryRun, id, json, to } = options
    if (abort && dryRun) {
      return yield* new CommandFailed({ message: "--abort and --dry-run exclude each other." })
    }
    const settings = yield* readMoveSettings
    const directory = yield* openDirectory(settings.directoryUrl)
    const open = opener(settings.cells)
    const known = yield* sourceOf(directory, id, to, settings.cells, open)
    if (Option.isNone(known)) {
      if (abort) {
        return yield* new CommandFailed({
          message: `Organization ${id} is in cell "${to}", and no move of it is under way.`
        })
      }
      // Not a failure: who repeats a command that was killed at its very end wants to hear that all is done
      return yield* show(json, {
        json: { organizationId: id, cell: to, moved: false },
        text: `Organization ${id} is in cell "${to}" already, and nothing of a move is left to do.`
      })
    }
    const source = known.value
    const target = yield* open(to)
    const author = yield* operator
    const parts = { source, target, directory, author: author.id, onProgress: (text: string) => Console.error(text) }
    if (abort) {
      yield* abortMove(parts, id)
      return yield* show(json, {
        json: { organizationId: id, cell: source.name, aborted: true },
        text: `The move was given up: organization ${id} stays in "${source.name}".`
      })
    }
    if (Option.isNone(settings.masterKeys)) {
      return yield* new CommandFailed({ message: `MASTER_KEYS is not set: it has to be the setting of cell "${to}".` })
    }
    const all = { ...parts, masterKeys: settings.masterKeys.value }
    if (dryRun) {
      const tables = (yield* rehearseMove(all, id)).filter(({ rows }) => rows > 0)
      return yield* show(json, {
        json: { organizationId: id, from: source.name, to, tables },
        text: `${table(
          ["TABLE", "ROWS"],
          tables.map(({ rows, table: name }) => [name, String(rows)]),
          "There are no rows."
        )}\n\nNothing was changed. Without --dry-run these are moved from "${source.name}" to "${to}".`
      })
    }
    const moved = yield* Effect.provideService(moveOrganization(all, id), SqlClient.SqlClient, yield* clientOf(target))
    yield* show(json, {
      json: moved,
      text: fields([
        ["Moved", id],
        ["From", moved.from],
        ["To", moved.to],
        ...(moved.rows === null ? [] : [["Replicated rows", String(moved.rows)] as const]),
        ...(moved.fencedMillis === null ? [] : [["Writes refused for", seconds(moved.fencedMillis)] as const])
      ])
    })
  }).pipe(Effect.scoped)

/** The command. */
export const moveCommand = described(
  Command.make(
    "move",
    {
      id: idArgument(OrganizationId, "The organization's id."),
      to: toOption,
      dryRun: dryRunOption,
      abort: abortOption,
      json: jsonOption
    },
    run
  ),
  {
    command: "organizations move",
    summary: "Move an organization to another cell while it works; the same command again goes on after a failure.",
    example: `${exampleOrganization} --to south --dry-run`
  }
)
