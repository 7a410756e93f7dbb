import { chmod, mkdtemp, readdir, rm, stat } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Cause, Clock, Effect, Exit, Redacted, Scope } from "effect"
import type { TestProject } from "vitest/node"
import { destroyEmbeddedPostgres, startEmbeddedPostgres } from "../../src/storage/EmbeddedPostgres.ts"

declare module "vitest" {
  interface ProvidedContext {
    /** URL of the run's PostgreSQL, as its superuser: for making and dropping databases. */
    readonly databaseAdminUrl: string
  }
}

const prefix = "connected-payments-test-"

/** A directory younger than this may belong to a run that is only just starting. */
const startingLimitMillis = 60_000

/** Removes what runs that were killed left behind; those of live runs are locked and stay. */
const removeAbandonedClusters = Effect.gen(function* () {
  const now = yield* Clock.currentTimeMillis
  const names = yield* Effect.tryPromise(() => readdir(tmpdir()))
  const directories = names.filter((name) => name.startsWith(prefix)).map((name) => join(tmpdir(), name))
  yield* Effect.forEach(directories, (directory) =>
    Effect.gen(function* () {
      const { mtimeMs } = yield* Effect.tryPromise(() => stat(directory))
      if (now - mtimeMs > startingLimitMillis) yield* destroyEmbeddedPostgres(directory)
    }).pipe(
      // Another run's, live or another user's, or just being removed by another run: none of it concerns this one.
      Effect.catchAll((error) => Effect.logDebug("Left a test cluster alone", directory, error))
    )
  )
})

const temporaryDirectory = Effect.acquireRelease(
  Effect.tryPromise(async () => {
    const directory = await mkdtemp(join(tmpdir(), prefix))
    // Root runs the server under another account, which must be able to pass.
    await chmod(directory, 0o711)
    return directory
  }),
  (directory) =>
    destroyEmbeddedPostgres(directory).pipe(
      Effect.zipRight(Effect.tryPromise(() => rm(directory, { recursive: true, force: true }))),
      Effect.ignoreLogged
    )
)

/** Vitest's global set-up: one PostgreSQL for the whole run, in a temporary directory that is removed at the end. */
const setup = async (project: TestProject): Promise<() => Promise<void>> => {
  const scope = Effect.runSync(Scope.make())
  const start = Effect.gen(function* () {
    yield* removeAbandonedClusters
    const directory = yield* temporaryDirectory
    return yield* startEmbeddedPostgres({ directory, durable: false })
  })
  const close = (exit: Exit.Exit<unknown, unknown>) => Effect.runPromise(Scope.close(scope, exit))
  const started = await Effect.runPromiseExit(Scope.extend(start, scope))
  if (Exit.isFailure(started)) {
    await close(started)
    throw Cause.squash(started.cause)
  }
  project.provide("databaseAdminUrl", Redacted.value(started.value.url))
  return () => close(Exit.void)
}

export default setup
