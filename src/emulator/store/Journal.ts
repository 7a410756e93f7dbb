import * as fs from "node:fs"
import { dirname } from "node:path"
import { Effect, type Scope } from "effect"
import { EmulatorError } from "../EmulatorError.ts"
import { type Change, isKind } from "../Records.ts"

/**
 * The file that keeps the state: a header line, then one JSON line per transaction (`{"changes": [...]}`).
 *
 * A line is written to the operating system before the answer that depends on it is sent, so a killed process loses
 * nothing that was answered. It is not flushed to the disk: a power failure may lose the last moments.
 */
export interface Journal {
  /** Appends one transaction; on failure the file is as it was before. */
  readonly append: (changes: ReadonlyArray<Change>) => Effect.Effect<void, EmulatorError>
}

/** Stores nothing: for an emulator whose state is in memory only. */
export const memoryJournal: Journal = { append: () => Effect.void }

const header = JSON.stringify({ journal: "connected-payments-emulator", version: 1 })

const lineOf = (changes: ReadonlyArray<Change>): string => `${JSON.stringify({ changes })}\n`

const unreadable = (file: string, problem: string, cause?: unknown): EmulatorError =>
  new EmulatorError({ reason: "JournalUnreadable", message: `Emulator journal ${file}: ${problem}`, cause })

const unwritable = (file: string, cause: unknown): EmulatorError =>
  new EmulatorError({ reason: "JournalUnwritable", message: `Emulator journal ${file} cannot be written`, cause })

const isMissing = (cause: unknown): boolean => cause instanceof Error && "code" in cause && cause.code === "ENOENT"

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null

const toChange = (raw: unknown): Change | undefined => {
  if (!isObject(raw)) return undefined
  const { id, kind, scope, value } = raw
  if (typeof id !== "string" || typeof kind !== "string" || typeof scope !== "string") return undefined
  if (!isKind(kind) || value === undefined) return undefined
  // The cast is safe: by its header this emulator wrote the file, and it writes only values of the kind's type
  return { scope, kind, id, value } as Change
}

const parseLine = (line: string): ReadonlyArray<Change> | undefined => {
  try {
    const parsed: unknown = JSON.parse(line)
    if (!isObject(parsed) || !Array.isArray(parsed["changes"])) return undefined
    const changes = parsed["changes"].map(toChange)
    return changes.every((change) => change !== undefined) ? changes : undefined
  } catch {
    return undefined
  }
}

/**
 * Reads all changes in the file, oldest first; none if there is no file.
 *
 * A last line without a line end was being written when the process was killed: nobody got an answer that depends on
 * it, and it is ignored. Any other line that cannot be read fails with `JournalUnreadable`, so that nothing is lost
 * unnoticed.
 */
export const readJournal = (file: string): Effect.Effect<ReadonlyArray<Change>, EmulatorError> =>
  Effect.try({ try: () => fs.readFileSync(file, "utf8"), catch: (cause) => cause }).pipe(
    Effect.catchAll((cause) =>
      isMissing(cause) ? Effect.succeed("") : Effect.fail(unreadable(file, "cannot be read", cause))
    ),
    Effect.flatMap((content) => {
      const lines = content.split("\n")
      // The text after the last line end: empty, or an incomplete line
      lines.pop()
      if (lines.length === 0)
        return content === "" || header.startsWith(content)
          ? Effect.succeed([])
          : Effect.fail(unreadable(file, "is not a journal of the emulator"))
      if (lines[0] !== header) return Effect.fail(unreadable(file, "is not a journal of the emulator"))
      const changes: Array<Change> = []
      for (const [index, line] of lines.entries()) {
        if (index === 0) continue
        const parsed = parseLine(line)
        if (parsed === undefined) return Effect.fail(unreadable(file, `line ${index + 1} is damaged`))
        changes.push(...parsed)
      }
      return Effect.succeed(changes)
    })
  )

const writeAll = (descriptor: number, text: string): number => {
  const bytes = Buffer.from(text)
  let written = 0
  while (written < bytes.length) written += fs.writeSync(descriptor, bytes, written)
  return bytes.length
}

/** Writes the compacted file beside the old one and renames it atomically; returns its open descriptor. */
const replaceFile = (
  file: string,
  changes: Iterable<Change>
): { readonly descriptor: number; readonly size: number } => {
  fs.mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
  const fresh = `${file}.new`
  fs.rmSync(fresh, { force: true })
  const descriptor = fs.openSync(fresh, "ax", 0o600)
  try {
    let size = writeAll(descriptor, `${header}\n`)
    for (const change of changes) size += writeAll(descriptor, lineOf([change]))
    fs.fsyncSync(descriptor)
    fs.renameSync(fresh, file)
    return { descriptor, size }
  } catch (cause) {
    fs.closeSync(descriptor)
    throw cause
  }
}

/** Replaces the file with one that holds just these records (mode 0600) and opens it for appending. */
export const openJournal = (
  file: string,
  records: Iterable<Change>
): Effect.Effect<Journal, EmulatorError, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.try({ try: () => replaceFile(file, records), catch: (cause) => unwritable(file, cause) }),
    ({ descriptor }) => Effect.sync(() => fs.closeSync(descriptor))
  ).pipe(
    Effect.map(({ descriptor, size }) => {
      let end = size
      const append = (changes: ReadonlyArray<Change>): void => {
        try {
          end += writeAll(descriptor, lineOf(changes))
        } catch (cause) {
          // Otherwise half a line would make the file unreadable
          fs.ftruncateSync(descriptor, end)
          throw cause
        }
      }
      return {
        append: (changes) => Effect.try({ try: () => append(changes), catch: (cause) => unwritable(file, cause) })
      }
    })
  )
