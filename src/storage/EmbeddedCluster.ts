import { randomBytes, randomUUID } from "node:crypto"
import { chown, mkdir, readdir, rename, rm, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { Effect, Option, Redacted } from "effect"
import type { Binaries } from "./EmbeddedBinaries.ts"
import { clusterOf, type Home, readTextFile, replaceFile, statOptional } from "./EmbeddedDirectory.ts"
import { EmbeddedPostgresError, fileOperation } from "./EmbeddedPostgresError.ts"
import { runCommand } from "./EmbeddedProcess.ts"

/** Superuser of the cluster, and owner of the service's database. */
export const superuser = "payments"

const draftPrefix = "cluster.init-"

const passwordFileOf = (home: Home): string => join(home.path, "password")

const remove = (path: string) =>
  // Programs that were just interrupted may still be writing into it
  fileOperation(`remove ${path}`, () => rm(path, { recursive: true, force: true, maxRetries: 10, retryDelay: 50 }))

/** Gives a file or directory that we created to the server's account. */
const handOff = (path: string, home: Home) =>
  Effect.forEach(
    Option.toArray(home.account),
    ({ uid, gid }) => fileOperation(`hand ${path} over`, () => chown(path, uid, gid)),
    { discard: true }
  )

/**
 * A temporary copy of the password that `initdb` may read, removed when the scope closes; only the owner may read the
 * original.
 */
const passwordFileForInitdb = Effect.fnUntraced(function* (home: Home, password: string) {
  const path = join(home.path, `${draftPrefix}${randomUUID()}.password`)
  yield* Effect.acquireRelease(
    fileOperation(`write ${path}`, () => writeFile(path, password, { flag: "wx", mode: 0o600 })),
    () => Effect.ignoreLogged(remove(path))
  )
  yield* handOff(path, home)
  return path
})

/**
 * The options of `initdb`. The locale is PostgreSQL's own `C.UTF-8`: it sorts the same on every system, and needs no
 * installed locale.
 */
const initdbOptions = (directory: string, passwordFile: string, durable: boolean): ReadonlyArray<string> => [
  `--pgdata=${directory}`,
  `--username=${superuser}`,
  `--pwfile=${passwordFile}`,
  "--auth=scram-sha-256",
  "--encoding=UTF8",
  "--locale-provider=builtin",
  "--builtin-locale=C.UTF-8",
  "--locale=C",
  "--no-instructions",
  ...(durable ? [] : ["--no-sync"])
]

/** Builds the cluster under a temporary name and renames it when complete, so that a crash leaves no partial one. */
const initialize = Effect.fnUntraced(function* (home: Home, binaries: Binaries, durable: boolean) {
  const password = randomBytes(24).toString("base64url")
  yield* replaceFile(passwordFileOf(home), password, 0o600)
  const draft = join(home.path, `${draftPrefix}${randomUUID()}`)
  yield* Effect.gen(function* () {
    const passwordFile = yield* passwordFileForInitdb(home, password)
    yield* fileOperation(`create ${draft}`, () => mkdir(draft, { mode: 0o700 }))
    yield* handOff(draft, home)
    yield* runCommand(binaries.initdb, initdbOptions(draft, passwordFile, durable), home.account)
    yield* fileOperation(`create ${clusterOf(home.path)}`, () => rename(draft, clusterOf(home.path)))
  }).pipe(
    Effect.scoped,
    Effect.onError(() => Effect.ignoreLogged(remove(draft))),
    Effect.catchTag(
      "CommandError",
      (cause) =>
        new EmbeddedPostgresError({
          reason: "initialization_failed",
          message: `The embedded PostgreSQL could not be initialized in ${home.path}: ${cause.output}`,
          cause
        })
    )
  )
  return Redacted.make(password)
})

const removeDrafts = Effect.fnUntraced(function* (home: Home) {
  const names = yield* fileOperation(`list ${home.path}`, () => readdir(home.path))
  const drafts = names.filter((name) => name.startsWith(draftPrefix))
  yield* Effect.forEach(drafts, (name) => remove(join(home.path, name)), { discard: true })
})

const requireVersion = Effect.fnUntraced(function* (home: Home, version: string, binaries: Binaries) {
  if (version === binaries.majorVersion) return
  return yield* new EmbeddedPostgresError({
    reason: "version_mismatch",
    message:
      `The embedded database in ${home.path} was written by PostgreSQL ${version}; the one installed is ` +
      `${binaries.majorVersion}. Move the data with pg_dump, or remove the directory to begin with an empty database.`
  })
})

const readPassword = Effect.fnUntraced(function* (home: Home) {
  const password = yield* readTextFile(passwordFileOf(home))
  if (Option.isSome(password)) return Redacted.make(password.value)
  return yield* new EmbeddedPostgresError({
    reason: "data_missing",
    message:
      `The embedded database in ${home.path} has lost its file "password". Restore it, or remove ${home.path} to ` +
      "begin with an empty database."
  })
})

/** Gives the cluster to the server's account if root has restored or copied it: the server must own it. */
const ensureOwner = Effect.fnUntraced(function* (home: Home) {
  const cluster = clusterOf(home.path)
  const found = yield* statOptional(cluster)
  if (Option.isNone(home.account) || Option.isNone(found) || found.value.uid === home.account.value.uid) return
  const { uid, gid } = home.account.value
  yield* runCommand("chown", ["-R", `${uid}:${gid}`, cluster]).pipe(
    Effect.mapError(
      (cause) =>
        new EmbeddedPostgresError({
          reason: "permission_denied",
          message: `The embedded PostgreSQL's directory ${cluster} cannot be handed to user ${uid}: ${cause.output}`,
          cause
        })
    )
  )
})

/**
 * Makes sure that the home has a cluster, and returns the superuser's password. The first call runs `initdb` with a
 * random password, which is kept next to the cluster in the file `password` (mode 0600). The home must be locked and
 * its server not running.
 *
 * Fails with `initialization_failed`, `version_mismatch`, or `data_missing` if the password file is gone.
 *
 * @param durable false to skip forcing the new cluster to disk
 */
export const prepareCluster = Effect.fnUntraced(function* (home: Home, binaries: Binaries, durable: boolean) {
  yield* removeDrafts(home)
  const version = yield* readTextFile(join(clusterOf(home.path), "PG_VERSION"))
  if (Option.isNone(version)) return yield* initialize(home, binaries, durable)
  yield* requireVersion(home, version.value, binaries)
  yield* ensureOwner(home)
  return yield* readPassword(home)
})
