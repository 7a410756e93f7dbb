import { randomUUID } from "node:crypto"
import { link, readdir, readFile, truncate, unlink, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { Effect, Option, Schema, type Scope } from "effect"
import { hasErrorCode } from "../errors/ErrorCode.ts"
import { EmbeddedPostgresError, fileOperation } from "./EmbeddedPostgresError.ts"
import { processStart } from "./EmbeddedProcess.ts"

const Holder = Schema.parseJson(Schema.Struct({ pid: Schema.Int, startedAt: Schema.String }))

const filePattern = /^owner\.(\d+)$/

const generationsIn = Effect.fnUntraced(function* (home: string) {
  const names = yield* fileOperation(`list ${home}`, () => readdir(home))
  return names.flatMap((name) => {
    const number = filePattern.exec(name)?.[1]
    return number === undefined ? [] : [Number(number)]
  })
})

const fileOf = (home: string, generation: number): string => join(home, `owner.${generation}`)

/**
 * The live process that a lock file names. An empty file was released; an unreadable one was damaged by a power
 * failure.
 */
const liveHolder = Effect.fnUntraced(function* (file: string) {
  const content = yield* Effect.option(Effect.tryPromise(() => readFile(file, "utf8")))
  const holder = Option.flatMap(content, Schema.decodeUnknownOption(Holder))
  if (Option.isNone(holder)) return Option.none<number>()
  const { pid, startedAt } = holder.value
  const runningSince = yield* processStart(pid)
  const isSame = Option.exists(
    runningSince,
    (since) => since === startedAt || since === "unknown" || startedAt === "unknown"
  )
  return isSame ? Option.some(pid) : Option.none<number>()
})

/** The live holder of a generation of the lock; generation 0 means that there has been none yet. */
const liveHolderOf = (home: string, generation: number) =>
  generation === 0 ? Effect.succeed(Option.none<number>()) : liveHolder(fileOf(home, generation))

const linkIfAbsent = (draft: string, file: string) =>
  fileOperation(`create ${file}`, () =>
    link(draft, file).then(
      () => true,
      (cause) => (hasErrorCode(cause, "EEXIST") ? false : Promise.reject(cause))
    )
  )

const unlinkIfPresent = (file: string) => Effect.ignore(Effect.tryPromise(() => unlink(file)))

const inUse = (home: string, pid: number) =>
  new EmbeddedPostgresError({
    reason: "in_use",
    message:
      `The embedded PostgreSQL in ${home} is in use by process ${pid}${pid === process.pid ? " (this one)" : ""}. ` +
      "Stop that process, use another data directory, or set DATABASE_URL to let several processes share one database."
  })

/**
 * Tries once to take the next generation; `None` if another process was faster and the caller has to retry.
 *
 * A delayed process could link a generation that has been taken, released and removed since it looked. The newest file
 * is never removed, so such a process then sees a newer one than its own, and gives up.
 */
const claimOnce = Effect.fnUntraced(function* (home: string, draft: string) {
  const newest = Math.max(0, ...(yield* generationsIn(home)))
  const holder = yield* liveHolderOf(home, newest)
  if (Option.isSome(holder)) return yield* inUse(home, holder.value)
  const mine = newest + 1
  if (!(yield* linkIfAbsent(draft, fileOf(home, mine)))) return Option.none<string>()
  const others = (yield* generationsIn(home)).filter((generation) => generation !== mine)
  if (others.some((generation) => generation > mine)) {
    yield* unlinkIfPresent(fileOf(home, mine))
    return Option.none<string>()
  }
  yield* Effect.forEach(others, (generation) => unlinkIfPresent(fileOf(home, generation)), { discard: true })
  return Option.some(fileOf(home, mine))
})

const claimUntilDecided = (home: string, draft: string): Effect.Effect<string, EmbeddedPostgresError> =>
  Effect.flatMap(
    claimOnce(home, draft),
    Option.match({ onNone: () => claimUntilDecided(home, draft), onSome: Effect.succeed })
  )

const claim = Effect.fnUntraced(function* (home: string) {
  const startedAt = Option.getOrElse(yield* processStart(process.pid), () => "unknown")
  const content = yield* Schema.encode(Holder)({ pid: process.pid, startedAt }).pipe(Effect.orDie)
  const draft = join(home, `.owner-${randomUUID()}`)
  yield* fileOperation(`write ${draft}`, () => writeFile(draft, content, { flag: "wx", mode: 0o644 }))
  return yield* claimUntilDecided(home, draft).pipe(Effect.ensuring(unlinkIfPresent(draft)))
})

/**
 * Holds a directory for this process until the scope closes, so that no two live processes run, or "recover", one
 * cluster. The lock names its holder (process id and start time). A lock whose holder is dead is taken over at once; if
 * several processes try, exactly one gets it. It guards against processes on the same machine (one process namespace),
 * not against those that share the directory over a network.
 *
 * The lock is the file `owner.<n>` with the highest `n`: created complete by a hard link, emptied on release and
 * removed only by the next holder.
 *
 * @returns nothing; fails with `in_use` if a live process (including this one) holds the directory
 */
export const acquireLock = (home: string): Effect.Effect<void, EmbeddedPostgresError, Scope.Scope> =>
  Effect.acquireRelease(claim(home), (file) =>
    // The directory may have been removed meanwhile
    fileOperation(`release ${file}`, () => truncate(file)).pipe(
      Effect.catchAll((error) => (hasErrorCode(error.cause, "ENOENT") ? Effect.void : Effect.logWarning(error.message)))
    )
  ).pipe(Effect.asVoid)

/** Like `acquireLock`, but returns false if a live process (including this one) holds the directory. */
export const tryLock = (home: string): Effect.Effect<boolean, EmbeddedPostgresError, Scope.Scope> =>
  acquireLock(home).pipe(
    Effect.as(true),
    Effect.catchIf(
      ({ reason }) => reason === "in_use",
      () => Effect.succeed(false)
    )
  )

/** Whether a live process (including this one) holds the directory. */
export const isLocked = (home: string): Effect.Effect<boolean, EmbeddedPostgresError> =>
  Effect.flatMap(generationsIn(home), (generations) =>
    Effect.map(liveHolderOf(home, Math.max(0, ...generations)), Option.isSome)
  )

/** Whether any process has ever held the directory; false while it is still being created. */
export const wasEverLocked = (home: string): Effect.Effect<boolean, EmbeddedPostgresError> =>
  Effect.map(generationsIn(home), (generations) => generations.length > 0)
