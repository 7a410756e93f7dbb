import { chmod, mkdir, mkdtemp, readdir, rm, stat } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Cause, Clock, Effect, Exit, Layer, Redacted, Scope } from "effect"
import { Client } from "pg"
import type { TestProject } from "vitest/node"
import { databaseLayer } from "../../src/platform/storage/Database.ts"
import { destroyEmbeddedPostgres, startEmbeddedPostgres } from "../../src/platform/storage/embedded/EmbeddedPostgres.ts"
import { migrationsLayer } from "../../src/platform/storage/Migrations.ts"
import { buildInto } from "./Build.ts"
import { copyCluster, emptyTemplate, locale } from "./Cluster.ts"

declare module "vitest" {
  interface ProvidedContext {
    /** URL of the run's PostgreSQL, as its superuser: for making and dropping databases. */
    readonly databaseAdminUrl: string
    /** Name of a database that has the schema and nothing else: for tests to copy. */
    readonly migratedDatabase: string
    readonly buildDirectory: string
    /** A directory with a cluster that has the schema and nothing else, stopped: for tests to copy. */
    readonly clusterDirectory: string
    /** Where tests, and the processes that they start, create files. */
    readonly temporaryDirectory: string
  }
}

const prefix = "connected-payments-run-"

/** A directory younger than this may belong to a run that is only just starting. */
const startingLimitMillis = 60_000

const removeRun = (directory: string) =>
  Effect.zipRight(
    destroyEmbeddedPostgres(directory),
    Effect.tryPromise(() => rm(directory, { recursive: true, force: true }))
  )

/** Removes what runs that were killed left behind; those of live runs are locked and stay. */
const removeAbandonedRuns = Effect.fnUntraced(function* (base: string) {
  const now = yield* Clock.currentTimeMillis
  const names = yield* Effect.tryPromise(() => readdir(base))
  const directories = names.filter((name) => name.startsWith(prefix)).map((name) => join(base, name))
  yield* Effect.forEach(directories, (directory) =>
    Effect.gen(function* () {
      const { mtimeMs } = yield* Effect.tryPromise(() => stat(directory))
      if (now - mtimeMs > startingLimitMillis) yield* removeRun(directory)
    }).pipe(
      // Another run's, live or another user's, or just being removed by another run: none of it concerns this one.
      Effect.catchAll((error) => Effect.logDebug("Left a test cluster alone", directory, error))
    )
  )
})

/** A directory for the run, with one in it for what tests and their processes create. */
const runDirectory = (base: string) =>
  Effect.acquireRelease(
    Effect.tryPromise(async () => {
      const directory = await mkdtemp(join(base, prefix))
      // Root runs the server under another account, which must be able to pass.
      await chmod(directory, 0o711)
      const temporaryDirectory = join(directory, "tmp")
      await mkdir(temporaryDirectory)
      // As the system's own is
      await chmod(temporaryDirectory, 0o1777)
      return { directory, temporaryDirectory }
    }),
    ({ directory }) => Effect.ignoreLogged(removeRun(directory))
  )

const migrate = (url: Redacted.Redacted<string>) =>
  Effect.scoped(Layer.build(Layer.provide(migrationsLayer, databaseLayer({ url, poolSize: 2 }))))

/** Makes the server's database anew, with the locale of `TEST_LOCALE`. */
const recreate = (url: Redacted.Redacted<string>) =>
  Effect.promise(async () => {
    const admin = new URL(Redacted.value(url))
    const name = admin.pathname.slice(1)
    admin.pathname = "/postgres"
    const client = new Client({ connectionString: admin.href })
    await client.connect()
    await client.query(`DROP DATABASE ${name}`)
    await client.query(`CREATE DATABASE ${name} TEMPLATE ${emptyTemplate}`)
    await client.end()
  })

/** The database that comes with the server gets the schema; nobody stays connected to it. */
const startPostgres = Effect.fnUntraced(function* (directory: string, clusterDirectory: string) {
  const start = startEmbeddedPostgres({ directory, durable: false, temporary: true })
  yield* Effect.scoped(
    Effect.flatMap(start, ({ url }) =>
      Effect.zipRight(locale === undefined ? Effect.void : recreate(url), migrate(url))
    )
  )
  yield* copyCluster(directory, clusterDirectory)
  const { url } = yield* start
  const adminUrl = new URL(Redacted.value(url))
  const migratedDatabase = adminUrl.pathname.slice(1)
  adminUrl.pathname = "/postgres"
  return { databaseAdminUrl: adminUrl.href, migratedDatabase }
})

/**
 * Vitest's global set-up: one PostgreSQL and one build for the whole run, in a directory that is removed at the end, with
 * whatever tests have left in theirs.
 *
 * @param base where to create that directory
 */
export const setupIn =
  (base: string) =>
  async (project: TestProject): Promise<() => Promise<void>> => {
    const scope = Effect.runSync(Scope.make())
    const start = Effect.gen(function* () {
      yield* removeAbandonedRuns(base)
      const { directory, temporaryDirectory } = yield* runDirectory(base)
      const buildDirectory = join(directory, "build")
      const clusterDirectory = join(directory, "copied")
      yield* Effect.tryPromise(() => mkdir(buildDirectory))
      const [postgres] = yield* Effect.all([startPostgres(directory, clusterDirectory), buildInto(buildDirectory)], {
        concurrency: 2
      })
      return { ...postgres, buildDirectory, clusterDirectory, temporaryDirectory }
    })
    const close = (exit: Exit.Exit<unknown, unknown>) => Effect.runPromise(Scope.close(scope, exit))
    const started = await Effect.runPromiseExit(Scope.extend(start, scope))
    if (Exit.isFailure(started)) {
      await close(started)
      throw Cause.squash(started.cause)
    }
    project.provide("databaseAdminUrl", started.value.databaseAdminUrl)
    project.provide("migratedDatabase", started.value.migratedDatabase)
    project.provide("buildDirectory", started.value.buildDirectory)
    project.provide("clusterDirectory", started.value.clusterDirectory)
    project.provide("temporaryDirectory", started.value.temporaryDirectory)
    return () => close(Exit.void)
  }

export default setupIn(tmpdir())
