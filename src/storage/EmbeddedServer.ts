import { type ChildProcess, spawn } from "node:child_process"
import { copyFile, open, realpath, rm, truncate } from "node:fs/promises"
import { join } from "node:path"
import { Deferred, Effect, Equal, FiberId, Option, Schedule, type Scope } from "effect"
import type { Binaries } from "./EmbeddedBinaries.ts"
import { clusterOf, type Home, readTextFile, statOptional } from "./EmbeddedDirectory.ts"
import { EmbeddedPostgresError, fileOperation, wordsOf } from "./EmbeddedPostgresError.ts"
import { childEnvironment, credentialsOf, postmasterState, processStart } from "./EmbeddedProcess.ts"

/** Timeout of a shutdown that ends open transactions ("fast"); an immediate one follows. */
const fastShutdownLimit = "5 seconds"
/** Timeout of an immediate shutdown; PostgreSQL itself kills its own children after 5 s. */
const immediateShutdownLimit = "7 seconds"
/** Timeout of a start: after a crash the server first replays its log. */
const startLimit = "2 minutes"
const pollInterval = Schedule.spaced("10 millis")
/** Above this size the log is moved to `postgresql.log.1`, replacing its previous content. */
const maxLogBytes = 8 * 1024 * 1024

const logOf = (home: Home): string => join(home.path, "postgresql.log")

const signal = (pid: number, name: NodeJS.Signals) =>
  // The process may have ended in the meantime
  Effect.ignore(Effect.try(() => process.kill(pid, name)))

/**
 * Shuts a postmaster down and waits for its end: fast, then immediate, then by force. `exited` completes when it has
 * ended.
 */
const stopPostmaster = (pid: number, exited: Effect.Effect<void>): Effect.Effect<void> => {
  const step = (name: NodeJS.Signals, limit: typeof fastShutdownLimit | typeof immediateShutdownLimit) =>
    signal(pid, name).pipe(
      // A finalizer cannot be interrupted, and neither could a wait in it: the timeout would have no effect
      Effect.zipRight(Effect.timeoutOption(Effect.interruptible(exited), limit)),
      Effect.map(Option.isSome)
    )
  return step("SIGINT", fastShutdownLimit).pipe(
    Effect.filterOrElse(
      (hasEnded) => hasEnded,
      () => step("SIGQUIT", immediateShutdownLimit)
    ),
    Effect.filterOrElse(
      (hasEnded) => hasEnded,
      () => signal(pid, "SIGKILL").pipe(Effect.zipRight(exited), Effect.as(true))
    ),
    Effect.asVoid
  )
}

const statusFileOf = (home: Home): string => join(clusterOf(home.path), "postmaster.pid")

const statusFile = Effect.fnUntraced(function* (home: Home) {
  const content = yield* readTextFile(statusFileOf(home))
  return Option.map(content, (text) => {
    const lines = text.split("\n").map((line) => line.trim())
    return { pid: Number(lines[0]), isReady: lines[7] === "ready" }
  })
})

/**
 * Stops the server that a killed process left running. If that server is gone, removes its status file: if its process
 * id now belongs to another program of the same user, PostgreSQL would refuse to start. The home must be locked: then
 * no live process can be using that server through this service.
 */
export const stopAbandonedServer = Effect.fnUntraced(function* (home: Home) {
  const status = yield* statusFile(home)
  if (Option.isNone(status)) return
  const { pid } = status.value
  const cluster = yield* fileOperation(`resolve ${home.path}`, () => realpath(clusterOf(home.path)))
  const state = postmasterState(pid, cluster)
  if ((yield* state) === "running") {
    yield* Effect.logInfo(`Stopping the embedded PostgreSQL (process ${pid}) that an earlier run left behind.`)
    const began = yield* processStart(pid)
    const isSame = Equal.equals(began)
    const ended = Effect.repeat(processStart(pid), { while: isSame, schedule: pollInterval })
    yield* stopPostmaster(pid, Effect.asVoid(ended))
  }
  if ((yield* state) !== "gone") return
  const file = statusFileOf(home)
  yield* fileOperation(`remove ${file}`, () => rm(file, { force: true }))
})

/** The settings of the server; neither the environment nor an edited `postgresql.conf` can change them. */
const serverOptions = (cluster: string, port: number, durable: boolean): ReadonlyArray<string> => {
  const settings = {
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
    // Statements and error details contain personal data, and must not be in a log file
    log_error_verbosity: "terse",
    log_min_error_statement: "panic",
    fsync: durable ? "on" : "off",
    full_page_writes: durable ? "on" : "off"
  }
  return ["-D", cluster, ...Object.entries(settings).flatMap(([name, value]) => ["-c", `${name}=${value}`])]
}

const boundLog = Effect.fnUntraced(function* (log: string) {
  const found = yield* statOptional(log)
  if (Option.isNone(found) || found.value.size <= maxLogBytes) return
  yield* fileOperation(`set ${log} aside`, async () => {
    await rm(`${log}.1`, { force: true })
    await copyFile(log, `${log}.1`)
    await truncate(log)
  })
})

