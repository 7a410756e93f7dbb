import { createHash, randomUUID } from "node:crypto"
import { chmod, mkdir, readFile, realpath, rename, stat, writeFile } from "node:fs/promises"
import { join, resolve } from "node:path"
import { Effect, Option } from "effect"
import { hasErrorCode } from "../errors/ErrorCode.ts"
import { EmbeddedPostgresError, fileOperation } from "./EmbeddedPostgresError.ts"
import { type Account, runCommand } from "./EmbeddedProcess.ts"

/**
 * The directory for root's files that the server's account could not otherwise reach: copies of the binaries, and
 * clusters. Only root can write to it, so nobody else can plant a program that root then starts.
 */
export const systemDirectory = "/var/lib/connected-payments"

/** The location of an embedded PostgreSQL's files, and the account that runs it. */
export interface Home {
  /** Real path of the directory with the cluster, its password, its log and its lock. */
  readonly path: string
  /** The account that owns the cluster and runs the server; `None` means this process's account. */
  readonly account: Option.Option<Account>
}

/** The data directory proper (`PGDATA`) of a home. */
export const clusterOf = (home: string): string => join(home, "cluster")

const isRoot = (): boolean => process.getuid?.() === 0

const isAbsent = (error: EmbeddedPostgresError): boolean => hasErrorCode(error.cause, "ENOENT")

/** The trimmed content of a file; `None` if it does not exist. */
export const readTextFile = (path: string): Effect.Effect<Option.Option<string>, EmbeddedPostgresError> =>
  fileOperation(`read ${path}`, () => readFile(path, "utf8")).pipe(
    Effect.map((text) => Option.some(text.trim())),
    Effect.catchIf(isAbsent, () => Effect.succeedNone)
  )

/** Writes a file atomically: a reader, even after a crash, finds the old content or the new, never a part. */
export const replaceFile = (path: string, content: string, mode: number) =>
  fileOperation(`write ${path}`, async () => {
    const draft = `${path}.${randomUUID()}`
    await writeFile(draft, content, { flag: "wx", mode })
    await rename(draft, path)
  })

/** The file status of a path; `None` if it does not exist. */
export const statOptional = (path: string) =>
  fileOperation(`look at ${path}`, () => stat(path)).pipe(
    Effect.asSome,
    Effect.catchIf(isAbsent, () => Effect.succeedNone)
  )

const permissionDenied = (message: string, cause?: unknown) =>
  new EmbeddedPostgresError({ reason: "permission_denied", message, cause })

const lookUpAccount = Effect.fnUntraced(function* (name: string) {
  const [uid, gid] = yield* Effect.all([runCommand("id", ["-u", name]), runCommand("id", ["-g", name])])
  return { name, uid: Number(uid), gid: Number(gid) }
})

const createAccount = Effect.fnUntraced(function* (name: string) {
  yield* runCommand("groupadd", ["--system", "--force", name])
  const shape = ["--system", "--gid", name, "--no-create-home", "--home-dir", "/nonexistent"]
  yield* runCommand("useradd", [...shape, "--shell", "/usr/sbin/nologin", name])
  yield* Effect.logInfo(
    `PostgreSQL does not run as root: the system account "${name}" was created and runs the embedded PostgreSQL.`
  )
})

/**
 * The account under which root runs PostgreSQL, created if it is missing (with `groupadd` and `useradd`).
 *
 * Fails with `permission_denied` if there is none and none can be created.
 */
export const serverAccount = (name = "postgres"): Effect.Effect<Account, EmbeddedPostgresError> =>
  lookUpAccount(name).pipe(
    Effect.orElse(() =>
      // Another process may be creating it at this moment: all that matters is whether it exists afterwards
      Effect.exit(createAccount(name)).pipe(Effect.zipRight(lookUpAccount(name)))
    ),
    Effect.mapError((cause) =>
      permissionDenied(
        `PostgreSQL does not run as root, there is no account "${name}", and it could not be created. ` +
          `Run the service as an ordinary user, create a system account named ${name}, or set DATABASE_URL.`,
        cause
      )
    )
  )

/** Whether `account` may enter a directory, which requires that it may pass every directory above. */
const mayEnter = (directory: string, account: Account) =>
  runCommand("/bin/sh", ["-c", 'test -x "$1"', "sh", directory], Option.some(account)).pipe(
    Effect.match({ onFailure: () => false, onSuccess: () => true })
  )

