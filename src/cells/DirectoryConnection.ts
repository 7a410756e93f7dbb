import { SqlClient } from "@effect/sql"
import type { PgClient } from "@effect/sql-pg"
import { Data, Effect, Layer, type Redacted, Schedule } from "effect"
import { databaseLayer, type SessionOptions } from "../storage/Database.ts"
import type { MigrationFailed } from "../storage/Migrations.ts"
import type { Directory } from "./Directory.ts"
import { directoryLayer } from "./DirectoryLive.ts"
import { migrateDirectory } from "./DirectoryMigrations.ts"

/** How a process connects to the directory. */
export interface DirectoryOptions {
  readonly url: Redacted.Redacted
  /** The cell that this process is part of; null for routers and commands. */
  readonly cell: string | null
  /** Whether to fail if the directory can't be reached, as a command should. Default false. */
  readonly required?: boolean
  /** Connections of this process. Default 4. */
  readonly poolSize?: number
}

/** The directory does not know the cell of this process. The message is for the operator. */
export class CellUnknown extends Data.TaggedError("CellUnknown")<{ readonly message: string }> {}

/** `DIRECTORY_URL` leads to something that the directory can't be used through. The message is for the operator. */
export class DirectoryUnusable extends Data.TaggedError("DirectoryUnusable")<{ readonly message: string }> {}

/** Why a process can't start with its directory. */
export type DirectoryRefusal = CellUnknown | DirectoryUnusable

/**
 * The directory's database. Waits are short: what can't be asked soon is better refused, and asked again.
 */
const databaseOf = ({ poolSize = 4, url }: DirectoryOptions) =>
  databaseLayer({
    url,
    poolSize,
    connectTimeout: "5 seconds",
    statementTimeout: "5 seconds",
    applicationName: "connected-payments directory",
    setting: "DIRECTORY_URL",
    mayBeAway: true
  })

const requireCell = (name: string) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const [found] = yield* sql`SELECT 1 FROM payments_directory.cells WHERE name = ${name}`
    if (found === undefined) {
      return yield* new CellUnknown({
        message: `CELL_NAME: the directory has no cell ${name}. Add it with: connected-payments cells add ${name} --url URL`
      })
    }
  })

/** Brings the directory's schema up to date, and requires that it knows this process's cell. */
const prepare = ({ cell }: DirectoryOptions) =>
  Effect.zipRight(migrateDirectory, cell === null ? Effect.void : requireCell(cell))

/** `prepare` if the directory can be reached; otherwise later, since a cell serves its organizations without it. */
const prepareNowOrLater = (options: DirectoryOptions) =>
  Effect.gen(function* () {
    if (options.required === true) return yield* prepare(options)
    const sql = yield* SqlClient.SqlClient
    const away = yield* Effect.flip(sql`SELECT 1`).pipe(Effect.option)
    if (away._tag === "None") {
      return yield* prepare(options)
    }
    yield* Effect.logWarning(
      "The directory can't be reached (DIRECTORY_URL): nothing new can be claimed until it can",
      away.value
    )
    yield* prepare(options).pipe(
      Effect.retry(Schedule.spaced("2 seconds")),
      Effect.zipRight(Effect.logInfo("The directory can be reached")),
      Effect.withTracerEnabled(false),
      Effect.forkScoped
    )
  })

/**
 * The directory of this process, with its schema up to date. A directory that is away does not keep a process from
 * starting: its methods fail with 503 until it is back. Fails if the directory does not know the process's cell.
 */
export const connectedDirectoryLayer = (
  options: DirectoryOptions
): Layer.Layer<
  Directory | PgClient.PgClient | SqlClient.SqlClient | SessionOptions,
  DirectoryRefusal | MigrationFailed
> =>
  directoryLayer.pipe(
    Layer.provideMerge(Layer.scopedDiscard(Effect.catchTag(prepareNowOrLater(options), "SqlError", Effect.die))),
    // That it is away is no failure
    Layer.provideMerge(Layer.mapError(databaseOf(options), ({ message }) => new DirectoryUnusable({ message })))
  )