const logTail = (log: string, offset: number) =>
  fileOperation(`read ${log}`, async () => {
    const file = await open(log, "r")
    try {
      const { size } = await file.stat()
      const from = Math.max(offset, size - 8192)
      const { buffer, bytesRead } = await file.read(Buffer.alloc(Math.max(0, size - from)), 0, null, from)
      return buffer.toString("utf8", 0, bytesRead).trim().split("\n").slice(-20).join("\n")
    } finally {
      await file.close()
    }
  }).pipe(Effect.orElseSucceed(() => ""))

interface Running {
  readonly child: ChildProcess
  /** How the process ended, in words. */
  readonly exited: Deferred.Deferred<string>
  /** The offset of this run's output in the log. */
  readonly logOffset: number
}

/**
 * Spawns the server detached, in a session of its own: a terminal's Ctrl-C reaches every process of the foreground
 * group, but the server must run until the service has drained and closes the scope.
 */
const spawnServer = (home: Home, binaries: Binaries, options: ReadonlyArray<string>) =>
  fileOperation("start PostgreSQL", async (): Promise<Running> => {
    const log = await open(logOf(home), "a", 0o600)
    try {
      const { size } = await log.stat()
      // If root runs an ordinary user's cluster, that user must be able to append to the log later
      if (Option.isSome(home.account)) await log.chown(home.account.value.uid, home.account.value.gid)
      const child = spawn(binaries.postgres, [...options], {
        ...credentialsOf(home.account),
        cwd: "/",
        env: childEnvironment,
        detached: true,
        stdio: ["ignore", log.fd, log.fd]
      })
      const exited = Deferred.unsafeMake<string>(FiberId.none)
      child.once("exit", (code, by) => Deferred.unsafeDone(exited, Effect.succeed(by ?? `status ${code}`)))
      child.once("error", (cause) => Deferred.unsafeDone(exited, Effect.succeed(wordsOf(cause))))
      return { child, exited, logOffset: size }
    } finally {
      await log.close()
    }
  })

/** Stops a server, but sends no signal if it has ended: its process id may by now belong to another process. */
const stopChild = ({ child: { pid }, exited }: Running) =>
  pid === undefined
    ? Effect.void
    : Effect.unlessEffect(stopPostmaster(pid, Effect.asVoid(Deferred.await(exited))), Deferred.isDone(exited))

const startFailure = (home: Home, how: string, log: string) =>
  new EmbeddedPostgresError({
    reason: "start_failed",
    message:
      `The embedded PostgreSQL in ${home.path} did not start (${how}). ` +
      (log === "" ? `Its log is ${logOf(home)}.` : `The end of its log ${logOf(home)}:\n${log}`)
  })

const waitUntilReady = Effect.fnUntraced(function* (home: Home, { child, exited, logOffset }: Running) {
  const failure = (how: string) =>
    Effect.flatMap(logTail(logOf(home), logOffset), (log) => startFailure(home, how, log))
  const isReady = Effect.map(
    statusFile(home),
    Option.exists((status) => status.isReady && status.pid === child.pid)
  )
  yield* Effect.repeat(isReady, { until: (ready) => ready, schedule: pollInterval }).pipe(
    Effect.raceFirst(Effect.flatMap(Deferred.await(exited), failure)),
    Effect.timeoutOption(startLimit),
    Effect.filterOrElse(Option.isSome, () => failure(`not ready within ${startLimit}`))
  )
})

const reportUnexpectedEnd = (home: Home, { exited, logOffset }: Running) =>
  Effect.gen(function* () {
    const how = yield* Deferred.await(exited)
    const log = yield* logTail(logOf(home), logOffset)
    yield* Effect.logError(`The embedded PostgreSQL in ${home.path} ended unexpectedly (${how}):\n${log}`)
  })

/**
 * Starts the server of a home and waits until it accepts connections, on 127.0.0.1 only. When the scope closes, it is
 * shut down: fast within 5 s, then immediately, finally by force; the scope closes only after it has ended.
 *
 * Fails with `start_failed`, whose message contains the end of the server's log.
 *
 * @param durable false if a crash of the machine may destroy the cluster
 */
export const startServer = Effect.fnUntraced(function* (
  home: Home,
  binaries: Binaries,
  options: { readonly port: number; readonly durable: boolean }
): Effect.fn.Return<void, EmbeddedPostgresError, Scope.Scope> {
  const cluster = yield* fileOperation(`resolve ${home.path}`, () => realpath(clusterOf(home.path)))
  yield* boundLog(logOf(home))
  const running = yield* Effect.acquireRelease(
    spawnServer(home, binaries, serverOptions(cluster, options.port, options.durable)),
    stopChild
  )
  yield* waitUntilReady(home, running)
  yield* Effect.forkScoped(reportUnexpectedEnd(home, running))
  yield* Effect.forkScoped(boundLog(logOf(home)).pipe(Effect.ignoreLogged, Effect.repeat(Schedule.spaced("1 minute"))))
})
