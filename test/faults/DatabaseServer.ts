import { readFile } from "node:fs/promises"
import { join } from "node:path"
import { Effect, Exit, Redacted, Scope } from "effect"
import { startEmbeddedPostgres } from "../../src/platform/storage/embedded/EmbeddedPostgres.ts"
import { eventuallyDone } from "../harness/Eventually.ts"
import { databasePid, isAlive } from "../process/ServiceProcess.ts"

/** A PostgreSQL of a test's own, durable as a production one, to which everything may be done. */
export type DatabaseServer = Effect.Effect.Success<ReturnType<typeof startDatabaseServer>>

const childrenOf = (pid: number): Promise<ReadonlyArray<number>> =>
  readFile(`/proc/${pid}/task/${pid}/children`, "utf8").then((text) => text.split(" ").filter(Boolean).map(Number))

const signal = (pid: number, name: NodeJS.Signals): void => {
  try {
    process.kill(pid, name)
  } catch {
    // One of the server's own has ended in the meantime
  }
}

/** Every process of a server, by the id of its first one, stands still until the scope ends. */
export const frozen = (pid: number): Effect.Effect<unknown, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      // The parent first: it starts no further ones then
      signal(pid, "SIGSTOP")
      const children = await childrenOf(pid)
      for (const child of children) signal(child, "SIGSTOP")
      return children
    }),
    (children) =>
      Effect.sync(() => {
        for (const stopped of [...children, pid]) signal(stopped, "SIGCONT")
      })
  )

/** Starts it in `directory`/postgres; it ends with the scope. */
export const startDatabaseServer = Effect.fnUntraced(function* (directory: string) {
  let running = yield* Scope.make()
  const close = Effect.suspend(() => Scope.close(running, Exit.void))
  const start = Effect.gen(function* () {
    running = yield* Scope.make()
    return yield* startEmbeddedPostgres({ directory: join(directory, "postgres") }).pipe(Scope.extend(running))
  })
  const { port, url } = yield* start
  yield* Effect.addFinalizer(() => close)

  const crash = Effect.gen(function* () {
    const pid = yield* databasePid(directory)
    signal(pid, "SIGKILL")
    yield* eventuallyDone(
      "the server's end",
      Effect.map(isAlive(pid), (alive) => !alive)
    )
    yield* close
  })

  return {
    /** Straight to the server, as its superuser. The port is the same after each start. */
    url: Redacted.value(url),
    port,
    start: Effect.asVoid(start),
    /** A fast shutdown, as an operator's restart does it: sessions are ended, what is committed is on the disk. */
    stop: close,
    /** The server is killed. The next start recovers from the log. */
    crash,
    /** Every process of the server stands still until the scope ends: connections stay open, and nobody answers. */
    freeze: Effect.flatMap(databasePid(directory), frozen)
  }
})