const requireEntrance = Effect.fnUntraced(function* (directory: string, account: Account) {
  if (yield* mayEnter(directory, account)) return
  return yield* permissionDenied(
    `The embedded PostgreSQL runs as user "${account.name}" (${account.uid}), who may not enter ${directory}. ` +
      "Let that user pass through the directories above it, or set DATABASE_URL."
  )
})

/**
 * Creates a directory, and those above it, if it is missing. The mode does not depend on the umask; an existing
 * directory keeps its mode.
 */
export const makeDirectory = (path: string, mode: number) =>
  fileOperation(`create the directory ${path}`, async () => {
    const first = await mkdir(path, { recursive: true, mode: 0o755 })
    if (first !== undefined) await chmod(path, mode)
  })

/**
 * The owner of an existing cluster, whose account is used. Root can thus use a cluster that an ordinary user created,
 * and that user can use it again afterwards.
 */
const ownerOf = Effect.fnUntraced(function* (cluster: string) {
  const found = yield* statOptional(cluster)
  if (Option.isNone(found)) return Option.none<Account>()
  const { uid, gid } = found.value
  if (!isRoot() && uid !== process.getuid?.()) {
    return yield* permissionDenied(
      `The embedded PostgreSQL in ${cluster} belongs to user ${uid}. Run the service as that user, ` +
        "use another data directory, or set DATABASE_URL."
    )
  }
  return Option.some<Account>({ name: `uid ${uid}`, uid, gid })
})

const placeElsewhere = Effect.fnUntraced(function* (directory: string, pointer: string, account: Account) {
  const name = createHash("sha256").update(directory).digest("hex").slice(0, 16)
  const path = join(systemDirectory, name)
  const isKnown = Option.isSome(yield* statOptional(clusterOf(path)))
  yield* makeDirectory(systemDirectory, 0o755)
  yield* makeDirectory(path, 0o711)
  yield* requireEntrance(path, account)
  yield* replaceFile(pointer, `${path}\n`, 0o644)
  yield* Effect.logInfo(
    `PostgreSQL does not run as root, and user "${account.name}" may not enter ${directory}: the embedded ` +
      `database of this directory is kept in ${path}${isKnown ? ", where it was found from an earlier run" : ""}. ` +
      `To begin with an empty database, remove both.`
  )
  return path
})

/** Where an earlier run put the data of `directory`, if not in the directory itself. */
const placeOfEarlierRun = Effect.fnUntraced(function* (pointer: string) {
  const place = yield* readTextFile(pointer)
  if (Option.isNone(place)) return place
  if (Option.isSome(yield* statOptional(place.value))) return place
  return yield* new EmbeddedPostgresError({
    reason: "data_missing",
    message:
      `According to ${pointer} the embedded database is in ${place.value}, which no longer exists. ` +
      `Restore it, or remove ${pointer} to begin with an empty database.`
  })
})

const homeForRoot = Effect.fnUntraced(function* (directory: string, pointer: string) {
  const earlier = yield* placeOfEarlierRun(pointer)
  const path = Option.getOrElse(earlier, () => directory)
  const owner = Option.filter(yield* ownerOf(clusterOf(path)), ({ uid }) => uid !== 0)
  if (Option.isSome(owner)) {
    yield* requireEntrance(path, owner.value)
    return { path, account: owner }
  }
  const account = yield* serverAccount()
  const canStay = Option.isSome(earlier) || (yield* mayEnter(path, account))
  return {
    path: canStay ? path : yield* placeElsewhere(directory, pointer, account),
    account: Option.some(account)
  }
})

/**
 * Finds the home of the embedded PostgreSQL of `directory`, which is created if it is missing.
 *
 * The home is the directory itself, unless root starts the service and the server's account cannot enter it (a checkout
 * under `/root`, say): then it is a directory below {@link systemDirectory} derived from the real path, and the file
 * `location` in `directory` points to it for the next start.
 */
export const locateHome = Effect.fnUntraced(function* (
  directory: string
): Effect.fn.Return<Home, EmbeddedPostgresError> {
  yield* makeDirectory(resolve(directory), isRoot() ? 0o711 : 0o700)
  const path = yield* fileOperation(`resolve ${directory}`, () => realpath(directory))
  const pointer = join(path, "location")
  if (isRoot()) return yield* homeForRoot(path, pointer)
  const earlier = yield* placeOfEarlierRun(pointer)
  const home = Option.getOrElse(earlier, () => path)
  yield* ownerOf(clusterOf(home))
  return { path: home, account: Option.none() }
})
